// SPDX-License-Identifier: Apache-2.0
// Receiver log: bytes per bin of fixed width, against CLOCK_MONOTONIC, so that a script on the same
// host can put the moment of a fault beside it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.hpp"
#include "srd_perf/results.hpp"

namespace perf {

class Bins {
 public:
  Bins(std::uint32_t bin_ms, std::uint64_t start_ns) {
    log_.bin_ms = bin_ms;
    log_.start_monotonic_ns = start_ns;
  }

  void count(std::uint64_t now_ns, std::uint64_t bytes) {
    const std::uint64_t since = now_ns - std::min(now_ns, log_.start_monotonic_ns);
    const auto bin = static_cast<std::size_t>(since / (log_.bin_ms * apps::kNsPerMs));
    if (bin >= kBinsMax) return;
    if (bin >= log_.bytes.size()) log_.bytes.resize(bin + 1);
    log_.bytes[bin] += bytes;
  }

  [[nodiscard]] const BinLog& log() const noexcept { return log_; }

  /// A log ends after this many bins (16 minutes of 1 ms), so that it fits in a control message.
  static constexpr std::size_t kBinsMax = 1'000'000;

 private:
  BinLog log_;
};

}  // namespace perf
