// SPDX-License-Identifier: Apache-2.0
#include "sock/net.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace srd::sock {

namespace {

constexpr std::uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool to_socket_address(const Address& address, int family, SocketAddress& out) noexcept {
  std::memset(&out, 0, sizeof out);
  if (family == AF_INET) {
    if (address.family != 4) return false;
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(address.port);
    std::memcpy(&out.v4.sin_addr, address.bytes, 4);
    out.bytes = sizeof(sockaddr_in);
    return true;
  }
  if (address.family != 4 && address.family != 6) return false;
  out.v6.sin6_family = AF_INET6;
  out.v6.sin6_port = htons(address.port);
  if (address.family == 4) {
    std::memcpy(&out.v6.sin6_addr, kMappedPrefix, sizeof kMappedPrefix);
    std::memcpy(out.v6.sin6_addr.s6_addr + sizeof kMappedPrefix, address.bytes, 4);
  } else {
    std::memcpy(&out.v6.sin6_addr, address.bytes, 16);
    out.v6.sin6_scope_id = address.scope;
  }
  out.bytes = sizeof(sockaddr_in6);
  return true;
}

Address from_in_addr(const in_addr& address, std::uint16_t port) noexcept {
  Address out{};
  out.family = 4;
  out.port = port;
  std::memcpy(out.bytes, &address, 4);
  return out;
}

Address from_in6_addr(const in6_addr& address, std::uint16_t port, std::uint32_t scope) noexcept {
  Address out{};
  out.port = port;
  if (std::memcmp(&address, kMappedPrefix, sizeof kMappedPrefix) == 0) {
    out.family = 4;
    std::memcpy(out.bytes, address.s6_addr + sizeof kMappedPrefix, 4);
    return out;
  }
  out.family = 6;
  std::memcpy(out.bytes, &address, 16);
  out.scope = is_link_local(out) ? scope : 0;
  return out;
}

Address from_socket_address(const SocketAddress& address) noexcept {
  if (address.any.sa_family == AF_INET) {
    return from_in_addr(address.v4.sin_addr, ntohs(address.v4.sin_port));
  }
  if (address.any.sa_family == AF_INET6) {
    return from_in6_addr(address.v6.sin6_addr, ntohs(address.v6.sin6_port),
                         address.v6.sin6_scope_id);
  }
  return Address{};
}

bool is_wildcard(const Address& address) noexcept {
  return std::all_of(std::begin(address.bytes), std::end(address.bytes),
                     [](std::uint8_t b) { return b == 0; });
}

bool is_link_local(const Address& address) noexcept {
  return address.family == 6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

Address bound_address(int fd) noexcept {
  SocketAddress local{};
  local.bytes = sizeof(sockaddr_in6);
  if (::getsockname(fd, &local.any, &local.bytes) != 0) return Address{};
  return from_socket_address(local);
}

}  // namespace srd::sock
