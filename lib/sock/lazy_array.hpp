// SPDX-License-Identifier: Apache-2.0
// A zero-filled table whose pages cost memory only once touched. For tables sized for the worst
// case (65,536 paths) of which most endpoints use a few entries.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace srd::sock {

template <class T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T>, "entries start as zero bytes");

 public:
  LazyArray() = default;

  /// `count` zeroed entries; is_valid() is false if the address space is exhausted.
  explicit LazyArray(std::size_t count) noexcept {
    void* memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    data_ = static_cast<T*>(memory);
    size_ = count;
  }

  ~LazyArray() {
    if (data_ != nullptr) ::munmap(data_, size_ * sizeof(T));
  }

  LazyArray(LazyArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

  LazyArray& operator=(LazyArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;

  [[nodiscard]] bool is_valid() const noexcept { return data_ != nullptr; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] T* data() noexcept { return data_; }

  T& operator[](std::size_t i) noexcept { return data_[i]; }

  const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace srd::sock
