// SPDX-License-Identifier: Apache-2.0
// Serial-number arithmetic for 16- and 32-bit wire counters. Source: RFC 1982.
#pragma once

#include <cstdint>

namespace srd {

/// a - b as a signed distance; meaningful while the true distance is below half the number space.
constexpr std::int32_t seq_diff(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b);
}

constexpr bool seq_less(std::uint32_t a, std::uint32_t b) noexcept {
  return seq_diff(a, b) < 0;
}

constexpr bool seq_less_equal(std::uint32_t a, std::uint32_t b) noexcept {
  return seq_diff(a, b) <= 0;
}

constexpr std::int16_t seq_diff16(std::uint16_t a, std::uint16_t b) noexcept {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b));
}

}  // namespace srd
