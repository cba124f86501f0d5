// SPDX-License-Identifier: Apache-2.0
// The drivers under test.
#include "driver/driver_beds.hpp"

#include <net/if.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include <ifaddrs.h>

#include "base/error_text.hpp"
#include "udp/udp_driver.hpp"

namespace srd::test {

namespace {

/// An address of this host other than loopback; datagrams to it stay on the host.
Result<Address> global_v6_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return Errc::address_unavailable;
  Result<Address> found = Errc::address_unavailable;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, i->ifa_addr, sizeof(sockaddr_in6));
    const Address address = from_sockaddr(storage);
    const bool is_loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    if (address.family == 6 && address.bytes[0] != 0xfe && !is_loopback) found = address;
  }
  ::freeifaddrs(all);
  return found;
}

/// UDP over loopback; nothing leaves the host.
class UdpBed final : public DriverBed {
 public:
  UdpBed(std::unique_ptr<Driver> driver, const char* bind, const char* loopback)
      : driver_(std::move(driver)),
        bind_(parse_address(bind).value()),
        loopback_(parse_address(loopback).value()) {}

  Driver& driver() override { return *driver_; }

  Address bind_address() override { return bind_; }

  Address reach(const PacketIo& queue) override {
    Address address = loopback_;
    address.port = queue.local_address().value().port;
    return address;
  }

  Instant now() override {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return Instant{static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(t.tv_nsec)};
  }

  void wait() override { ::usleep(200); }

  std::optional<Address> refusing_address() override {
    Address address = loopback_;
    address.port = 9;  // discard(7): not bound on any host of today
    return address;
  }

  std::optional<SecondAddress> second_address(std::uint16_t port) override {
    const auto reach = loopback_.family == 4 ? parse_address("127.0.0.2") : global_v6_address();
    if (!reach) return std::nullopt;
    SecondAddress second{bind_, *reach};
    std::memset(second.bind.bytes, 0, sizeof second.bind.bytes);
    second.reach.port = port;
    return second;
  }

 private:
  std::unique_ptr<Driver> driver_;
  Address bind_, loopback_;
};

std::unique_ptr<DriverBed> make_udp(const udp::Options& options, const char* bind,
                                    const char* loopback, std::string& why_not) {
  auto driver = udp::make_driver(options);
  if (!driver) {
    why_not = error_text();
    return nullptr;
  }
  auto bed = std::make_unique<UdpBed>(std::move(*driver), bind, loopback);
  QueueConfig config;
  config.bind = bed->bind_address();
  if (!bed->driver().open_queue(config)) {
    why_not = bed->driver().last_error();
    return nullptr;
  }
  return bed;
}

std::unique_ptr<DriverBed> make_udp_v4(std::string& why_not) {
  udp::Options options;
  options.bind.family = 4;
  return make_udp(options, "127.0.0.1:0", "127.0.0.1:0", why_not);
}

std::unique_ptr<DriverBed> make_udp_v6(std::string& why_not) {
  udp::Options options;
  options.bind.family = 6;
  return make_udp(options, "[::1]:0", "[::1]:0", why_not);
}

/// One socket for both families, spoken to over IPv4.
std::unique_ptr<DriverBed> make_udp_dual(std::string& why_not) {
  return make_udp(udp::Options{}, "[::]:0", "127.0.0.1:0", why_not);
}

std::unique_ptr<DriverBed> make_udp_plain(std::string& why_not) {
  udp::Options options;
  options.bind.family = 4;
  options.gso = false;
  options.gro = false;
  return make_udp(options, "127.0.0.1:0", "127.0.0.1:0", why_not);
}

}  // namespace

const std::vector<DriverBedEntry>& driver_beds() {
  static const std::vector<DriverBedEntry> kBeds{
      {"udp_v4", make_udp_v4},
      {"udp_v6", make_udp_v6},
      {"udp_dual_stack", make_udp_dual},
      {"udp_without_offloads", make_udp_plain},
  };
  return kBeds;
}

}  // namespace srd::test
