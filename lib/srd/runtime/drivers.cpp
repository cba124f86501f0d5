// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/drivers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "base/error_text.hpp"

namespace srd::runtime {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<DriverEntry> entries;
};

Registry& registry() {
  static Registry registry;
  return registry;
}

std::vector<DriverEntry> drivers() {
  const std::lock_guard lock(registry().mutex);
  return registry().entries;
}

template <std::size_t N>
void copy_text(const std::string& text, char (&out)[N]) {
  std::snprintf(out, N, "%s", text.c_str());
}

std::string describe(const Capabilities& can) {
  const auto word = [](bool has, const char* name) {
    return std::string(has ? "" : "no-").append(name).append(" ");
  };
  std::string text = word(can.tx_burst_segments_max > 1, "gso");
  text.append(word(can.ecn, "ecn")).append(word(can.can_sleep, "sleep"));
  text.append(word(can.pacing, "pacing")).append(word(can.reliable, "reliable"));
  text.pop_back();
  return text;
}

srd_device_info describe_driver(const DriverEntry& entry) {
  srd_device_info info{};
  const std::string name = entry.name;
  copy_text(name, info.driver);
  const auto opened = entry.open(DeviceString{name + ":", name, {}, {}});
  if (!opened) {
    copy_text("cannot be used on this host", info.description);
    copy_text(error_text(), info.advice);
    return info;
  }
  const Capabilities can = opened->driver->capabilities();
  copy_text(name + ":", info.device);
  copy_text(opened->driver->name(), info.description);
  copy_text(describe(can), info.capabilities);
  std::string advice;
  for (const std::string& line : opened->driver->advice()) advice += line + "\n";
  if (!advice.empty()) advice.pop_back();
  copy_text(advice, info.advice);
  info.usable = 1;
  info.datagram_bytes_max = can.datagram_bytes_max;
  info.paths_max = can.paths_max;
  info.rx_buffer_bytes = can.rx_buffer_bytes;
  return info;
}

}  // namespace

Result<OpenedDevice> open_device(const DeviceString& device) {
  std::string known;
  for (const DriverEntry& entry : drivers()) {
    if (device.driver == entry.name) return entry.open(device);
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  fail(Errc::no_device, "srd_context_open: device \"%s\" names an unknown driver; known are: %s",
       device.text.c_str(), known.c_str());
  return Errc::no_device;
}

void register_driver(const DriverEntry& entry) {
  const std::lock_guard lock(registry().mutex);
  auto& entries = registry().entries;
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const DriverEntry& present) {
    return std::strcmp(present.name, entry.name) == 0;
  });
  if (same != entries.end()) {
    *same = entry;
  } else {
    entries.push_back(entry);
  }
}

std::vector<srd_device_info> list_devices() {
  std::vector<srd_device_info> devices;
  for (const DriverEntry& entry : drivers()) devices.push_back(describe_driver(entry));
  return devices;
}

}  // namespace srd::runtime
