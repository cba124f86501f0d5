// SPDX-License-Identifier: Apache-2.0
// What srd-info says about the devices of this host, for people and for programs.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "srd/srd.h"

namespace info {

/// A table, the limits, and what to do about what is missing.
std::string text_report(std::span<const srd_device_info> devices);

/// The same as one JSON document.
nlohmann::ordered_json json_report(std::span<const srd_device_info> devices);

/// Can any device be opened?
bool any_usable(std::span<const srd_device_info> devices) noexcept;

}  // namespace info
