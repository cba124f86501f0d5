// SPDX-License-Identifier: Apache-2.0
// Opens one UDP socket the way every path of a socket driver needs it, and says which of the wishes
// the kernel granted. Non-blocking, close-on-exec, DF set with the kernel's path-MTU cache ignored
// (one forged ICMP would otherwise block every path to that host), ICMP errors kept apart in the
// error queue.
#pragma once

#include <cstdint>

#include "srd/result.hpp"

#include "base/unique_fd.hpp"
#include "sock/net.hpp"
#include "sock/syscalls.hpp"

namespace srd::sock {

struct SocketWishes {
  std::uint32_t rcvbuf_bytes = 8U << 20;
  std::uint32_t sndbuf_bytes = 4U << 20;
  bool gro = true;
  bool ecn = true;  ///< mark ECT(0) by default and read the ECN bits of what arrives
  bool local_info =
      false;  ///< learn the local address of what arrives; for wildcard service sockets
};

/// What the kernel granted.
struct SocketGrants {
  std::uint32_t rcvbuf_bytes =
      0;  ///< as it would have to be asked for, not the kernel's doubled value
  std::uint32_t sndbuf_bytes = 0;
  /// Knows UDP_SEGMENT (Linux 4.18), and sends with it over loopback if probe_kernel() asked. A
  /// device may still refuse it.
  bool gso = false;
  bool gro = false;  ///< UDP_GRO (Linux 5.0)
  bool ecn = false;
  bool timestamps = false;    ///< SO_TIMESTAMPNS
  bool drop_counter = false;  ///< SO_RXQ_OVFL
  bool error_queue = false;   ///< IP_RECVERR
  bool local_info = false;    ///< IP_PKTINFO, if wished
};

/// AF_INET or AF_INET6, as a socket bound to `bind` has it.
inline int socket_family(const Address& bind) noexcept {
  return bind.family == 4 ? AF_INET : AF_INET6;
}

/// A socket bound to `bind` (family 4 or 6; port 0: any). [::] takes IPv4 as well. Wishes are
/// optional: `grants` tells. Errors: address_in_use, address_unavailable, not_permitted, no_memory,
/// too_many_files, not_supported (family missing, or a kernel that cannot set DF).
Result<UniqueFd> open_socket(const Syscalls& calls, const Address& bind, const SocketWishes& wishes,
                             SocketGrants& grants) noexcept;

/// The Errc for an errno of socket set-up.
Errc setup_error(int error) noexcept;

}  // namespace srd::sock
