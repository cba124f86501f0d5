// SPDX-License-Identifier: Apache-2.0
// Asks the kernel's routing table about a destination without sending anything: MTU of the route
// and the source address it would use. One unbound scratch socket per family, opened on first use.
#pragma once

#include <cstdint>

#include "srd/result.hpp"

#include "base/unique_fd.hpp"
#include "sock/net.hpp"

namespace srd::sock {

struct Route {
  std::uint32_t mtu_bytes = 0;  ///< IP packet, headers included
  Address source{};             ///< port 0
};

/// Not thread-safe; two system calls per lookup.
class RouteProbe {
 public:
  /// Errors: no_route, no_memory (descriptors), not_supported (family missing).
  Result<Route> look_up(const Address& to) noexcept;

 private:
  UniqueFd v4_;
  UniqueFd v6_;
};

}  // namespace srd::sock
