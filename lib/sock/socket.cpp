// SPDX-License-Identifier: Apache-2.0
#include "sock/socket.hpp"

#include <linux/errqueue.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cerrno>

namespace srd::sock {

namespace {

bool set_option(const Syscalls& calls, int fd, int level, int name, int value) noexcept {
  return calls.setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// The FORCE variant passes the limit of net.core.*mem_max where the process may (CAP_NET_ADMIN).
std::uint32_t enlarge(const Syscalls& calls, int fd, int force, int plain,
                      std::uint32_t bytes) noexcept {
  const int wish = static_cast<int>(bytes);
  if (!set_option(calls, fd, SOL_SOCKET, force, wish)) {
    set_option(calls, fd, SOL_SOCKET, plain, wish);
  }
  int granted = 0;
  socklen_t size = sizeof granted;
  if (::getsockopt(fd, SOL_SOCKET, plain, &granted, &size) != 0) return 0;
  return static_cast<std::uint32_t>(granted) / 2;  // socket(7): the kernel stores twice the value
}

bool set_ecn(const Syscalls& calls, int fd, bool v6) noexcept {
  constexpr int kEct0 = 2;
  bool ok = set_option(calls, fd, IPPROTO_IP, IP_TOS, kEct0) &&
            set_option(calls, fd, IPPROTO_IP, IP_RECVTOS, 1);
  if (v6) {
    ok = ok && set_option(calls, fd, IPPROTO_IPV6, IPV6_TCLASS, kEct0) &&
         set_option(calls, fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  }
  return ok;
}

bool set_error_queue(const Syscalls& calls, int fd, bool v6) noexcept {
  const bool ok = set_option(calls, fd, IPPROTO_IP, IP_RECVERR, 1);
  return ok && (!v6 || set_option(calls, fd, IPPROTO_IPV6, IPV6_RECVERR, 1));
}

bool set_dont_fragment(const Syscalls& calls, int fd, bool v6) noexcept {
  const bool ok = set_option(calls, fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  return ok && (!v6 || set_option(calls, fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE));
}

bool knows_gso(int fd) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &size) == 0;
}

}  // namespace

Errc setup_error(int error) noexcept {
  switch (error) {
    case EADDRINUSE:
      return Errc::address_in_use;
    case EADDRNOTAVAIL:
      return Errc::address_unavailable;
    case EACCES:
    case EPERM:
      return Errc::not_permitted;
    case EMFILE:
    case ENFILE:
      return Errc::too_many_files;
    case ENOBUFS:
    case ENOSPC:
    case ENOMEM:
      return Errc::no_memory;
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Errc::no_route;
    case EINVAL:
      return Errc::invalid_argument;
    default:
      return Errc::not_supported;
  }
}

Result<UniqueFd> open_socket(const Syscalls& calls, const Address& bind, const SocketWishes& wishes,
                             SocketGrants& grants) noexcept {
  const int family = socket_family(bind);
  const bool v6 = family == AF_INET6;
  UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd.is_open()) return setup_error(errno);
  const int s = fd.get();
  const bool dual = v6 && is_wildcard(bind);
  if (v6 && !set_option(calls, s, IPPROTO_IPV6, IPV6_V6ONLY, dual ? 0 : 1)) {
    return setup_error(errno);
  }
  // Without DF a router could fragment, and a lost fragment would look like a lost datagram.
  if (!set_dont_fragment(calls, s, v6)) return setup_error(errno);

  grants = SocketGrants{};
  grants.rcvbuf_bytes = enlarge(calls, s, SO_RCVBUFFORCE, SO_RCVBUF, wishes.rcvbuf_bytes);
  grants.sndbuf_bytes = enlarge(calls, s, SO_SNDBUFFORCE, SO_SNDBUF, wishes.sndbuf_bytes);
  grants.gso = knows_gso(s);
  grants.gro = wishes.gro && set_option(calls, s, IPPROTO_UDP, UDP_GRO, 1);
  grants.ecn = wishes.ecn && set_ecn(calls, s, v6);
  grants.timestamps = set_option(calls, s, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  grants.drop_counter = set_option(calls, s, SOL_SOCKET, SO_RXQ_OVFL, 1);
  grants.error_queue = set_error_queue(calls, s, v6);
  if (wishes.local_info) {
    // A dual-stack socket reports IPv4 addresses through the IPv6 option, mapped.
    grants.local_info = v6 ? set_option(calls, s, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
                           : set_option(calls, s, IPPROTO_IP, IP_PKTINFO, 1);
  }

  SocketAddress local{};
  if (!to_socket_address(bind, family, local)) return Errc::invalid_argument;
  if (::bind(s, &local.any, local.bytes) != 0) return setup_error(errno);
  return fd;
}

}  // namespace srd::sock
