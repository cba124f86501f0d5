// SPDX-License-Identifier: Apache-2.0
// Round-trip estimators: smoothed RTT and variation (RFC 6298 gains), and the smallest sample of
// the last ten to twenty seconds as the base without queueing.
#pragma once

#include <algorithm>
#include <cstdint>

namespace srd::core {

class RttEstimator {
 public:
  void reset() noexcept { *this = RttEstimator{}; }

  /// One sample in ns, taken at `now_ns`.
  void add(std::uint64_t rtt_ns, std::uint64_t now_ns) noexcept {
    add_rough(rtt_ns);
    add_base(rtt_ns, now_ns);
  }

  /// A sample that may be too short, too: good enough to smooth, not to lower the base.
  void add_rough(std::uint64_t rtt_ns) noexcept {
    rtt_ns = std::max<std::uint64_t>(rtt_ns, 1);
    if (srtt_ns_ == 0) {
      srtt_ns_ = rtt_ns;
      variation_ns_ = rtt_ns / 2;
    } else {
      const std::uint64_t error = rtt_ns > srtt_ns_ ? rtt_ns - srtt_ns_ : srtt_ns_ - rtt_ns;
      variation_ns_ = (3 * variation_ns_ + error) / 4;
      srtt_ns_ = (7 * srtt_ns_ + rtt_ns) / 8;
    }
  }

  /// A sample that may contain some waiting: good enough to lower the base, not to smooth.
  void add_base(std::uint64_t rtt_ns, std::uint64_t now_ns) noexcept {
    rtt_ns = std::max<std::uint64_t>(rtt_ns, 1);
    if (now_ns - period_start_ns_ > kBasePeriodNs) {
      previous_min_ns_ = current_min_ns_;
      current_min_ns_ = rtt_ns;
      period_start_ns_ = now_ns;
    }
    current_min_ns_ = std::min(current_min_ns_, rtt_ns);
  }

  [[nodiscard]] bool has_sample() const noexcept { return srtt_ns_ != 0; }

  [[nodiscard]] std::uint64_t srtt_ns() const noexcept { return srtt_ns_; }

  [[nodiscard]] std::uint64_t variation_ns() const noexcept { return variation_ns_; }

  /// UINT64_MAX before the first sample.
  [[nodiscard]] std::uint64_t base_ns() const noexcept {
    return std::min(current_min_ns_, previous_min_ns_);
  }

 private:
  static constexpr std::uint64_t kBasePeriodNs = 10'000'000'000;
  std::uint64_t srtt_ns_ = 0, variation_ns_ = 0;
  std::uint64_t current_min_ns_ = UINT64_MAX, previous_min_ns_ = UINT64_MAX;
  std::uint64_t period_start_ns_ = 0;
};

}  // namespace srd::core
