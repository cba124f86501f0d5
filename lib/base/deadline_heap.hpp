// SPDX-License-Identifier: Apache-2.0
// Binary heap of deadlines keyed by a small dense id, at most one deadline per id. Arming, moving
// and cancelling are O(log n), the earliest deadline O(1); memory is taken at creation.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/slab.hpp"

namespace srd {

inline constexpr std::uint64_t kNoDeadline = UINT64_MAX;

class DeadlineHeap {
 public:
  bool create(std::uint32_t ids) noexcept {
    heap_.reset(new (std::nothrow) Entry[ids]);
    position_.reset(new (std::nothrow) Index[ids]);
    if (heap_ == nullptr || position_ == nullptr) return false;
    for (std::uint32_t i = 0; i < ids; ++i) position_[i] = kNone;
    return true;
  }

  /// Sets the deadline of `id` in ns; kNoDeadline cancels it.
  void set(Index id, std::uint64_t at) noexcept {
    Index place = position_[id];
    if (at == kNoDeadline) {
      if (place != kNone) remove(place);
      return;
    }
    if (place == kNone) {
      place = size_++;
      heap_[place] = {at, id};
      position_[id] = place;
    } else {
      heap_[place].at = at;
    }
    sift_down(sift_up(place));
  }

  [[nodiscard]] std::uint64_t earliest() const noexcept {
    return size_ == 0 ? kNoDeadline : heap_[0].at;
  }

  [[nodiscard]] Index earliest_id() const noexcept { return size_ == 0 ? kNone : heap_[0].id; }

 private:
  struct Entry {
    std::uint64_t at;
    Index id;
  };

  void remove(Index place) noexcept {
    if (size_ == 0) return;
    position_[heap_[place].id] = kNone;
    --size_;
    if (place == size_) return;
    heap_[place] = heap_[size_];
    position_[heap_[place].id] = place;
    sift_down(sift_up(place));
  }

  void swap(Index a, Index b) noexcept {
    std::swap(heap_[a], heap_[b]);
    position_[heap_[a].id] = a;
    position_[heap_[b].id] = b;
  }

  Index sift_up(Index place) noexcept {
    while (place > 0 && heap_[place].at < heap_[(place - 1) / 2].at) {
      swap(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
    return place;
  }

  void sift_down(Index place) noexcept {
    for (;;) {
      Index least = place;
      for (Index child = 2 * place + 1; child <= 2 * place + 2 && child < size_; ++child) {
        if (heap_[child].at < heap_[least].at) least = child;
      }
      if (least == place) return;
      swap(place, least);
      place = least;
    }
  }

  std::unique_ptr<Entry[]> heap_;
  std::unique_ptr<Index[]> position_;
  std::uint32_t size_ = 0;
};

}  // namespace srd
