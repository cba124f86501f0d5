// SPDX-License-Identifier: Apache-2.0
// Zero-filled memory whose pages cost nothing until they are touched: pools can be sized for the
// worst case and still be cheap for an idle endpoint.
#pragma once

#include <cstddef>

namespace srd {

class LazyMemory {
 public:
  LazyMemory() = default;
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;
  ~LazyMemory();

  /// Reserves `bytes`; called once. False: no address space left.
  bool allocate(std::size_t bytes) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace srd
