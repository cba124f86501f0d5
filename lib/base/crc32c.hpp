// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli; RFC 3720 appendix B.4) at memory speed. The best implementation this CPU has
// is chosen at the first call; all give equal results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace srd {

/// crc32c(0, data) is the CRC32C of `data`; crc32c(crc32c(0, a), b) that of a followed by b. Any
/// other start value gives a seeded check. Any thread; O(bytes).
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> data) noexcept;

/// The implementations, slowest first; for tests and benchmarks.
enum class Crc32cMethod : std::uint8_t {
  table,   ///< any CPU, 8 bytes per step
  sse42,   ///< x86 crc32 instruction in three interleaved streams, joined by PCLMULQDQ
  avx512,  ///< x86 VPCLMULQDQ folding of 256 bytes per step
};
inline constexpr Crc32cMethod kCrc32cMethods[] = {Crc32cMethod::table, Crc32cMethod::sse42,
                                                  Crc32cMethod::avx512};

/// True if this CPU can run `method`.
bool crc32c_has(Crc32cMethod method) noexcept;

/// Like crc32c() by the given method, which must be available.
std::uint32_t crc32c_by(Crc32cMethod method, std::uint32_t crc,
                        std::span<const std::byte> data) noexcept;

/// "table", "sse42", "avx512".
const char* to_string(Crc32cMethod method) noexcept;

}  // namespace srd
