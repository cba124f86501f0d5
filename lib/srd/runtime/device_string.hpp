// SPDX-License-Identifier: Apache-2.0
// A device string taken apart: "driver:address?options". Which options exist is the driver's
// business.
#pragma once

#include <string>

#include "srd/address.hpp"
#include "srd/error.hpp"

namespace srd::runtime {

struct DeviceString {
  std::string text;     ///< the whole, for error texts
  std::string driver;   ///< "udp"
  std::string place;    ///< between the colon and '?': an address, or a device name of that driver
  std::string options;  ///< after '?', without it
};

/// Errors: invalid_argument with this thread's error text set. Allocates. Any thread.
Errc parse_device_string(const char* text, DeviceString& out);

}  // namespace srd::runtime
