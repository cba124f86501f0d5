// SPDX-License-Identifier: Apache-2.0
// The path slots of one context: their health, how much each may have in flight, and which one
// carries the next burst. Opening paths and sending probes is the caller's business. Source:
// PROTOCOL.md 7.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "srd/core/config.hpp"
#include "srd/core/rtt.hpp"
#include "srd/datagram.hpp"

#include "base/prng.hpp"

namespace srd::core {

inline constexpr std::uint32_t kSlotsMax = 64;

enum class SlotState : std::uint8_t {
  closed,   ///< no path open
  untried,  ///< opened, not proven: carries probes only
  good,     ///< carries data
  suspect,  ///< data vanished on it: carries probes only
};

struct Slot {
  SlotState state = SlotState::closed;
  std::uint8_t generation = 0;      ///< informational on the wire, modulo 16
  std::uint8_t answers_needed = 0;  ///< PROBE_ACKs until it is good
  PathId path = kNoPath;
  std::uint32_t entropy = 0;
  std::uint64_t flow = 0;             ///< responder: 5-tuple the return path answers
  std::uint32_t adopted_tx_time = 0;  ///< responder: send time of the packet that set `flow`
  std::uint64_t adopted_at_ns = 0;

  // packets in flight, in order of sending: linked by PSN in the sent ring
  std::uint32_t head_psn = 0, tail_psn = 0;
  std::uint32_t in_flight_datagrams = 0;
  std::uint64_t in_flight_bytes = 0;
  std::uint32_t burst = 0;  ///< bursts sent on this slot so far

  // same-path FIFO evidence (PROTOCOL.md 5.4)
  bool has_acked = false;
  std::uint32_t acked_burst = 0;   ///< latest burst of which something was acked
  std::uint16_t acked_index = 0;   ///< highest index in it
  std::uint16_t acked_before = 0;  ///< second highest: what is below has two later ones
  bool fifo_pending = false;
  std::uint32_t fifo_burst = 0;  ///< everything before this burst is overdue at fifo_due_ns
  std::uint16_t fifo_index = 0;  ///< and of this burst everything below this index
  std::uint32_t fifo_order = 0;  ///< ACK that was the evidence
  std::uint64_t fifo_due_ns = 0;

  bool lost_burst_valid = false;
  std::uint32_t lost_burst = 0;  ///< burst that was counted as lost last

  std::uint64_t last_tx_ns = 0, last_ack_ns = 0;
  std::uint64_t last_heard_ns = 0;     ///< anything arrived with this slot number
  std::uint64_t last_acked_tx_ns = 0;  ///< latest send time of an acked packet
  RttEstimator rtt;
  std::uint64_t queue_delay_ns = 0;  ///< latest sample above the base
  bool was_good = false;             ///< once, on whatever generation
  bool wanted = false;               ///< the initiator opened it, or will when it can
  double weight = 1.0;               ///< share of the window; relative
  double inverse_weight = 1.0;
  std::uint64_t weight_due_ns = 0;
  double loss_ewma = 0.0;
  std::uint64_t rate_bytes = 0, rate_since_ns = 0;
  double rate_bytes_per_ns = 0.0;

  // probing
  std::uint32_t probe_id = 0;           ///< outstanding, 0 = none
  std::uint32_t answered_probe_id = 0;  ///< counted last
  std::uint64_t probe_opaque = 0;       ///< drawn anew for each address and generation
  std::uint64_t repath_again_ns = 0;
  std::uint64_t opened_ns = 0;  ///< this generation
  std::uint32_t acks_sent = 0;  ///< by it and not known to have arrived
  std::uint64_t ack_sent_ns = 0;
  std::uint64_t probe_deadline_ns = 0, next_probe_ns = 0, probe_backoff_ns = 0;
  std::uint8_t probe_misses = 0, silent_misses = 0;
  std::uint64_t blocked_until_ns = 0;
  std::uint8_t refusals = 0;  ///< by the device since something on it was acknowledged

  // free-running statistics
  std::uint64_t tx_datagrams = 0, tx_bytes = 0, acked_bytes = 0, lost_datagrams = 0;
  std::uint64_t retransmits = 0, ce_datagrams = 0, rerolls = 0, rx_datagrams = 0;

  /// choose() divides by it for every slot and burst.
  void set_weight(double value) noexcept {
    weight = value;
    inverse_weight = 1.0 / value;
  }
};

class PathSet {
 public:
  void reset(std::uint32_t slots) noexcept;

  Slot& operator[](std::size_t i) noexcept { return slots_[i]; }

  const Slot& operator[](std::size_t i) const noexcept { return slots_[i]; }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  /// Changes a state; keeps the set of usable slots.
  void set_state(std::uint32_t slot, SlotState state) noexcept;

  [[nodiscard]] std::uint64_t good_mask() const noexcept { return good_; }

  [[nodiscard]] std::uint32_t good_count() const noexcept {
    return static_cast<std::uint32_t>(std::popcount(good_));
  }

  [[nodiscard]] bool is_good(std::uint32_t slot) const noexcept {
    return (good_ >> slot & 1U) != 0;
  }

  /// Slots with probe deadlines: wanted or opened, and not good now.
  [[nodiscard]] std::uint64_t unproven_mask() const noexcept { return unproven_; }

  /// Slots with something in flight.
  [[nodiscard]] std::uint64_t busy_mask() const noexcept { return busy_; }

  void note_in_flight(std::uint32_t slot) noexcept;

  /// A slot that shall be open and is tried again if it cannot be opened now.
  void want(std::uint32_t slot) noexcept;

  /// What a burst is chosen a slot for, of the whole context.
  struct Budget {
    std::uint64_t window_bytes = 0;
    std::uint64_t in_flight_bytes = 0;
    std::uint64_t burst_bytes = 0;  ///< at most
  };

  /// Slot for the next burst, or kSlotsMax: every good slot has its share of the window in flight.
  /// While the window is less than half full the slots take turns, then of a few the one
  /// comes next that would have the least of its share in flight. Slots in `avoid` are taken only
  /// if nothing else is left. O(slots).
  [[nodiscard]] std::uint32_t choose(std::uint64_t now_ns, const Budget& budget,
                                     std::uint64_t avoid) noexcept;

  /// Slot that answered last: for control packets, ACKs and single messages. Slots in `avoid` only
  /// if nothing else is open; kSlotsMax if none is open.
  [[nodiscard]] std::uint32_t freshest(std::uint64_t avoid) const noexcept;

  /// Shifts weight between slots so that their queueing delays become equal: a slot above the mean
  /// loses weight, one below gains. Called per slot at most once per its RTT.
  void rebalance(std::uint32_t slot, std::uint64_t now_ns, double mean_delay_ns,
                 double target_ns) noexcept;

 private:
  std::array<Slot, kSlotsMax> slots_{};
  std::uint32_t size_ = 0;
  std::uint64_t good_ = 0, busy_ = 0, unproven_ = 0;
  std::uint32_t rotor_ = 0;
  std::uint32_t best_ = 0;   // chosen last
  double weight_sum_ = 0.0;  // over good slots
};

}  // namespace srd::core
