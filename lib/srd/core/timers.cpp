// SPDX-License-Identifier: Apache-2.0
// Deadlines: one per context in a heap, the earliest of all its timers. Loss timers handled much
// later than due are re-armed once instead: what they would judge by has not been read yet. Source:
// PROTOCOL.md 5.6.
#include <algorithm>
#include <bit>

#include "srd/core/impl.hpp"

namespace srd::core {

void Core::Impl::mark_ready(Index index) noexcept {
  Ctx& ctx = contexts_[index];
  if (ctx.ready) return;
  ctx.ready = true;
  ready_.push_back(contexts_, index);
}

/// Deadlines are recomputed once per run of datagrams for one context, not per datagram.
void Core::Impl::touch(Index index) noexcept {
  if (touched_ == index) return;
  flush_touched();
  touched_ = index;
}

void Core::Impl::flush_touched() noexcept {
  if (touched_ == kNone) return;
  const Index index = touched_;
  touched_ = kNone;
  mark_ready(index);
  rearm(index);
}

void Core::Impl::rearm(Index index) noexcept {
  deadlines_.set(index, context_deadline(contexts_[index]));
}

std::uint64_t Core::Impl::context_deadline(const Ctx& ctx) const noexcept {
  std::uint64_t due =
      std::min({ctx.hello_due_ns, ctx.give_up_ns, ctx.doubt_due_ns, ctx.ack.deadline_ns,
                ctx.rack_timer.due_ns, ctx.retry_timer.due_ns, ctx.limit_probe.due_ns,
                ctx.want_nack.due_ns, ctx.silence.due_ns, ctx.dead_timer.due_ns, ctx.confirm_due_ns,
                ctx.limit_reminder_ns, ctx.pace_due_ns, ctx.blocked_due_ns});
  if (may_probe(ctx, now_ns_)) {
    for (std::uint64_t rest = ctx.paths.unproven_mask(); rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(rest));
      const Slot& slot = ctx.paths[i];
      if (slot.path == kNoPath) {
        if (ctx.initiator) due = std::min(due, slot.next_probe_ns);
      } else if (slot.probe_id != 0) {
        due = std::min(due, slot.probe_deadline_ns);
      } else if ((ctx.probes_pending >> i & 1U) == 0) {
        due = std::min(due, slot.next_probe_ns);
      }
    }
  }
  const Index waiting = peers_[ctx.peer].waiting.head;
  if (waiting != kNone) due = std::min(due, tx_messages_[waiting].retry_at_ns);
  return due;
}

bool Core::Impl::fires(LateTimer& timer, std::uint64_t now_ns) noexcept {
  if (now_ns < timer.due_ns) return false;
  if (now_ns - timer.due_ns > config_.timing.late_timer_ns && !timer.rearmed) {
    counters_.late_timers.add();
    timer.due_ns = now_ns + timer.interval_ns / 2;
    timer.rearmed = true;
    return false;
  }
  timer.cancel();
  return true;
}

void Core::Impl::handle_timeout(Instant now) noexcept {
  now_ns_ = now.ns;
  for (std::uint32_t i = 0; i < kContextsPerCall && deadlines_.earliest() <= now.ns; ++i) {
    const Index index = deadlines_.earliest_id();
    const std::uint32_t life = contexts_.generation(index);
    context_timers(index, now.ns);
    if (!contexts_.is_used(index) || contexts_.generation(index) != life) continue;
    mark_ready(index);
    rearm(index);
    // Whatever a context still wants now, it must not keep the others from their turn.
    if (deadlines_.earliest() <= now.ns && deadlines_.earliest_id() == index) {
      deadlines_.set(index, now.ns + 1);
    }
  }
}

void Core::Impl::context_timers(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (set_up_timers(index, now_ns)) return;
  if (fires(ctx.dead_timer, now_ns)) {
    // Another context of the peer that is heard shows that only this one is dead.
    if (has_living_sibling(index, now_ns)) {
      destroy_context(index, Errc::peer_unreachable, now_ns);
    } else {
      lose_peer(ctx.peer, Errc::peer_unreachable, now_ns);
    }
    return;
  }
  if (now_ns >= ctx.doubt_due_ns) {
    ctx.doubt_due_ns = UINT64_MAX;
    ctx.doubt_silent = true;
    if (ctx.successor_proven) {
      resolve_doubt(index, now_ns);
      return;
    }
  }
  if (now_ns >= ctx.ack.deadline_ns) {
    ctx.ack.deadline_ns = UINT64_MAX;  // due from now on, not once more per turn
    acknowledge_now(index);
  }
  if (now_ns >= ctx.limit_reminder_ns) {
    ctx.limit_reminder_ns = UINT64_MAX;
    acknowledge_now(index);
  }
  if (fires(ctx.rack_timer, now_ns)) detect_losses(index, now_ns);
  if (fires(ctx.retry_timer, now_ns)) {
    if (is_stuck(ctx, now_ns)) {
      destroy_context(index, Errc::context_lost, now_ns);
      return;
    }
    on_retry_timer(index, now_ns);
  }
  if (now_ns >= ctx.confirm_due_ns) {
    ctx.confirm_due_ns = UINT64_MAX;
    ctx.confirm_now = true;
  }
  if (fires(ctx.want_nack, now_ns)) {
    ctx.want_nack_pending = true;
    ctx.want_nack.arm(
        now_ns, std::clamp(2 * ctx.want_nack.interval_ns, pto_ns(ctx), config_.timing.rto_max_ns));
    expect_answer(ctx, now_ns);
  }
  if (fires(ctx.limit_probe, now_ns)) {
    ctx.probe_two_slots = std::max(ctx.probe_two_slots, 1U);
    ctx.limit_probe.arm(now_ns,
                        std::min<std::uint64_t>(2 * ctx.limit_probe.interval_ns, 100'000'000));
    expect_answer(ctx, now_ns);
  }
  if (fires(ctx.silence, now_ns)) {
    probe_slot(ctx, control_slot(ctx, now_ns));
    ctx.silence.arm(now_ns, config_.timing.receiver_silence_ns);
    expect_answer(ctx, now_ns);
  }
  if (now_ns >= ctx.pace_due_ns) ctx.pace_due_ns = UINT64_MAX;
  if (now_ns >= ctx.blocked_due_ns) ctx.blocked_due_ns = UINT64_MAX;
  wake_waiting(ctx.peer, now_ns);
  if (may_probe(ctx, now_ns)) slot_timers(index, now_ns);
}

/// Something that was begun in either direction has no end yet.
bool Core::Impl::has_unfinished(const Ctx& ctx) const noexcept {
  return ctx.una != ctx.nxt || !ctx.active.empty() || !ctx.parked.empty() ||
         !ctx.aborting.empty() || ctx.partials != 0 || ctx.rx.has_hole();
}

/// An idle peer that may be gone, or whose ways all changed, is not asked for ever. The first
/// packet either way makes it awake again.
bool Core::Impl::may_probe(const Ctx& ctx, std::uint64_t now_ns) const noexcept {
  if (ctx.state != Context::State::open) return false;
  return now_ns < ctx.last_heard_ns + config_.timing.probing_silence_ns || ctx.doubted ||
         has_unfinished(ctx) || has_payload_to_send(ctx);
}

bool Core::Impl::has_living_sibling(Index index, std::uint64_t now_ns) const noexcept {
  for (Index i = peers_[contexts_[index].peer].contexts; i != kNone; i = contexts_[i].peer_next) {
    if (i != index && contexts_[i].state == Context::State::open &&
        contexts_[i].last_heard_ns + config_.timing.dead_timeout_ns > now_ns) {
      return true;
    }
  }
  return false;
}

/// HELLO repetition, third leg, give-up times. True: the context is gone.
bool Core::Impl::set_up_timers(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (now_ns >= ctx.give_up_ns) {
    switch (ctx.state) {
      case Context::State::hello_sent: {
        const Index peer = ctx.peer;
        const bool only = peers_[peer].contexts == index && ctx.peer_next == kNone;
        if (only) {
          lose_peer(peer, ctx.refusal, now_ns);
        } else {
          destroy_context(index, Errc::timed_out, now_ns);
        }
        return true;
      }
      case Context::State::half_open:
        destroy_context(index, Errc::timed_out, now_ns);
        return true;
      case Context::State::open: {
        const std::uint64_t idle_since = std::max(ctx.last_heard_ns, ctx.last_tx_ns);
        const bool idle =
            !has_unfinished(ctx) && now_ns - idle_since >= config_.timing.drained_context_life_ns;
        ctx.close_pending = idle;
        ctx.give_up_ns = idle ? UINT64_MAX : now_ns + config_.timing.drained_context_life_ns;
        break;
      }
    }
  }
  if (now_ns >= ctx.hello_due_ns) {
    if (ctx.state == Context::State::hello_sent) {
      ctx.hello_pending = true;
      ctx.hello_due_ns = UINT64_MAX;  // set when it is sent
    } else if (ctx.third_leg_pending) {
      probe_slot(ctx, control_slot(ctx, now_ns));
      ctx.hello_due_ns = now_ns + rto_ns(ctx);
      expect_answer(ctx, now_ns);
    } else {
      ctx.hello_due_ns = UINT64_MAX;
    }
  }
  return false;
}

/// Something was sent that a living peer answers: if nothing at all is heard, it is dead some day.
void Core::Impl::expect_answer(Ctx& ctx, std::uint64_t now_ns) noexcept {
  if (ctx.dead_timer.due_ns == UINT64_MAX) {
    ctx.dead_timer.arm(now_ns, config_.timing.dead_timeout_ns);
  }
}

}  // namespace srd::core
