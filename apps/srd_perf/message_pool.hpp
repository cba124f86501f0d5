// SPDX-License-Identifier: Apache-2.0
// Memory of messages in flight. Sends are zero-copy: a message's memory is the library's until its
// completion. Without --verify all messages share one block, as iperf3 writes one block over and
// over, and only their numbers differ; with --verify every message in flight has memory of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "srd/srd.h"

namespace perf {

class MessagePool {
 public:
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  /// What precedes the shared block in each message.
  enum class Content : std::uint8_t {
    block,     ///< nothing: the shared block is the whole message
    numbered,  ///< its number, kNumberBytes long
    verified   ///< all bytes are its own, made by fill_pattern()
  };

  MessagePool(Content content, std::uint64_t message_bytes, std::uint32_t slots,
              std::uint64_t pattern_key);

  /// A free slot, now taken, or kNoSlot.
  std::uint32_t take() noexcept;
  void give_back(std::uint32_t slot) noexcept;

  [[nodiscard]] std::uint32_t in_flight() const noexcept {
    return slots_ - static_cast<std::uint32_t>(free_.size());
  }

  struct Pieces {
    std::array<srd_iov, 2> iov{};
    std::size_t count = 0;

    [[nodiscard]] std::span<const srd_iov> view() const noexcept { return {iov.data(), count}; }
  };

  /// The memory of message `number` in `slot`, cut to `bytes`. O(1); verified: O(bytes).
  Pieces prepare(std::uint32_t slot, std::uint64_t number, std::uint64_t bytes) noexcept;

 private:
  Content content_;
  std::uint64_t message_bytes_;
  std::uint32_t slots_;
  std::uint64_t key_;
  std::vector<std::byte> block_;  ///< shared
  std::vector<std::byte> own_;    ///< per slot: kNumberBytes or message_bytes_
  std::vector<std::uint32_t> free_;
};

}  // namespace perf
