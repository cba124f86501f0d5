// SPDX-License-Identifier: Apache-2.0
// The version of the library that a tool runs with.
#pragma once

#include <string>

#include <fmt/format.h>

#include "srd/srd.h"

namespace apps {

/// "0.1.0"
inline std::string version_text() {
  const std::uint32_t version = srd_version();
  return fmt::format("{}.{}.{}", version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff);
}

}  // namespace apps
