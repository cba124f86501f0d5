// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/device_string.hpp"

#include "base/error_text.hpp"

namespace srd::runtime {

Errc parse_device_string(const char* text, DeviceString& out) {
  DeviceString device{text, {}, {}, {}};
  const std::size_t colon = device.text.find(':');
  if (colon == 0 || colon == std::string::npos) {
    fail(Errc::invalid_argument,
         "srd_context_open: device \"%s\" has no driver name before a colon; write udp: or "
         "udp:0.0.0.0:7000?paths=16",
         text);
    return Errc::invalid_argument;
  }
  device.driver = device.text.substr(0, colon);
  const std::size_t mark = device.text.find('?', colon);
  device.place = device.text.substr(colon + 1, mark == std::string::npos ? mark : mark - colon - 1);
  if (mark != std::string::npos) device.options = device.text.substr(mark + 1);
  out = std::move(device);
  return Errc::ok;
}

}  // namespace srd::runtime
