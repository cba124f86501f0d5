// SPDX-License-Identifier: Apache-2.0
// A token bucket: lets a burst through at once and a rate in the long run, and counts the rest.
// Time comes in; nothing here reads a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace srd {

class RateLimit {
 public:
  /// `burst` >= 1 at once, one more every `interval_ns` after that.
  constexpr RateLimit(std::uint64_t burst, std::uint64_t interval_ns) noexcept
      : interval_ns_(interval_ns), full_ns_(burst * interval_ns), credit_ns_(full_ns_) {}

  /// True if one may pass at `now_ns`, which never decreases.
  constexpr bool take(std::uint64_t now_ns) noexcept {
    const std::uint64_t passed_ns = now_ns - std::exchange(last_ns_, now_ns);
    credit_ns_ = passed_ns >= full_ns_ ? full_ns_ : std::min(full_ns_, credit_ns_ + passed_ns);
    if (credit_ns_ < interval_ns_) {
      ++refused_;
      return false;
    }
    credit_ns_ -= interval_ns_;
    return true;
  }

  /// How many take() refused since the last call of this.
  constexpr std::uint64_t take_refused() noexcept { return std::exchange(refused_, 0); }

 private:
  std::uint64_t interval_ns_;
  std::uint64_t full_ns_;
  std::uint64_t credit_ns_;
  std::uint64_t last_ns_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace srd
