// SPDX-License-Identifier: Apache-2.0
// Small things every socket driver needs: the clocks, conversions between Address and what a socket
// of a given family wants to see, control messages.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <ctime>

#include "srd/address.hpp"
#include "srd/datagram.hpp"

namespace srd::sock {

inline std::uint64_t to_ns(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return to_ns(now);
}

inline Instant monotonic_now() noexcept {
  return Instant{clock_ns(CLOCK_MONOTONIC)};
}

/// A socket address of either family, as small as that allows (sockaddr_storage has 128 bytes).
struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };

  socklen_t bytes;
};

/// `address` as a socket of `family` (AF_INET, AF_INET6) must be given it: IPv4 is mapped into IPv6
/// for a dual-stack socket. False if that family cannot reach it.
bool to_socket_address(const Address& address, int family, SocketAddress& out) noexcept;

/// The reverse; IPv4-mapped becomes IPv4.
Address from_socket_address(const SocketAddress& address) noexcept;
Address from_in6_addr(const in6_addr& address, std::uint16_t port, std::uint32_t scope) noexcept;
Address from_in_addr(const in_addr& address, std::uint16_t port) noexcept;

bool is_wildcard(const Address& address) noexcept;
bool is_link_local(const Address& address) noexcept;

/// Address a socket is bound to.
Address bound_address(int fd) noexcept;

/// IP and UDP header bytes in front of a datagram to `address`.
inline constexpr std::uint32_t header_bytes(const Address& address) noexcept {
  return address.family == 6 ? 48 : 28;
}

/// Most bytes that one UDP datagram can carry over IPv4, and that drivers send over IPv6 as well.
inline constexpr std::uint32_t kUdpPayloadBytesMax = 65507;

/// Appends control messages to a buffer, which must be large enough and aligned for cmsghdr.
class ControlWriter {
 public:
  explicit ControlWriter(void* buffer) noexcept : start_(static_cast<char*>(buffer)) {}

  template <class T>
  void add(int level, int type, const T& value) noexcept {
    cmsghdr head{};
    head.cmsg_level = level;
    head.cmsg_type = type;
    head.cmsg_len = CMSG_LEN(sizeof(T));
    std::memcpy(start_ + bytes_, &head, sizeof head);
    std::memcpy(start_ + bytes_ + CMSG_LEN(0), &value, sizeof value);
    bytes_ += CMSG_SPACE(sizeof(T));
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  char* start_;
  std::size_t bytes_ = 0;
};

/// Calls f(level, type, data pointer, data bytes) for each control message of a received header.
template <class F>
void for_each_control(const msghdr& message, F&& f) noexcept {
  const char* at = static_cast<const char*>(message.msg_control);
  std::size_t left = message.msg_controllen;
  while (left >= sizeof(cmsghdr)) {
    cmsghdr head;
    std::memcpy(&head, at, sizeof head);
    if (head.cmsg_len < CMSG_LEN(0) || head.cmsg_len > left) return;
    f(head.cmsg_level, head.cmsg_type, at + CMSG_LEN(0), head.cmsg_len - CMSG_LEN(0));
    const std::size_t step = CMSG_ALIGN(head.cmsg_len);
    if (step >= left) return;
    at += step;
    left -= step;
  }
}

/// Reads a control message's value; false if it is shorter than T.
template <class T>
bool control_value(const char* data, std::size_t bytes, T& out) noexcept {
  if (bytes < sizeof(T)) return false;
  std::memcpy(&out, data, sizeof out);
  return true;
}

}  // namespace srd::sock
