// SPDX-License-Identifier: Apache-2.0
// Log-linear histogram of nanoseconds: constant relative error, constant cost per value, no
// allocation after construction. Values beyond the largest bucket are counted in it; min, max and
// mean stay exact.
#pragma once

#include <cstdint>
#include <vector>

namespace apps {

class Histogram {
 public:
  /// `precision_bits` p: buckets are at most 2^-p of their value wide (10: 0.1 %, 7: 0.8 %).
  /// Memory: 8 bytes x 2^p x (43 - p).
  explicit Histogram(unsigned precision_bits = 10);

  void record(std::uint64_t value_ns) noexcept;
  void add(const Histogram& other) noexcept;  ///< of the same precision
  void reset() noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  [[nodiscard]] std::uint64_t min_ns() const noexcept { return count_ == 0 ? 0 : min_; }

  [[nodiscard]] std::uint64_t max_ns() const noexcept { return max_; }

  [[nodiscard]] double mean_ns() const noexcept;
  /// Smallest value that at least `percentile` percent of all values do not exceed, rounded up to
  /// the end of its bucket and never beyond max_ns(). 0 if empty. O(buckets).
  [[nodiscard]] std::uint64_t percentile_ns(double percentile) const noexcept;

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t value) const noexcept;
  [[nodiscard]] std::uint64_t highest_value(std::size_t index) const noexcept;

  unsigned precision_bits_;
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace apps
