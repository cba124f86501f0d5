// SPDX-License-Identifier: Apache-2.0
#include "srd/core/path_set.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace srd::core {

namespace {
// Slack of a slot's share, so that the window and not the sum of the shares is what limits.
constexpr double kShareSlack = 1.25;
constexpr std::uint32_t kLookAhead = 4;
constexpr double kWeightMin = 1.0 / 16, kWeightMax = 16.0, kWeightDrift = 0.02;
}  // namespace

void PathSet::reset(std::uint32_t slots) noexcept {
  for (auto& slot : slots_) slot = Slot{};
  size_ = slots;
  good_ = busy_ = unproven_ = 0;
  rotor_ = best_ = 0;
  weight_sum_ = 0.0;
}

void PathSet::set_state(std::uint32_t slot, SlotState state) noexcept {
  Slot& s = slots_[slot];
  if (s.state == state) return;
  const std::uint64_t bit = std::uint64_t{1} << slot;
  if (s.state == SlotState::good) {
    good_ &= ~bit;
    weight_sum_ -= s.weight;
  }
  s.state = state;
  // A slot that could not be opened is tried again.
  const bool unproven = state == SlotState::untried || state == SlotState::suspect ||
                        (state == SlotState::closed && s.wanted);
  unproven_ = unproven ? unproven_ | bit : unproven_ & ~bit;
  if (state == SlotState::good) {
    // A slot that was in trouble, or explores, starts below the average and earns its share.
    const std::uint32_t others = good_count();
    s.set_weight(others == 0 ? 1.0 : (s.was_good ? 0.5 : 1.0) * weight_sum_ / others);
    s.was_good = true;
    good_ |= bit;
    weight_sum_ += s.weight;
  }
}

void PathSet::want(std::uint32_t slot) noexcept {
  slots_[slot].wanted = true;
  if (slots_[slot].state != SlotState::good) unproven_ |= std::uint64_t{1} << slot;
}

void PathSet::note_in_flight(std::uint32_t slot) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << slot;
  if (slots_[slot].in_flight_datagrams > 0) {
    busy_ |= bit;
  } else {
    busy_ &= ~bit;
  }
}

std::uint32_t PathSet::choose(std::uint64_t now_ns, const Budget& budget,
                              std::uint64_t avoid) noexcept {
  // A burst on every slot may be all of the window: then turns would give a crowded path as much as
  // an empty one. A few in turn and the one that was best last time come close to the best of all.
  const bool by_share = 2 * budget.in_flight_bytes > budget.window_bytes;
  const double full = kShareSlack * static_cast<double>(budget.window_bytes) / weight_sum_;
  for (const std::uint64_t candidates : {good_ & ~avoid, good_ & avoid}) {
    std::uint32_t best = kSlotsMax, looked_at = 0;
    double least = 0;
    const auto consider = [&](std::uint32_t slot) {
      const Slot& s = slots_[slot];
      if (s.blocked_until_ns > now_ns) return false;
      const double filled =
          static_cast<double>(s.in_flight_bytes + budget.burst_bytes) * s.inverse_weight;
      if (s.in_flight_bytes != 0 && filled > full) return false;
      if (best == kSlotsMax || filled < least) {
        best = slot;
        least = filled;
      }
      return true;
    };
    if (by_share && (candidates >> best_ & 1U) != 0) consider(best_);
    const auto first = static_cast<int>((rotor_ + 1) % kSlotsMax);
    for (std::uint64_t rest = std::rotr(candidates, first); rest != 0; rest &= rest - 1) {
      const auto slot = static_cast<std::uint32_t>(first + std::countr_zero(rest)) % kSlotsMax;
      if (!consider(slot)) continue;
      rotor_ = slot;
      if (!by_share || ++looked_at == kLookAhead) break;
    }
    if (best == kSlotsMax) continue;
    best_ = best;
    return best;
  }
  return kSlotsMax;
}

std::uint32_t PathSet::freshest(std::uint64_t avoid) const noexcept {
  std::uint32_t best = kSlotsMax;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Slot& s = slots_[i];
    if (s.path == kNoPath) continue;
    if (best == kSlotsMax) {
      best = i;
      continue;
    }
    const Slot& b = slots_[best];
    // First what need not be avoided, then what is good, then what answered last.
    const auto rank = [avoid](std::uint32_t index, const Slot& slot) {
      return std::tuple((avoid >> index & 1U) == 0, slot.state == SlotState::good,
                        std::max(slot.last_ack_ns, slot.last_heard_ns));
    };
    if (rank(i, s) > rank(best, b)) best = i;
  }
  return best;
}

void PathSet::rebalance(std::uint32_t slot, std::uint64_t now_ns, double mean_delay_ns,
                        double target_ns) noexcept {
  Slot& s = slots_[slot];
  if (s.state != SlotState::good || now_ns < s.weight_due_ns) return;
  s.weight_due_ns = now_ns + std::max<std::uint64_t>(s.rtt.srtt_ns(), 1000);
  const double excess =
      std::clamp((static_cast<double>(s.queue_delay_ns) - mean_delay_ns) / target_ns, -1.0, 1.0);
  const double mean = weight_sum_ / good_count();
  // Slots that share a path see the same delay whatever their weights: these drift back together.
  const double wanted = s.weight * (1.0 - 0.25 * excess) + kWeightDrift * (mean - s.weight);
  const double weight = std::clamp(wanted, kWeightMin * mean, kWeightMax * mean);
  weight_sum_ += weight - s.weight;
  s.set_weight(weight);
  // Weights are relative; keep them where floating point is exact enough.
  if (mean < 1e-3 || mean > 1e3) {
    for (auto& other : slots_) other.set_weight(other.weight / mean);
    weight_sum_ /= mean;
  }
}

}  // namespace srd::core
