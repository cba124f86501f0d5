// SPDX-License-Identifier: Apache-2.0
// What this kernel can do for UDP sockets, found by trying, once per driver.
#pragma once

#include <cstdint>

#include "sock/socket.hpp"

namespace srd::sock {

struct KernelProbe {
  SocketGrants grants{};
  bool has_ipv6 = false;
  /// Datagrams that one UDP_SEGMENT send takes: 128 on recent kernels, 64 before, 1 without.
  std::uint16_t gso_segments_max = 1;
};

/// Opens sockets on the loopback address, sends a burst or two to itself, closes them. Errors:
/// those of open_socket() for the family of `bind`.
Result<KernelProbe> probe_kernel(const Syscalls& calls, const Address& bind,
                                 const SocketWishes& wishes) noexcept;

/// True if an IPv6 socket can be opened and bound to [::].
bool has_ipv6() noexcept;

}  // namespace srd::sock
