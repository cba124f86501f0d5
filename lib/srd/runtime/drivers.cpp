// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/drivers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "base/error_text.hpp"
#include "base/options.hpp"
#include "udp/udp_driver.hpp"

namespace srd::runtime {
namespace {

Result<OpenedDevice> open_udp(const DeviceString& device) {
  udp::Options wanted;
  Options options(device.options);
  std::uint64_t paths = wanted.paths;
  std::uint64_t rcvbuf_bytes = wanted.rcvbuf_bytes;
  std::uint64_t sndbuf_bytes = wanted.sndbuf_bytes;
  std::uint64_t datagram_bytes = wanted.datagram_bytes;
  options.take_number("paths", 1, udp::kPathsMax, paths);
  options.take_flag("gso", wanted.gso);
  options.take_flag("gro", wanted.gro);
  options.take_flag("ecn", wanted.ecn);
  options.take_number("rcvbuf_bytes", udp::kSocketBufferBytesMin, udp::kSocketBufferBytesMax,
                      rcvbuf_bytes);
  options.take_number("sndbuf_bytes", udp::kSocketBufferBytesMin, udp::kSocketBufferBytesMax,
                      sndbuf_bytes);
  options.take_number("datagram_bytes", udp::kDatagramBytesMin, udp::kDatagramBytesMax,
                      datagram_bytes);
  const std::string subject = "srd_context_open: device \"" + device.text + "\"";
  if (const Errc status = options.finish(subject.c_str()); status != Errc::ok) return status;
  wanted.paths = static_cast<std::uint16_t>(paths);
  wanted.rcvbuf_bytes = static_cast<std::uint32_t>(rcvbuf_bytes);
  wanted.sndbuf_bytes = static_cast<std::uint32_t>(sndbuf_bytes);
  wanted.datagram_bytes = static_cast<std::uint32_t>(datagram_bytes);

  OpenedDevice opened;
  if (!device.place.empty()) {
    const auto bind = parse_address(device.place);
    if (!bind) return bind.errc();
    opened.queue.bind = *bind;
  }
  opened.queue.paths = wanted.paths;
  auto driver = udp::make_driver(wanted);
  if (!driver) return driver.errc();
  opened.driver = std::move(*driver);
  return opened;
}

struct Registry {
  std::mutex mutex;
  std::vector<DriverEntry> entries{{"udp", open_udp}};
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

std::string describe(const Driver& driver) {
  std::string text;
  for (const Feature& feature : driver.features()) {
    text.append(text.empty() ? "" : " ").append(feature.present ? "" : "no-").append(feature.name);
  }
  return text;
}

/// What the core cannot serve. Better no device than one that is treated as if it were another.
Errc check_served(const DeviceString& device, const Capabilities& can) {
  const char* what = can.reliable          ? "retransmits by itself"
                     : can.tx_needs_region ? "sends from registered memory only"
                                           : nullptr;
  if (what == nullptr) return Errc::ok;
  fail(Errc::not_supported,
       "srd_context_open: device \"%s\" %s, which this version cannot make use of; use another "
       "device (srd-info lists them)",
       device.text.c_str(), what);
  return Errc::not_supported;
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
  copy_text(opened->driver->description(), info.description);
  copy_text(describe(*opened->driver), info.capabilities);
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
    if (device.driver == entry.name) {
      auto opened = entry.open(device);
      if (!opened) return opened;
      const Errc status = check_served(device, opened->driver->capabilities());
      if (status != Errc::ok) return status;
      return opened;
    }
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
