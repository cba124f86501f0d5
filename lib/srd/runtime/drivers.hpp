// SPDX-License-Identifier: Apache-2.0
// The registry of drivers by name, and the devices of this host. The only place of the library that
// knows which drivers there are.
#pragma once

#include <memory>
#include <vector>

#include "srd/driver.hpp"
#include "srd/runtime/device_string.hpp"

namespace srd::runtime {

/// A device as its string describes it.
struct OpenedDevice {
  std::unique_ptr<Driver> driver;
  QueueConfig queue;  ///< what endpoints use unless they say otherwise: address, number of paths
};

struct DriverEntry {
  const char* name;
  /// Errors set this thread's error text: unknown options, unusable address, missing kernel
  /// support.
  Result<OpenedDevice> (*open)(const DeviceString& device);
};

/// Errors: no_device for an unknown driver name, else those of the driver; all with an error text.
/// Allocates. Any thread.
Result<OpenedDevice> open_device(const DeviceString& device);

/// Adds a driver, or replaces the one of that name; for the simulator and for tests. `entry.name`
/// must stay valid. Any thread.
void register_driver(const DriverEntry& entry);

/// One entry per driver: what it can do here, or why it cannot. Allocates. Any thread.
std::vector<srd_device_info> list_devices();

}  // namespace srd::runtime
