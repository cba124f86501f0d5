// SPDX-License-Identifier: Apache-2.0
// Network address of an endpoint: the C struct srd_address with C++ conveniences. No name
// resolution happens here; that is the application's or the tool's business.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "srd/result.hpp"
#include "srd/srd.h"

struct sockaddr_storage;

namespace srd {

using Address = ::srd_address;

/// Parses "192.0.2.1:7000", "[2001:db8::1]:7000", "[fe80::1%eth0]:7000"; a missing port is 0.
/// Errors: invalid_argument. Any thread.
Result<Address> parse_address(std::string_view text) noexcept;

/// Text in the form parse_address() takes. Any thread.
std::string to_string(const Address& address);

/// From a sockaddr_in or sockaddr_in6 (IPv4-mapped addresses become IPv4). Any thread.
Address from_sockaddr(const sockaddr_storage& storage) noexcept;

/// To a sockaddr_in or sockaddr_in6; returns its length in bytes, 0 for an unknown family.
unsigned to_sockaddr(const Address& address, sockaddr_storage& storage) noexcept;

inline bool same_address(const Address& a, const Address& b) noexcept {
  return a.family == b.family && a.port == b.port && a.scope == b.scope &&
         std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0 && a.aux == b.aux;
}

}  // namespace srd
