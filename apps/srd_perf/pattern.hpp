// SPDX-License-Identifier: Apache-2.0
// Content of verified messages and the check that each comes exactly once (--verify). A message is
// its number, little-endian, then pseudo-random bytes that follow from session, stream and number,
// so that misplaced, mixed and repeated pieces show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

/// Key of one stream of one test, the same on both sides.
std::uint64_t pattern_key(std::string_view cookie, std::uint32_t stream) noexcept;

/// Writes message `number` into `out` (at least kNumberBytes).
void fill_pattern(std::uint64_t key, std::uint64_t number, std::span<std::byte> out) noexcept;

/// The number in the first kNumberBytes of a message.
std::uint64_t read_number(std::span<const std::byte> message) noexcept;
void write_number(std::uint64_t number, std::span<std::byte> out) noexcept;

/// Checks a message that comes in pieces, in order.
class PatternCheck {
 public:
  PatternCheck(std::uint64_t key, std::uint64_t number) noexcept : key_(key), number_(number) {}

  /// False at the first wrong byte; its offset is then wrong_at().
  bool accept(std::span<const std::byte> piece) noexcept;

  [[nodiscard]] std::uint64_t wrong_at() const noexcept { return offset_; }

 private:
  std::uint64_t key_;
  std::uint64_t number_;
  std::uint64_t offset_ = 0;
};

/// Which message numbers have come. Memory grows with the gap between the oldest missing and the
/// newest number only.
class SequenceSet {
 public:
  enum class Insert : std::uint8_t { fresh, duplicate, implausible };

  /// implausible: more than kGapMax ahead of the oldest missing number.
  Insert insert(std::uint64_t number);
  /// Every number below has come.
  [[nodiscard]] std::uint64_t complete_below() const noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  static constexpr std::uint64_t kGapMax = 1U << 26;

 private:
  std::uint64_t base_word_ = 0;  ///< words before it are all ones and gone
  std::vector<std::uint64_t> words_;
  std::uint64_t count_ = 0;
};

}  // namespace perf
