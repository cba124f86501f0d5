// SPDX-License-Identifier: Apache-2.0
// Zero-filled memory whose pages cost nothing until they are touched: pools can be sized for the
// worst case and still be cheap for an idle endpoint.
#pragma once

#include <cstddef>
#include <utility>

namespace srd {

class LazyMemory {
 public:
  LazyMemory() = default;
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  LazyMemory(LazyMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

  LazyMemory& operator=(LazyMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  ~LazyMemory();

  /// Reserves `bytes`; called once. False: no address space left.
  bool allocate(std::size_t bytes) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace srd
