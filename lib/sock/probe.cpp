// SPDX-License-Identifier: Apache-2.0
#include "sock/probe.hpp"

#include <netinet/udp.h>

#include <array>
#include <cerrno>

namespace srd::sock {

namespace {

constexpr std::uint16_t kSegmentsOld = 64;  // UDP_MAX_SEGMENTS before Linux 6.9
constexpr std::uint16_t kSegmentsNew = 128;

enum class Answer : std::uint8_t { works, refused, unknown };

/// Sends one burst of `count` datagrams of one byte.
Answer try_segments(const Syscalls& calls, int fd, const Address& to,
                    std::uint16_t count) noexcept {
  SocketAddress remote{};
  if (!to_socket_address(to, socket_family(to), remote)) return Answer::unknown;
  std::array<char, kSegmentsNew> payload{};
  iovec io{payload.data(), count};
  alignas(cmsghdr) char control[64];
  ControlWriter writer(control);
  writer.add(IPPROTO_UDP, UDP_SEGMENT, std::uint16_t{1});
  mmsghdr message{};
  message.msg_hdr.msg_name = &remote.any;
  message.msg_hdr.msg_namelen = remote.bytes;
  message.msg_hdr.msg_iov = &io;
  message.msg_hdr.msg_iovlen = 1;
  message.msg_hdr.msg_control = control;
  message.msg_hdr.msg_controllen = writer.bytes();
  if (calls.sendmmsg(fd, &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return Answer::works;
  // Anything else, a firewall for one, says nothing about segments.
  const bool refused = errno == EINVAL || errno == EIO || errno == EOPNOTSUPP || errno == EMSGSIZE;
  return refused ? Answer::refused : Answer::unknown;
}

/// Most datagrams of one burst; 1: the kernel knows the option and refuses to use it.
std::uint16_t segments_max(const Syscalls& calls, int fd) noexcept {
  const Address self = bound_address(fd);
  for (const std::uint16_t count : {kSegmentsNew, kSegmentsOld}) {
    switch (try_segments(calls, fd, self, count)) {
      case Answer::works:
        return count;
      case Answer::unknown:
        return kSegmentsOld;
      case Answer::refused:
        break;
    }
  }
  return 1;
}

Address loopback(std::uint8_t family) noexcept {
  Address address{};
  address.family = family;
  if (family == 4) {
    address.bytes[0] = 127;
    address.bytes[3] = 1;
  } else {
    address.bytes[15] = 1;
  }
  return address;
}

}  // namespace

bool has_ipv6() noexcept {
  SocketGrants grants;
  Address any{};
  any.family = 6;
  return open_socket(kernel_syscalls(), any, SocketWishes{}, grants).has_value();
}

Result<KernelProbe> probe_kernel(const Syscalls& calls, const Address& bind,
                                 const SocketWishes& wishes) noexcept {
  KernelProbe probe;
  probe.has_ipv6 = has_ipv6();
  Address any{};
  any.family = bind.family;
  SocketWishes all = wishes;
  all.local_info = true;
  auto wished = open_socket(calls, any, all, probe.grants);
  if (!wished) return wished.errc();
  if (!probe.grants.gso) return probe;

  SocketGrants grants;
  auto fd = open_socket(calls, loopback(bind.family), SocketWishes{}, grants);
  if (!fd) {
    // No loopback address in this network namespace: the option is known, so assume the old limit.
    probe.gso_segments_max = kSegmentsOld;
    return probe;
  }
  probe.gso_segments_max = segments_max(calls, fd->get());
  probe.grants.gso = probe.gso_segments_max > 1;
  return probe;
}

}  // namespace srd::sock
