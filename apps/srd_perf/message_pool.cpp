// SPDX-License-Identifier: Apache-2.0
// Slots of messages in flight; see the header.
#include "srd_perf/message_pool.hpp"

#include "srd_perf/parameters.hpp"
#include "srd_perf/pattern.hpp"

namespace perf {

MessagePool::MessagePool(Content content, std::uint64_t message_bytes, std::uint32_t slots,
                         std::uint64_t pattern_key)
    : content_(content), message_bytes_(message_bytes), slots_(slots), key_(pattern_key) {
  if (content_ != Content::verified) {
    block_.resize(message_bytes_);
    // Not zeros: whatever compresses or shares pages on the way would flatter the result.
    fill_pattern(key_, 0, block_);
  }
  if (content_ == Content::numbered) own_.resize(std::size_t{slots_} * kNumberBytes);
  if (content_ == Content::verified) own_.resize(slots_ * message_bytes_);
  free_.reserve(slots_);
  for (std::uint32_t slot = slots_; slot > 0; --slot) free_.push_back(slot - 1);
}

std::uint32_t MessagePool::take() noexcept {
  if (free_.empty()) return kNoSlot;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void MessagePool::give_back(std::uint32_t slot) noexcept {
  free_.push_back(slot);
}

MessagePool::Pieces MessagePool::prepare(std::uint32_t slot, std::uint64_t number,
                                         std::uint64_t bytes) noexcept {
  Pieces pieces;
  switch (content_) {
    case Content::block:
      pieces.iov[0] = {block_.data(), bytes};
      pieces.count = 1;
      break;
    case Content::numbered: {
      std::byte* const own = own_.data() + std::size_t{slot} * kNumberBytes;
      write_number(number, {own, kNumberBytes});
      pieces.iov[0] = {own, kNumberBytes};
      pieces.iov[1] = {block_.data(), bytes - kNumberBytes};
      pieces.count = bytes > kNumberBytes ? 2 : 1;
      break;
    }
    case Content::verified: {
      std::byte* const own = own_.data() + slot * message_bytes_;
      fill_pattern(key_, number, {own, bytes});
      pieces.iov[0] = {own, bytes};
      pieces.count = 1;
      break;
    }
  }
  return pieces;
}

}  // namespace perf
