// SPDX-License-Identifier: Apache-2.0
// Names and addresses for the tools: resolution by getaddrinfo (the library resolves no names) and
// the host and port parts of an srd_address as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "srd/srd.h"

namespace apps {

/// Which address families a user asked for (-4, -6).
enum class Family : std::uint8_t { any, v4, v6 };

/// All addresses of `host` in the order of preference of the system, with `port`. A literal address
/// may carry a scope ("fe80::1%eth0"). Throws Failure if there is none.
std::vector<srd_address> resolve_host(const std::string& host, std::uint16_t port, Family family);

/// The wildcard address of a family (4 or 6) with `port`.
srd_address wildcard_address(unsigned family, std::uint16_t port) noexcept;

/// "192.0.2.1" or "2001:db8::1", without the port; "" for family none.
std::string host_text(const srd_address& address);

/// "192.0.2.1:7000" or "[2001:db8::1]:7000".
std::string address_text(const srd_address& address);

}  // namespace apps
