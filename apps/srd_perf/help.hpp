// SPDX-License-Identifier: Apache-2.0
// The texts of --help and --version.
#pragma once

#include <string>

namespace perf {

std::string help_text();
std::string version_text();

/// "srd-perf 0.1.0"
std::string program_version();

}  // namespace perf
