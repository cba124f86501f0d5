// SPDX-License-Identifier: Apache-2.0
// Bucket arithmetic of the histogram. With p precision bits, values below 2^(p+1) have a bucket
// each; above that, every power of two is cut into 2^p buckets.
#include "common/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace apps {
namespace {

constexpr unsigned kValueBits = 42;  // 73 minutes in nanoseconds

}  // namespace

Histogram::Histogram(unsigned precision_bits)
    : precision_bits_(precision_bits),
      buckets_((std::size_t{1} << precision_bits) * (kValueBits - precision_bits + 1)) {}

std::size_t Histogram::index_of(std::uint64_t value) const noexcept {
  const unsigned width = static_cast<unsigned>(std::bit_width(value));
  if (width <= precision_bits_ + 1) return static_cast<std::size_t>(value);
  if (width > kValueBits) return buckets_.size() - 1;
  const unsigned shift = width - precision_bits_ - 1;
  return (static_cast<std::size_t>(shift) << precision_bits_) +
         static_cast<std::size_t>(value >> shift);
}

std::uint64_t Histogram::highest_value(std::size_t index) const noexcept {
  const std::size_t linear = std::size_t{2} << precision_bits_;
  if (index < linear) return index;
  const std::size_t shift = (index >> precision_bits_) - 1;
  const std::uint64_t mantissa = index - (shift << precision_bits_);
  return ((mantissa + 1) << shift) - 1;
}

void Histogram::record(std::uint64_t value_ns) noexcept {
  ++buckets_[index_of(value_ns)];
  ++count_;
  min_ = std::min(min_, value_ns);
  max_ = std::max(max_, value_ns);
  sum_ += static_cast<double>(value_ns);
}

void Histogram::add(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

void Histogram::reset() noexcept {
  std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = 0;
  min_ = UINT64_MAX;
  max_ = 0;
  sum_ = 0;
}

double Histogram::mean_ns() const noexcept {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::percentile_ns(double percentile) const noexcept {
  if (count_ == 0) return 0;
  const double share = std::clamp(percentile, 0.0, 100.0) / 100.0;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_) - 1e-9)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) {
      return i + 1 == buckets_.size() ? max_ : std::clamp(highest_value(i), min_, max_);
    }
  }
  return max_;
}

}  // namespace apps
