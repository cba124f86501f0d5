// SPDX-License-Identifier: Apache-2.0
// When a datagram counts as lost: overtaken on its own path (FIFO), overtaken on others for too
// long (RACK), or nothing heard at all (tail and RTO probes, which prove nothing by themselves).
// Source: PROTOCOL.md 5.4 - 5.6; RFC 8985.
#include <algorithm>
#include <bit>

#include "srd/core/impl.hpp"

#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint32_t kTailProbes = 2;  // before the first RTO
constexpr std::uint32_t kOutageRtos = 3;  // unanswered RTO probes that mean an outage
constexpr double kBadLossShare = 0.08;    // slot loss that, with the next, makes it suspect
constexpr double kBadLossFactor = 4.0;    // times the median of the slots
constexpr std::uint64_t kRtoRelaxNs = 10'000'000'000;
}  // namespace

std::uint64_t Core::Impl::rto_ns(const Ctx& ctx) const noexcept {
  const Timing& timing = config_.timing;
  if (!ctx.rtt.has_sample()) return 3 * timing.initial_rtt_ns;
  return std::clamp(ctx.rtt.srtt_ns() + 4 * ctx.rtt.variation_ns() + ctx.remote_ack_delay_ns,
                    std::max(ctx.rto_min_ns, timing.rto_min_ns), timing.rto_max_ns);
}

std::uint64_t Core::Impl::pto_ns(const Ctx& ctx) const noexcept {
  if (!ctx.rtt.has_sample()) return 3 * config_.timing.initial_rtt_ns;
  const std::uint64_t tick = std::uint64_t{2} << wire::kTimeUnitShift;
  return std::min(ctx.rtt.srtt_ns() + std::max(4 * ctx.rtt.variation_ns(), tick) +
                      ctx.remote_ack_delay_ns + config_.timing.fifo_gap_min_ns,
                  rto_ns(ctx));
}

std::uint64_t Core::Impl::fifo_gap_ns(const Ctx& ctx) const noexcept {
  const std::uint64_t base = ctx.rtt.base_ns() == UINT64_MAX ? 0 : ctx.rtt.base_ns();
  return std::max(config_.timing.fifo_gap_min_ns, base / config_.timing.fifo_gap_divisor);
}

// A PSN is missing only if an ACK that covers it, not older than the evidence against it, shows it
// missing. Words not covered since count as well while no ACK in between was lost: then silence
// about a word means that nothing in it changed.
bool Core::Impl::shown_missing(const Ctx& ctx, std::uint32_t psn,
                               std::uint32_t order) const noexcept {
  const std::uint32_t covered = ctx.covered[psn / 64 % kWindowWords];
  return !seq_less(covered, order) || seq_less(ctx.gap_order, covered);
}

void Core::Impl::detect_losses(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (!ctx.fifo_enabled && now_ns >= ctx.fifo_off_until_ns) ctx.fifo_enabled = true;
  for (std::uint64_t rest = ctx.paths.busy_mask(); rest != 0; rest &= rest - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(rest));
    detect_fifo(index, slot, now_ns);
  }
  detect_rack(index, now_ns);
}

/// Same-path FIFO: a datagram is lost if one of a later burst on its slot, or two later ones of its
/// own burst, were acknowledged at least the FIFO gap ago.
void Core::Impl::detect_fifo(Index index, std::uint32_t slot_index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  Slot& slot = ctx.paths[slot_index];
  if (!ctx.fifo_enabled || !slot.has_acked) {
    slot.fifo_pending = false;
    return;
  }
  const auto overtaken = [&](const Sent& record, std::uint32_t burst, std::uint32_t below) {
    return record.generation == slot.generation &&
           (seq_less(record.burst, burst) || (record.burst == burst && record.burst_index < below));
  };
  if (slot.fifo_pending && now_ns >= slot.fifo_due_ns) {
    slot.fifo_pending = false;
    bool lost = false;
    std::uint32_t psn = slot.head_psn;
    for (std::uint32_t left = slot.in_flight_datagrams; left > 0; --left) {
      const Sent& record = sent(ctx, psn);
      const std::uint32_t next = record.next;
      if (!overtaken(record, slot.fifo_burst, slot.fifo_index)) break;
      if (shown_missing(ctx, psn, slot.fifo_order)) {
        counters_.losses_fifo.add();
        ++ctx.counters.losses_fifo;
        ++ctx.fifo_losses;
        declare_lost(index, psn, now_ns);
        lost = true;
      }
      psn = next;
    }
    if (lost) judge_slot_loss(index, slot_index, now_ns);
  }
  if (slot.fifo_pending || slot.in_flight_datagrams == 0) return;
  if (slot.fifo_order == ctx.ack_order) return;  // judged already; only another ACK can tell more
  if (overtaken(sent(ctx, slot.head_psn), slot.acked_burst, slot.acked_before)) {
    slot.fifo_pending = true;
    slot.fifo_burst = slot.acked_burst;
    slot.fifo_index = slot.acked_before;
    slot.fifo_order = ctx.ack_order;
    slot.fifo_due_ns = now_ns + fifo_gap_ns(ctx);
  }
}

/// RACK: something sent later, on whatever slot, was acknowledged, and a round trip with an
/// allowance for reordering has passed. The head of each slot's list is its oldest datagram.
void Core::Impl::detect_rack(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  std::uint64_t earliest = UINT64_MAX;
  const std::uint64_t base = ctx.rtt.base_ns() == UINT64_MAX ? 0 : ctx.rtt.base_ns();
  if (now_ns >= ctx.reo_relax_ns) {
    ctx.reo_ns /= 2;
    ctx.reo_relax_ns = now_ns + kReoRelaxNs;
  }
  // Queues of the paths differ by what the window aims at, and hosts nap: less is no evidence.
  const std::uint64_t reo =
      std::max({ctx.reo_ns, base / 4, config_.timing.fifo_gap_min_ns, ctx.congestion.target_ns()});
  for (std::uint64_t rest = ctx.paths.busy_mask(); rest != 0; rest &= rest - 1) {
    const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(rest));
    Slot& slot = ctx.paths[slot_index];
    if (slot.fifo_pending) earliest = std::min(earliest, slot.fifo_due_ns);
    const std::uint64_t wait = std::max(ctx.rtt.srtt_ns(), slot.rtt.srtt_ns()) +
                               4 * std::max(ctx.rtt.variation_ns(), slot.rtt.variation_ns()) +
                               ctx.remote_ack_delay_ns + reo;
    bool lost = false, silent = false;
    std::uint32_t psn = slot.head_psn;
    for (std::uint32_t left = slot.in_flight_datagrams; left > 0; --left) {
      const Sent& record = sent(ctx, psn);
      const std::uint32_t next = record.next;
      if (record.tx_ns >= ctx.rack_tx_ns) break;
      // An ACK must tell of a time when it should have arrived. That time passed here proves
      // nothing: the receiver may have lost its CPU. The tail probe asks.
      if (ctx.latest_ack_ns < record.tx_ns + wait) break;
      if (!shown_missing(ctx, psn, ctx.rack_order)) break;
      counters_.losses_rack.add();
      ++ctx.counters.losses_rack;
      silent |= record.generation == slot.generation && slot.last_acked_tx_ns < record.tx_ns;
      lost = true;
      declare_lost(index, psn, now_ns);
      psn = next;
    }
    // Nothing sent at or after the lost datagram arrived by this slot: it may be dead.
    if (silent && ctx.charge_host_losses == 0) {
      suspect(index, slot_index, now_ns);
    } else if (lost) {
      judge_slot_loss(index, slot_index, now_ns);
    }
  }
  if (earliest == UINT64_MAX) {
    ctx.rack_timer.cancel();
  } else if (earliest != ctx.rack_timer.due_ns) {
    ctx.rack_timer.due_ns = std::max(earliest, now_ns + 1);
    ctx.rack_timer.interval_ns = std::max(ctx.rtt.srtt_ns(), fifo_gap_ns(ctx));
    ctx.rack_timer.rearmed = false;
  }
}

void Core::Impl::declare_lost(Index index, std::uint32_t psn, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  const Sent record = sent(ctx, psn);
  take_from_flight(ctx, psn);
  Slot& slot = ctx.paths[record.slot];
  ++slot.lost_datagrams;
  push_lost(ctx, psn, false);
  // One event per burst: a network drops bursts, and a burst is what was sent at once.
  if (slot.lost_burst_valid && slot.lost_burst == record.burst) return;
  slot.lost_burst_valid = true;
  slot.lost_burst = record.burst;
  if (ctx.charge_host_losses > 0) {
    --ctx.charge_host_losses;  // dropped inside the peer's host, which has its own window
    return;
  }
  slot.loss_ewma += (1.0 - slot.loss_ewma) / 32;
  ctx.congestion.on_burst_lost(now_ns);
}

/// Loss that leaves the slot alive: a slot much worse than the others is suspected.
void Core::Impl::judge_slot_loss(Index index, std::uint32_t slot_index,
                                 std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  const double mine = ctx.paths[slot_index].loss_ewma;
  if (mine < kBadLossShare || ctx.paths[slot_index].state != SlotState::good) return;
  std::array<double, kSlotsMax> all{};
  std::size_t count = 0;
  for (std::uint64_t rest = ctx.paths.good_mask(); rest != 0; rest &= rest - 1) {
    all[count++] = ctx.paths[static_cast<std::size_t>(std::countr_zero(rest))].loss_ewma;
  }
  if (count < 2) return;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count / 2),
                   all.begin() + static_cast<std::ptrdiff_t>(count));
  const double median = all[count / 2];
  if (mine > kBadLossFactor * median) suspect(index, slot_index, now_ns);
}

// --- tail and RTO probes ---

/// An RTO probe was needless: the first copy had arrived. Hosts nap; wait longer, and unlearn
/// slowly.
void Core::Impl::note_needless_rto(Ctx& ctx, std::uint64_t now_ns) noexcept {
  if (ctx.retries <= kTailProbes) return;
  ctx.rto_min_ns = std::min(2 * ctx.rto_min_ns, config_.timing.rto_min_ceiling_ns);
  ctx.rto_relax_ns = now_ns + kRtoRelaxNs;
}

void Core::Impl::arm_retry(Ctx& ctx, std::uint64_t now_ns) noexcept {
  if (ctx.rto_min_ns > config_.timing.rto_min_ns && now_ns >= ctx.rto_relax_ns) {
    ctx.rto_min_ns = std::max(ctx.rto_min_ns / 2, config_.timing.rto_min_ns);
    ctx.rto_relax_ns = now_ns + kRtoRelaxNs;
  }
  if (ctx.in_flight_datagrams == 0 && ctx.lost.count == 0) {
    ctx.retry_timer.cancel();
    ctx.retries = 0;
    return;
  }
  if (ctx.retries < kTailProbes) {
    ctx.retry_timer.arm(now_ns, pto_ns(ctx));
    return;
  }
  const unsigned backoff = std::min(ctx.retries - kTailProbes, 16U);
  ctx.retry_timer.arm(now_ns, std::min(rto_ns(ctx) << backoff, config_.timing.rto_max_ns));
}

/// The peer is heard, yet nothing of what is out gets through, though it was tried again and again:
/// datagrams too long for every path, or a device that refuses them for good. A new context
/// measures the route anew.
bool Core::Impl::is_stuck(const Ctx& ctx, std::uint64_t now_ns) const noexcept {
  const std::uint64_t dead = config_.timing.dead_timeout_ns;
  return ctx.una != ctx.nxt && ctx.retries > kTailProbes && now_ns < ctx.last_heard_ns + dead &&
         now_ns >= ctx.progress_ns + config_.timing.stuck_dead_timeouts * dead;
}

void Core::Impl::on_retry_timer(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  expect_answer(ctx, now_ns);
  ++ctx.retries;
  ctx.tail_probe_pending = true;
  if (ctx.retries <= kTailProbes) {
    counters_.tail_probes.add();
    ++ctx.counters.tail_probes;
  } else {
    counters_.rto_probes.add();
    ++ctx.counters.rto_probes;
    ctx.probe_two_slots = 2;
    if (ctx.retries == kTailProbes + kOutageRtos) outage(index, now_ns);
  }
  arm_retry(ctx, now_ns);
  mark_ready(index);
}

/// Three RTO probes without any answer: the window starts over, and half of the slots, those that
/// were silent longest, try other paths.
void Core::Impl::outage(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  ctx.congestion.on_outage();
  std::uint32_t quota = (ctx.paths.size() + 1) / 2;
  for (std::uint32_t i = 0; i < ctx.paths.size() && quota > 0; ++i) {
    Slot& slot = ctx.paths[i];
    if (slot.state != SlotState::good || slot.last_ack_ns + rto_ns(ctx) > now_ns) continue;
    suspect(index, i, now_ns);
    --quota;
  }
}

}  // namespace srd::core
