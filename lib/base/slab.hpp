// SPDX-License-Identifier: Apache-2.0
// Fixed pool of equal objects, addressed by 32-bit index. All address space is taken at creation,
// pages are touched on first use only, and the most recently returned object is reused first (it is
// in cache).
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/lazy_memory.hpp"

namespace srd {

using Index = std::uint32_t;
inline constexpr Index kNone = UINT32_MAX;

/// T must be trivially destructible; take() value-initialises it. O(1).
template <class T>
class Slab {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  bool create(std::uint32_t capacity) noexcept {
    capacity_ = capacity;
    return memory_.allocate(std::size_t{capacity} * sizeof(Slot));
  }

  /// kNone if all are in use.
  Index take() noexcept {
    const Index index = take_uncleared();
    if (index != kNone) new (&slot(index).object) T{};
    return index;
  }

  /// Like take(), but the object holds what it held last, zeros at first: for large ones whose user
  /// writes each part before reading it.
  Index take_uncleared() noexcept {
    Index index = free_;
    if (index != kNone) {
      free_ = slot(index).next_free;
    } else {
      if (touched_ == capacity_) return kNone;
      index = touched_++;
    }
    slot(index).next_free = kInUse;
    ++used_;
    return index;
  }

  void give(Index index) noexcept {
    SRD_DCHECK(is_used(index));
    ++slot(index).generation;
    slot(index).next_free = free_;
    free_ = index;
    --used_;
  }

  T& operator[](Index index) noexcept {
    SRD_DCHECK(is_used(index));
    return slot(index).object;
  }

  const T& operator[](Index index) const noexcept {
    SRD_DCHECK(is_used(index));
    return slot(index).object;
  }

  [[nodiscard]] bool is_used(Index index) const noexcept {
    return index < touched_ && slot(index).next_free == kInUse;
  }

  /// Counts how often the slot was given back; with the index it names one life of an object.
  [[nodiscard]] std::uint32_t generation(Index index) const noexcept {
    return slot(index).generation;
  }

  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }

  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

  [[nodiscard]] std::uint32_t free() const noexcept { return capacity_ - used_; }

  /// Indices at or above were never used: bound for walks over all objects.
  [[nodiscard]] std::uint32_t touched() const noexcept { return touched_; }

 private:
  static constexpr Index kInUse = UINT32_MAX - 1;

  struct Slot {
    T object;
    std::uint32_t generation;
    Index next_free;
  };

  Slot& slot(Index index) noexcept {
    return std::launder(reinterpret_cast<Slot*>(memory_.data()))[index];
  }

  const Slot& slot(Index index) const noexcept {
    return std::launder(reinterpret_cast<const Slot*>(memory_.data()))[index];
  }

  LazyMemory memory_;
  std::uint32_t capacity_ = 0, touched_ = 0, used_ = 0;
  Index free_ = kNone;
};

/// Doubly linked list of slab objects through their members `prev` and `next`. An object is in at
/// most one list at a time. All O(1).
struct IndexList {
  Index head = kNone, tail = kNone;

  [[nodiscard]] bool empty() const noexcept { return head == kNone; }

  template <class Table>
  void push_back(Table& table, Index index) noexcept {
    auto& object = table[index];
    object.prev = tail;
    object.next = kNone;
    (tail == kNone ? head : table[tail].next) = index;
    tail = index;
  }

  template <class Table>
  void push_front(Table& table, Index index) noexcept {
    auto& object = table[index];
    object.prev = kNone;
    object.next = head;
    (head == kNone ? tail : table[head].prev) = index;
    head = index;
  }

  /// `before` kNone: at the front.
  template <class Table>
  void insert_after(Table& table, Index before, Index index) noexcept {
    if (before == kNone) {
      push_front(table, index);
    } else if (before == tail) {
      push_back(table, index);
    } else {
      table[index].prev = before;
      table[index].next = table[before].next;
      table[table[before].next].prev = index;
      table[before].next = index;
    }
  }

  template <class Table>
  void remove(Table& table, Index index) noexcept {
    auto& object = table[index];
    (object.prev == kNone ? head : table[object.prev].next) = object.next;
    (object.next == kNone ? tail : table[object.next].prev) = object.prev;
    object.prev = object.next = kNone;
  }

  template <class Table>
  Index pop_front(Table& table) noexcept {
    const Index index = head;
    if (index != kNone) remove(table, index);
    return index;
  }
};

}  // namespace srd
