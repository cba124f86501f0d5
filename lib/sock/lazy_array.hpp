// SPDX-License-Identifier: Apache-2.0
// A zero-filled table whose pages cost memory only once touched. For tables sized for the worst
// case (65,536 paths) of which most endpoints use a few entries.
#pragma once

#include <cstddef>
#include <type_traits>

#include "base/lazy_memory.hpp"

namespace srd::sock {

template <class T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T>, "entries start as zero bytes");

 public:
  LazyArray() = default;

  /// `count` zeroed entries; is_valid() is false if the address space is exhausted.
  explicit LazyArray(std::size_t count) noexcept {
    if (memory_.allocate(count * sizeof(T))) size_ = count;
  }

  [[nodiscard]] bool is_valid() const noexcept { return size_ != 0; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(memory_.data()); }

  T& operator[](std::size_t i) noexcept { return data()[i]; }

  const T& operator[](std::size_t i) const noexcept {
    return reinterpret_cast<const T*>(memory_.data())[i];
  }

 private:
  LazyMemory memory_;
  std::size_t size_ = 0;
};

}  // namespace srd::sock
