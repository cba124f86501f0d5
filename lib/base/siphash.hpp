// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash of short inputs. Used for check
// seeds and cookies; not a substitute for authenticated encryption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace srd {

/// Any thread; O(bytes).
std::uint64_t siphash24(std::span<const std::uint8_t, 16> key,
                        std::span<const std::byte> data) noexcept;

}  // namespace srd
