// SPDX-License-Identifier: Apache-2.0
#include "sock/route.hpp"

#include <netinet/ip.h>

#include <cerrno>

#include "sock/socket.hpp"

namespace srd::sock {

Result<Route> RouteProbe::look_up(const Address& to) noexcept {
  if (to.family != 4 && to.family != 6) return Errc::no_route;
  const bool v6 = to.family == 6;
  UniqueFd& fd = v6 ? v6_ : v4_;
  if (!fd.is_open()) {
    fd = UniqueFd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) return setup_error(errno);
  }
  SocketAddress remote{};
  to_socket_address(to, v6 ? AF_INET6 : AF_INET, remote);
  // A connected socket keeps its source address when connected anew: dissolve first.
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  static_cast<void>(::connect(fd.get(), &none, sizeof none));
  if (::connect(fd.get(), &remote.any, remote.bytes) != 0) {
    return errno == EACCES || errno == EPERM ? Errc::not_permitted : Errc::no_route;
  }
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (::getsockopt(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &size) !=
      0) {
    return Errc::no_route;
  }
  Route route;
  route.mtu_bytes = static_cast<std::uint32_t>(mtu);
  route.source = bound_address(fd.get());
  route.source.port = 0;
  return route;
}

}  // namespace srd::sock
