// SPDX-License-Identifier: Apache-2.0
// What a driver brings along to be tested by conformance_test.cpp. To add a driver: derive a bed,
// add a line to driver_beds() in driver_beds.cpp. The suite itself knows no driver.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "srd/driver.hpp"

namespace srd::test {

class DriverBed {
 public:
  virtual ~DriverBed() = default;
  virtual Driver& driver() = 0;
  /// Where queues are bound unless a test says otherwise; port 0.
  virtual Address bind_address() = 0;
  /// The address under which `queue` is reached by another queue of this bed.
  virtual Address reach(const PacketIo& queue) = 0;
  /// The time source of RxDatagram::arrived.
  virtual Instant now() = 0;
  /// Lets a little time pass, so that what is under way arrives.
  virtual void wait() = 0;

  // --- what not every driver or host has; nullopt makes the tests skip ---
  /// An address whose host answers "nobody listens".
  virtual std::optional<Address> refusing_address() { return std::nullopt; }

  /// A wildcard address to bind to, and a second address of this host that then reaches the queue.
  struct SecondAddress {
    Address bind, reach;
  };

  virtual std::optional<SecondAddress> second_address(std::uint16_t) { return std::nullopt; }
};

struct DriverBedEntry {
  const char* name;
  /// nullptr: not available here, `why_not` says why.
  std::unique_ptr<DriverBed> (*make)(std::string& why_not);
};

/// For GoogleTest's listings.
inline void PrintTo(const DriverBedEntry& entry, std::ostream* out) {
  *out << entry.name;
}

const std::vector<DriverBedEntry>& driver_beds();

}  // namespace srd::test
