// SPDX-License-Identifier: Apache-2.0
// Reports of srd-info; see the header.
#include "srd_info/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "srd/srd.h"

#include "common/text.hpp"
#include "common/version.hpp"

namespace info {

bool any_usable(std::span<const srd_device_info> devices) noexcept {
  return std::any_of(devices.begin(), devices.end(),
                     [](const srd_device_info& device) { return device.usable != 0; });
}

std::string text_report(std::span<const srd_device_info> devices) {
  std::string out = fmt::format("OpenSRD {}\n\n", apps::version_text());
  if (devices.empty()) return out + "No drivers in this build.\n";
  out += fmt::format("{:<8} {:<7} {:<20} {:>14} {:>9} {:>17}\n", "Driver", "Usable", "Device",
                     "Datagram bytes", "Paths max", "Receive buffer");
  for (const srd_device_info& device : devices) {
    out += fmt::format("{:<8} {:<7} {:<20} {:>14} {:>9} {:>11} bytes\n", device.driver,
                       device.usable != 0 ? "yes" : "no", device.usable != 0 ? device.device : "-",
                       device.datagram_bytes_max, device.paths_max, device.rx_buffer_bytes);
  }
  for (const srd_device_info& device : devices) {
    out += fmt::format("\n{}: {}\n", device.driver, device.description);
    std::string has;
    std::string lacks;
    for (const std::string& word : apps::split(device.capabilities, ' ')) {
      const bool missing = word.starts_with("no-");
      std::string& list = missing ? lacks : has;
      list += (list.empty() ? "" : ", ") + (missing ? word.substr(3) : word);
    }
    if (!has.empty()) out += fmt::format("  has:   {}\n", has);
    if (!lacks.empty()) out += fmt::format("  lacks: {}\n", lacks);
    for (const std::string& line : apps::split(device.advice, '\n')) {
      out += fmt::format("  advice: {}\n", line);
    }
  }
  return out;
}

nlohmann::ordered_json json_report(std::span<const srd_device_info> devices) {
  nlohmann::ordered_json out;
  out["version"] = apps::version_text();
  out["devices"] = nlohmann::ordered_json::array();
  for (const srd_device_info& device : devices) {
    nlohmann::ordered_json entry;
    entry["driver"] = device.driver;
    entry["device"] = device.device;
    entry["usable"] = device.usable != 0;
    entry["description"] = device.description;
    entry["capabilities"] = nlohmann::ordered_json::array();
    entry["missing"] = nlohmann::ordered_json::array();
    for (const std::string& word : apps::split(device.capabilities, ' ')) {
      if (word.starts_with("no-")) {
        entry["missing"].push_back(word.substr(3));
      } else {
        entry["capabilities"].push_back(word);
      }
    }
    entry["limits"] = {{"datagram_bytes_max", device.datagram_bytes_max},
                       {"paths_max", device.paths_max},
                       {"rx_buffer_bytes", device.rx_buffer_bytes}};
    entry["advice"] = apps::split(device.advice, '\n');
    out["devices"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace info
