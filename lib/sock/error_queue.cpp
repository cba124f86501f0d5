// SPDX-License-Identifier: Apache-2.0
#include "sock/error_queue.hpp"

#include <linux/errqueue.h>
#include <netinet/ip.h>

#include <algorithm>
#include <cerrno>

namespace srd::sock {

namespace {

bool classify(const sock_extended_err& error, const Address& remote, PathEvent& event) noexcept {
  switch (error.ee_errno) {
    case ECONNREFUSED:
      event.kind = PathEvent::Kind::refused;
      return true;
    case EMSGSIZE:
      event.kind = PathEvent::Kind::mtu;
      event.value = error.ee_info - std::min(error.ee_info, header_bytes(remote));
      return true;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENONET:
    case EACCES:
    case EPROTO:
    case ENOPROTOOPT:
      event.kind = PathEvent::Kind::unreachable;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ErrorQueue::read_one(unsigned socket) noexcept {
  SocketAddress remote{};
  PathEvent event;
  alignas(cmsghdr) char control[256];
  iovec io{event.quoted.data(), event.quoted.size()};
  msghdr message{};
  message.msg_name = &remote.any;
  message.msg_namelen = sizeof(sockaddr_in6);
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t quoted = ::recvmsg(pool_.fd(socket), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
  if (quoted < 0) return false;

  sock_extended_err error{};
  bool found = false;
  for_each_control(message, [&](int level, int type, const char* data, std::size_t bytes) {
    if ((level == IPPROTO_IP && type == IP_RECVERR) ||
        (level == IPPROTO_IPV6 && type == IPV6_RECVERR)) {
      found = control_value(data, bytes, error);
    }
  });
  errors_.add();
  const Address address = from_socket_address(remote);
  if (!found || address.family == 0 || !classify(error, address, event)) return true;
  // A local refusal (longer than the device's MTU) quotes nothing of ours.
  if (error.ee_origin != SO_EE_ORIGIN_LOCAL) {
    event.quoted_bytes =
        static_cast<std::uint8_t>(std::min(static_cast<std::size_t>(quoted), event.quoted.size()));
  }
  event.path = pool_.find_path(socket, address);
  event.dest = pool_.find_dest(address);
  push(event);
  return true;
}

unsigned ErrorQueue::drain(unsigned socket) noexcept {
  unsigned count = 0;
  while (count < kDrainMax && read_one(socket)) ++count;
  int pending = 0;
  socklen_t size = sizeof pending;
  ::getsockopt(pool_.fd(socket), SOL_SOCKET, SO_ERROR, &pending, &size);
  return count;
}

void ErrorQueue::push(const PathEvent& event) noexcept {
  if (tail_ - head_ == kEventsMax) return;
  events_[tail_++ % kEventsMax] = event;
}

std::size_t ErrorQueue::poll(std::span<PathEvent> out) noexcept {
  std::size_t n = 0;
  while (n < out.size() && head_ != tail_) out[n++] = events_[head_++ % kEventsMax];
  return n;
}

}  // namespace srd::sock
