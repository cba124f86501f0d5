// SPDX-License-Identifier: Apache-2.0
// Name resolution of the tools; see the header.
#include "common/addresses.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "common/failure.hpp"

namespace apps {
namespace {

constexpr unsigned kFamilyV4 = 4;
constexpr unsigned kFamilyV6 = 6;

bool from_addrinfo(const addrinfo& info, std::uint16_t port, srd_address& out) {
  out = srd_address{};
  out.port = port;
  if (info.ai_family == AF_INET) {
    sockaddr_in storage{};
    std::memcpy(&storage, info.ai_addr, sizeof storage);
    out.family = kFamilyV4;
    std::memcpy(out.bytes, &storage.sin_addr, sizeof storage.sin_addr);
    return true;
  }
  if (info.ai_family == AF_INET6) {
    sockaddr_in6 storage{};
    std::memcpy(&storage, info.ai_addr, sizeof storage);
    out.family = kFamilyV6;
    out.scope = storage.sin6_scope_id;
    std::memcpy(out.bytes, &storage.sin6_addr, sizeof storage.sin6_addr);
    return true;
  }
  return false;
}

bool same(const srd_address& a, const srd_address& b) {
  return a.family == b.family && a.port == b.port && a.scope == b.scope &&
         std::equal(std::begin(a.bytes), std::end(a.bytes), std::begin(b.bytes));
}

}  // namespace

std::vector<srd_address> resolve_host(const std::string& host, std::uint16_t port, Family family) {
  addrinfo hints{};
  hints.ai_family = family == Family::v4 ? AF_INET : family == Family::v6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, [](addrinfo* list) {
    if (list != nullptr) freeaddrinfo(list);
  });
  if (status != 0) {
    throw Failure(
        kExitFailure,
        fmt::format("cannot resolve host \"{}\"{}: {}; give an address or check the name", host,
                    family == Family::v4   ? " as IPv4"
                    : family == Family::v6 ? " as IPv6"
                                           : "",
                    gai_strerror(status)));
  }
  std::vector<srd_address> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    srd_address address;
    if (!from_addrinfo(*info, port, address)) continue;
    const bool known = std::any_of(addresses.begin(), addresses.end(),
                                   [&](const srd_address& other) { return same(other, address); });
    if (!known) addresses.push_back(address);
  }
  if (addresses.empty()) {
    throw Failure(kExitFailure, fmt::format("host \"{}\" has no IPv4 or IPv6 address", host));
  }
  return addresses;
}

srd_address wildcard_address(unsigned family, std::uint16_t port) noexcept {
  srd_address address{};
  address.family = static_cast<std::uint8_t>(family);
  address.port = port;
  return address;
}

std::string host_text(const srd_address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.family == 0) return {};
  const int family = address.family == kFamilyV4 ? AF_INET : AF_INET6;
  if (inet_ntop(family, address.bytes, text.data(), text.size()) == nullptr) return {};
  std::string host = text.data();
  if (address.scope != 0) host += fmt::format("%{}", address.scope);
  return host;
}

std::string address_text(const srd_address& address) {
  if (address.family == kFamilyV6) return fmt::format("[{}]:{}", host_text(address), address.port);
  return fmt::format("{}:{}", host_text(address), address.port);
}

}  // namespace apps
