// SPDX-License-Identifier: Apache-2.0
// Decodes a whole packet and encodes it again, for tests and fuzzing of the wire format.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace srd::test {

/// Nothing if any part of `packet` is malformed. Else the canonical form of it: what this library
/// would send with these contents. A packet in canonical form comes back unchanged.
std::optional<std::vector<std::byte>> reencode(std::span<const std::byte> packet);

}  // namespace srd::test
