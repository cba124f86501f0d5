// SPDX-License-Identifier: Apache-2.0
// Network address of an endpoint: the C struct srd_address with C++ conveniences. No name
// resolution happens here; that is the application's or the tool's business.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "srd/result.hpp"
#include "srd/srd.h"

namespace srd {

using Address = ::srd_address;

/// Room for any address as text with its terminating NUL.
inline constexpr std::size_t kAddressTextBytes = 64;

/// Parses "192.0.2.1:7000", "[2001:db8::1]:7000", "[fe80::1%eth0]:7000"; a missing port is 0.
/// Errors: invalid_argument; srd_last_error() says what is wrong with the text. Any thread.
inline Result<Address> parse_address(std::string_view text) noexcept {
  // What the C function cannot be given as it is makes a text that is no address either, so that
  // the error quotes its beginning.
  char copy[kAddressTextBytes * 2] = {};
  const std::size_t bytes = text.size() < sizeof copy ? text.size() : sizeof copy - 1;
  for (std::size_t i = 0; i < bytes; ++i) copy[i] = text[i] == '\0' ? '?' : text[i];
  Address address{};
  const int status = srd_address_parse(copy, &address);
  if (status < 0) return static_cast<Errc>(-status);
  return address;
}

/// Text in the form parse_address() takes; "none" for the empty address. Any thread.
inline std::string to_string(const Address& address) {
  char text[kAddressTextBytes];
  const int length = srd_address_format(&address, text, sizeof text);
  return {text, length < 0 ? 0 : static_cast<std::size_t>(length)};
}

/// From a sockaddr_in or sockaddr_in6 (IPv4-mapped addresses become IPv4); family 0 for any other.
/// Any thread.
inline Address from_sockaddr(const sockaddr_storage& storage) noexcept {
  Address address{};
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    address.family = 4;
    address.port = ntohs(in.sin_port);
    std::memcpy(address.bytes, &in.sin_addr, 4);
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    address.port = ntohs(in.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
      address.family = 4;
      std::memcpy(address.bytes, in.sin6_addr.s6_addr + 12, 4);
    } else {
      address.family = 6;
      address.scope = in.sin6_scope_id;
      std::memcpy(address.bytes, &in.sin6_addr, 16);
    }
  }
  return address;
}

/// To a sockaddr_in or sockaddr_in6; returns its length in bytes, 0 for an unknown family. Any
/// thread.
inline socklen_t to_sockaddr(const Address& address, sockaddr_storage& storage) noexcept {
  storage = {};
  if (address.family == 4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes, 4);
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  if (address.family == 6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    in.sin6_scope_id = address.scope;
    std::memcpy(&in.sin6_addr, address.bytes, 16);
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  return 0;
}

/// Do both name the same endpoint of the same host? Link-local ones only on the same interface. Any
/// thread.
inline bool same_address(const Address& a, const Address& b) noexcept {
  return a.family == b.family && a.port == b.port && a.scope == b.scope &&
         std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0 && a.aux == b.aux;
}

}  // namespace srd
