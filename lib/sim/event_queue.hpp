// SPDX-License-Identifier: Apache-2.0
// What happens next in a simulated world: a heap of events ordered by virtual time and, at equal
// times, by the order in which they were scheduled, so that equal seeds replay event for event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace srd::sim {

/// Virtual time of the world in nanoseconds since its start. Hosts have clocks of their own.
using TimeNs = std::uint64_t;
inline constexpr TimeNs kNeverNs = UINT64_MAX;
inline constexpr TimeNs kUs = 1'000;
inline constexpr TimeNs kMs = 1'000'000;
inline constexpr TimeNs kSecond = 1'000'000'000;

struct WorldEvent {
  enum class Kind : std::uint8_t { host_turn, train, departure, script };
  TimeNs at = 0;
  std::uint64_t order = 0;
  Kind kind = Kind::script;
  std::uint32_t index = 0;  ///< host, train or script
};

class EventQueue {
 public:
  /// O(log n).
  void push(TimeNs at, WorldEvent::Kind kind, std::uint32_t index) {
    heap_.push_back({at, next_order_++, kind, index});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

  [[nodiscard]] TimeNs next_at() const noexcept {
    return heap_.empty() ? kNeverNs : heap_.front().at;
  }

  WorldEvent pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const WorldEvent event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const WorldEvent& a, const WorldEvent& b) noexcept {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<WorldEvent> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace srd::sim
