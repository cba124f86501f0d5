// SPDX-License-Identifier: Apache-2.0
// A statistic with one writer and any number of reading threads. Relaxed load and store compile to
// plain moves: no locked instruction on the data path.
#pragma once

#include <atomic>
#include <cstdint>

namespace srd {

class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace srd
