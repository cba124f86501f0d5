// SPDX-License-Identifier: Apache-2.0
// Addresses as text, both ways (srd_address_parse, srd_address_format). No name resolution.
#include "srd/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "srd/srd.h"

#include "base/error_text.hpp"

namespace srd {
namespace {

constexpr const char* kForms = "write 192.0.2.1:7000, [2001:db8::1]:7000 or [fe80::1%eth0]:7000";

// The parts of one text: "host:port", "[host%scope]:port", with scope and port left out or not.
struct Parts {
  std::string_view host, scope, port;
  bool has_scope = false, has_port = false, is_v6 = false;
};

bool split(std::string_view text, Parts& out) noexcept {
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    out.host = text.substr(1, close - 1);
    out.is_v6 = true;
    text.remove_prefix(close + 1);
    if (!text.empty() && text.front() != ':') return false;
    out.has_port = !text.empty();
    if (out.has_port) out.port = text.substr(1);
  } else if (text.find(':') != text.rfind(':')) {  // IPv6 without brackets, hence without a port
    out.host = text;
    out.is_v6 = true;
  } else {
    const std::size_t colon = text.find(':');
    out.host = text.substr(0, colon);
    out.has_port = colon != std::string_view::npos;
    if (out.has_port) out.port = text.substr(colon + 1);
  }
  const std::size_t percent = out.host.find('%');
  if (percent != std::string_view::npos) {
    out.scope = out.host.substr(percent + 1);
    out.host = out.host.substr(0, percent);
    out.has_scope = true;
  }
  return true;
}

template <class Number>
bool to_number(std::string_view text, Number& out) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// inet_pton and if_nametoindex want a terminated string.
bool terminate(std::string_view text, char* out, std::size_t capacity) noexcept {
  if (text.empty() || text.size() >= capacity) return false;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return true;
}

bool parse_scope(std::string_view text, std::uint32_t& out) noexcept {
  char name[IF_NAMESIZE];
  if (to_number(text, out)) return out != 0;
  if (!terminate(text, name, sizeof name)) return false;
  out = if_nametoindex(name);
  return out != 0;
}

bool is_ipv4_mapped(const srd_address& address) noexcept {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(address.bytes, kPrefix, sizeof kPrefix) == 0;
}

// As from_sockaddr() has it: one remote endpoint, one address.
srd_address to_ipv4(const srd_address& mapped) noexcept {
  srd_address address{};
  address.family = 4;
  address.port = mapped.port;
  std::memcpy(address.bytes, mapped.bytes + 12, 4);
  return address;
}

int parse(const char* text, srd_address& out) noexcept {
  if (std::strlen(text) >= kAddressTextBytes) {
    return fail(
        Errc::invalid_argument,
        "srd_address_parse: \"%.64s...\" is longer than the %zu characters of any address: %s",
        text, kAddressTextBytes - 1, kForms);
  }
  Parts parts;
  if (!split(text, parts)) {
    return fail(Errc::invalid_argument, "srd_address_parse: \"%s\" is not an address: %s", text,
                kForms);
  }
  srd_address address{};
  if (parts.has_port && !to_number(parts.port, address.port)) {
    return fail(Errc::invalid_argument,
                "srd_address_parse: the port in \"%s\" is not a number from 0 to 65535", text);
  }
  char host[INET6_ADDRSTRLEN];
  const int family = parts.is_v6 ? AF_INET6 : AF_INET;
  if (!terminate(parts.host, host, sizeof host) || inet_pton(family, host, address.bytes) != 1) {
    return fail(Errc::invalid_argument,
                "srd_address_parse: \"%s\" has no numeric IPv4 or IPv6 address (names are not "
                "resolved here): %s",
                text, kForms);
  }
  address.family = parts.is_v6 ? 6 : 4;
  if (parts.has_scope && (!parts.is_v6 || !parse_scope(parts.scope, address.scope))) {
    return fail(Errc::invalid_argument,
                "srd_address_parse: the scope after %% in \"%s\" is no interface of this host (ip "
                "link lists them), or the address is not IPv6",
                text);
  }
  if (address.family == 6 && is_ipv4_mapped(address)) address = to_ipv4(address);
  out = address;
  return 0;
}

int print(const srd_address& address, char* out, std::size_t capacity) noexcept {
  char host[INET6_ADDRSTRLEN];
  if (address.family == 0) return std::snprintf(out, capacity, "none");
  if (inet_ntop(address.family == 6 ? AF_INET6 : AF_INET, address.bytes, host, sizeof host) ==
      nullptr) {
    return 0;
  }
  if (address.family == 4) return std::snprintf(out, capacity, "%s:%u", host, address.port);
  if (address.scope == 0) return std::snprintf(out, capacity, "[%s]:%u", host, address.port);
  char name[IF_NAMESIZE];
  if (if_indextoname(address.scope, name) == nullptr) {
    std::snprintf(name, sizeof name, "%u", address.scope);
  }
  return std::snprintf(out, capacity, "[%s%%%s]:%u", host, name, address.port);
}

}  // namespace
}  // namespace srd

extern "C" int srd_address_parse(const char* text, srd_address* out) noexcept {
  using srd::Errc;
  if (text == nullptr) return srd::fail(Errc::invalid_argument, "srd_address_parse: text is NULL");
  if (out == nullptr) return srd::fail(Errc::invalid_argument, "srd_address_parse: out is NULL");
  return srd::parse(text, *out);
}

extern "C" int srd_address_format(const srd_address* address, char* out,
                                  std::size_t capacity) noexcept {
  using srd::Errc;
  if (address == nullptr) {
    return srd::fail(Errc::invalid_argument, "srd_address_format: address is NULL");
  }
  if (out == nullptr) return srd::fail(Errc::invalid_argument, "srd_address_format: out is NULL");
  if (address->family != 0 && address->family != 4 && address->family != 6) {
    return srd::fail(Errc::invalid_argument,
                     "srd_address_format: family %u is not 0 (none), 4 or 6; zero the struct and "
                     "fill it with srd_address_parse()",
                     address->family);
  }
  const int length = srd::print(*address, out, capacity);
  if (static_cast<std::size_t>(length) >= capacity) {
    return srd::fail(Errc::no_memory,
                     "srd_address_format: capacity %zu is too small, %d bytes are needed (64 "
                     "always do)",
                     capacity, length + 1);
  }
  return length;
}
