// SPDX-License-Identifier: Apache-2.0
// Texts in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace apps {

/// The parts of `text` between separators; empty ones are left out.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    if (!part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace apps
