// SPDX-License-Identifier: Apache-2.0
// Chained hash of table entries: finds those with a key in O(1), whatever the table's size. It
// keeps no keys: whoever looks compares the entries themselves. Memory is taken at creation.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <new>

#include "base/slab.hpp"

namespace srd::core {

class IndexHash {
 public:
  /// For entries below `capacity`.
  bool create(std::uint32_t capacity) noexcept {
    const std::uint32_t buckets = std::bit_ceil(capacity);
    mask_ = buckets - 1;
    heads_.reset(new (std::nothrow) Index[buckets]);
    next_.reset(new (std::nothrow) Index[capacity]);
    if (heads_ == nullptr || next_ == nullptr) return false;
    for (std::uint32_t i = 0; i < buckets; ++i) heads_[i] = kNone;
    return true;
  }

  /// `hash`: of the entry's key, by a keyed hash where strangers choose keys. An entry is in at
  /// most once.
  void insert(std::uint64_t hash, Index index) noexcept {
    Index& head = heads_[hash & mask_];
    next_[index] = head;
    head = index;
  }

  /// It must be in, under this hash.
  void remove(std::uint64_t hash, Index index) noexcept {
    Index* link = &heads_[hash & mask_];
    while (*link != index) link = &next_[*link];
    *link = next_[index];
  }

  /// Candidates for a key, some of which have others: first(), then next() until kNone.
  [[nodiscard]] Index first(std::uint64_t hash) const noexcept { return heads_[hash & mask_]; }

  [[nodiscard]] Index next(Index index) const noexcept { return next_[index]; }

 private:
  std::unique_ptr<Index[]> heads_, next_;
  std::uint32_t mask_ = 0;
};

}  // namespace srd::core
