// SPDX-License-Identifier: Apache-2.0
// Receive memory of one queue: equal buffers, each large enough for what GRO joins (64 KB), counted
// by the datagrams in them. Last in, first out, so that an endpoint with little on loan touches
// little memory and finds it in the cache. Pages cost memory only once touched.
#pragma once

#include <cstdint>
#include <memory>

#include "srd/datagram.hpp"

#include "sock/lazy_array.hpp"

namespace srd::udp {

class RxBuffers {
 public:
  static constexpr std::uint32_t kBytes = 65536;
  static constexpr std::uint32_t kDefaultCount = 512;
  static constexpr std::uint32_t kCountMax = 1U << 20;

  explicit RxBuffers(std::uint32_t count) noexcept;

  [[nodiscard]] bool is_valid() const noexcept { return memory_.is_valid() && meta_.is_valid(); }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  [[nodiscard]] std::uint32_t free_count() const noexcept { return free_; }

  /// Less than a quarter is free: whoever gets one now should not keep it.
  [[nodiscard]] bool is_scarce() const noexcept { return free_ < count_ / 4; }

  /// The i-th buffer that take() would hand out, i < free_count().
  [[nodiscard]] std::uint32_t peek(std::uint32_t i) const noexcept { return stack_[free_ - 1 - i]; }

  /// Takes the first `n` that peek() showed.
  void take(std::uint32_t n) noexcept { free_ -= n; }

  void give_back(std::uint32_t buffer) noexcept { stack_[free_++] = buffer; }

  [[nodiscard]] std::byte* data(std::uint32_t buffer) noexcept {
    return memory_.data() + std::size_t{buffer} * kStride;
  }

  [[nodiscard]] Address& source(std::uint32_t buffer) noexcept { return meta_[buffer].source; }

  void set_references(std::uint32_t buffer, std::uint32_t n) noexcept {
    meta_[buffer].references = n;
  }

  /// Drops one reference. Unknown or free buffers are ignored: false.
  bool release(BufferId buffer) noexcept;

 private:
  // Not a power of two: equal offsets of all buffers would share a few sets of the cache.
  static constexpr std::size_t kStride = kBytes + 5 * 64;

  struct Meta {
    Address source;
    std::uint32_t references;
  };

  std::uint32_t count_ = 0;
  std::uint32_t free_ = 0;
  sock::LazyArray<std::byte> memory_;
  sock::LazyArray<Meta> meta_;
  sock::LazyArray<std::uint32_t> stack_;
};

}  // namespace srd::udp
