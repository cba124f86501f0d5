// SPDX-License-Identifier: Apache-2.0
// What ACKs and NACKs do to the sender: datagrams leave flight, paths and window learn, messages
// complete. An ACK proves only what its bitmaps cover (PROTOCOL.md 5.3); a message completes only
// when all rejections up to that ACK are known (PROTOCOL.md 6.2).
#include <algorithm>
#include <bit>

#include "srd/core/impl.hpp"

#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint64_t kRetryAfterMinNs = 10'000, kRetryAfterMaxNs = 1'000'000'000;
constexpr std::uint64_t kNewSlotNs = 1'000'000'000;
constexpr unsigned kFifoJudgeCount = 256;
constexpr std::uint64_t kFifoOffNs = 60'000'000'000;
}  // namespace

void Core::Impl::on_ack(Index index, Arrival& arrival) noexcept {
  counters_.rx_acks.add();
  ++contexts_[index].counters.rx_acks;
  wire::AckHeader ack;
  std::array<std::uint64_t, wire::kAckWordsMax> received;
  std::array<std::uint64_t, wire::kAckWordsMax> ce;
  if (!wire::decode(arrival.bytes, ack, received, ce)) {
    counters_.rx_malformed.add();
    return;
  }
  AckInfo info;
  info.cumulative = arrival.header.psn;
  info.ack_seq = ack.ack_seq;
  info.rej_total = ack.rej_total;
  info.limit_units = ack.limit;
  info.pressure = ack.pressure;
  info.echo_time = ack.echo_time;
  info.hold_ns = wire::from_wire_span(arrival.header.tx_time - ack.rx_time);
  info.echo_slot = ack.echo_slot;
  info.echo_gen_attempt = ack.echo_gen_attempt;
  info.bitmap_psn = info.cumulative + static_cast<std::uint32_t>(std::int32_t{ack.bitmap_base});
  info.received = std::span(received).first(ack.words);
  info.ce = (ack.flags & wire::kAckCeBitmap) != 0
                ? std::span<const std::uint64_t>(ce).first(ack.words)
                : std::span<const std::uint64_t>();
  if (!apply_ack(index, arrival, info)) return;
  Ctx& ctx = contexts_[index];
  on_host_drop_report(ctx, ack.host_drops, arrival.now_ns);
  on_dup_report(ctx, ack.dup_total, arrival.now_ns);
}

void Core::Impl::on_piggy(Index index, Arrival& arrival) noexcept {
  const wire::Piggy& piggy = *arrival.extensions.piggy;
  AckInfo info;
  info.cumulative = piggy.cumulative;
  info.ack_seq = piggy.ack_seq;
  info.rej_total = piggy.rej_total;
  info.limit_units = piggy.limit;
  info.pressure = piggy.pressure;
  info.echo_time = piggy.echo_time;
  info.hold_ns = wire::from_wire_span(piggy.hold_time);
  info.echo_slot = piggy.echo_slot;
  info.echo_gen_attempt = piggy.echo_gen_attempt;
  info.bitmap_psn = piggy.cumulative & ~63U;
  apply_ack(index, arrival, info);
}

/// Nothing beyond what was sent may be acknowledged, nothing so old that it cannot be ours.
bool Core::Impl::is_impossible(const Ctx& ctx, const AckInfo& info) noexcept {
  if (seq_less(ctx.nxt, info.cumulative) || (info.bitmap_psn & 63U) != 0 ||
      seq_diff(ctx.cumulative, info.cumulative) > std::int32_t{kWindowPsnsMax} ||
      seq_diff16(info.rej_total, ctx.rej_known) > std::int16_t{kRejectionsPerPeerMax}) {
    return true;
  }
  for (std::size_t w = 0; w < info.received.size(); ++w) {
    const std::uint32_t psn = info.bitmap_psn + static_cast<std::uint32_t>(w) * 64;
    const std::int32_t sendable = seq_diff(ctx.nxt, psn);
    if (sendable >= 64) continue;
    const std::uint64_t beyond =
        sendable <= 0 ? ~std::uint64_t{0} : ~std::uint64_t{0} << static_cast<unsigned>(sendable);
    if ((info.received[w] & beyond) != 0) return true;
  }
  return false;
}

/// False: the ACK is impossible and was dropped.
bool Core::Impl::apply_ack(Index index, const Arrival& arrival, const AckInfo& info) noexcept {
  Ctx& ctx = contexts_[index];
  if (is_impossible(ctx, info)) {
    counters_.rx_impossible_acks.add();
    return false;
  }
  // Newest first: only the newest ACK updates limit, pressure and rejection count.
  const int step = ctx.has_ack_seq ? seq_diff16(info.ack_seq, ctx.last_ack_seq) : 1;
  const bool newest = step > 0;
  ++ctx.ack_order;
  if (newest) {
    if (step > 1 && ctx.has_ack_seq) ctx.gap_order = ctx.ack_order;
    ctx.last_ack_seq = info.ack_seq;
    ctx.latest_ack_ns = std::max(ctx.latest_ack_ns, arrival.arrived_ns);
    ctx.has_ack_seq = true;
    if (seq_diff16(info.rej_total, ctx.rej_total_seen) > 0) ctx.rej_total_seen = info.rej_total;
  }
  AckTally tally;
  if (seq_less(ctx.cumulative, info.cumulative)) {
    for (std::uint32_t psn = ctx.cumulative; psn != info.cumulative; ++psn) {
      ack_psn(index, psn, false, arrival.now_ns, tally);
    }
    ctx.cumulative = info.cumulative;
  }
  for (std::size_t w = 0; w < info.received.size(); ++w) {
    const std::uint32_t first = info.bitmap_psn + static_cast<std::uint32_t>(w) * 64;
    const std::uint64_t marked = info.ce.empty() ? 0 : info.ce[w] & info.received[w];
    note_ce(ctx, first, marked);
    if (seq_less_equal(first + 64, ctx.cumulative)) continue;
    const std::size_t ring = first / 64 % kWindowWords;
    ctx.covered[ring] = ctx.ack_order;
    std::uint64_t fresh = info.received[w] & ~ctx.acked[ring];
    while (fresh != 0) {
      const auto bit = static_cast<unsigned>(std::countr_zero(fresh));
      fresh &= fresh - 1;
      const std::uint32_t psn = first + bit;
      if (seq_less(psn, ctx.una) || !seq_less(psn, ctx.nxt)) continue;
      ack_psn(index, psn, (marked >> bit & 1U) != 0, arrival.now_ns, tally);
    }
  }
  if (newest) update_limit(index, info.limit_units);
  take_rtt(index, arrival, info, tally);
  if (tally.datagrams > 0) {
    if (tally.first_copies > 0) note_needless_rto(ctx, arrival.now_ns);
    ctx.retries = 0;
    ctx.progress_ns = arrival.now_ns;
    ctx.tail_probe_pending = false;
    if (newest) ctx.congestion.on_pressure(info.pressure, tally.bytes);
  }
  // Losses are judged once everything that has arrived is read (PROTOCOL.md 5.6): this ACK may be
  // older than the next one, which waits in another socket.
  ctx.losses_to_judge = true;
  if (tally.datagrams > 0) {
    Congestion::Feedback feedback;
    feedback.now_ns = arrival.now_ns;
    feedback.acked_bytes = tally.bytes;
    feedback.ce_bytes = tally.ce_bytes;
    feedback.delayed_bytes = tally.delayed_bytes;
    feedback.base_rtt_ns = ctx.rtt.has_sample() ? ctx.rtt.base_ns() : config_.timing.initial_rtt_ns;
    feedback.srtt_ns = ctx.rtt.has_sample() ? ctx.rtt.srtt_ns() : config_.timing.initial_rtt_ns;
    feedback.window_limited = ctx.window_limited;
    ctx.congestion.on_ack(feedback);
    ctx.window_limited = false;
  }
  advance_una(index);
  release_parked(index);
  arm_retry(ctx, arrival.now_ns);
  // What waits counts, too: over slow paths 64 KB are never in flight at once.
  if (!ctx.all_paths_open && ctx.initiator &&
      ctx.in_flight_bytes + tally.bytes + peers_[ctx.peer].backlog_bytes > kOpenAllBytes) {
    open_all_paths(index, arrival.now_ns);
  }
  return true;
}

/// One datagram arrived at the peer.
void Core::Impl::ack_psn(Index index, std::uint32_t psn, bool ce, std::uint64_t now_ns,
                         AckTally& tally) noexcept {
  Ctx& ctx = contexts_[index];
  if (seq_less(psn, ctx.una)) return;
  Sent& record = sent(ctx, psn);
  if (record.state == Sent::State::acked || record.state == Sent::State::none) return;
  ctx.acked[psn / 64 % kWindowWords] |= std::uint64_t{1} << (psn & 63U);
  Slot& slot = ctx.paths[record.slot];
  if (record.state == Sent::State::in_flight) {
    take_from_flight(ctx, psn);
  } else {
    unlink_lost(ctx, psn);  // declared lost too early, and not sent again yet
    counters_.tx_spurious.add();
    ++ctx.counters.tx_spurious;
  }
  record.state = Sent::State::acked;
  const bool current = record.generation == slot.generation;
  slot.acked_bytes += record.bytes;
  slot.refusals = 0;
  slot.rate_bytes += record.bytes;
  slot.last_ack_ns = now_ns;
  slot.last_acked_tx_ns = std::max(slot.last_acked_tx_ns, record.tx_ns);
  slot.loss_ewma *= 31.0 / 32;
  ctx.rack_tx_ns = std::max(ctx.rack_tx_ns, record.tx_ns);
  ctx.rack_order = ctx.ack_order;
  if (current) {
    if (!slot.has_acked || seq_less(slot.acked_burst, record.burst)) {
      slot.has_acked = true;
      slot.acked_burst = record.burst;
      slot.acked_index = record.burst_index;
      slot.acked_before = 0;
    } else if (slot.acked_burst == record.burst) {
      slot.acked_before =
          std::max(slot.acked_before, std::min(slot.acked_index, record.burst_index));
      slot.acked_index = std::max(slot.acked_index, record.burst_index);
    }
    if (record.attempt == 0) {
      tally.newest_tx_ns[record.slot] = std::max(tally.newest_tx_ns[record.slot], record.tx_ns);
    }
    tally.slot_bytes[record.slot] += record.bytes + 64;
    tally.slots |= std::uint64_t{1} << record.slot;
  }
  ++tally.datagrams;
  if (record.attempt == 0) ++tally.first_copies;
  tally.bytes += record.bytes;
  if (ce) tally.ce_bytes += record.bytes;
  switch (record.kind) {
    case Sent::Kind::data:
      message_acked(index, record.message);
      break;
    case Sent::Kind::small: {
      Bundle& bundle = bundles_[record.message];
      ++bundle.live;
      for (Index m = bundle.first_message; m != kNone;) {
        const Index next = tx_messages_[m].bundle_next;
        message_acked(index, m);
        m = next;
      }
      bundle.live =
          static_cast<std::uint16_t>(bundle.live - 2);  // the guard above and the datagram
      drop_bundle_if_dead(record.message);
      break;
    }
    case Sent::Kind::abort:
    case Sent::Kind::voided:
      break;
  }
}

/// CE marks also come for PSNs acknowledged before; they count for the slot once.
void Core::Impl::note_ce(Ctx& ctx, std::uint32_t first_psn, std::uint64_t marked) noexcept {
  while (marked != 0) {
    const auto bit = static_cast<unsigned>(std::countr_zero(marked));
    marked &= marked - 1;
    const std::uint32_t psn = first_psn + bit;
    // Records below una are gone; their slot is forgotten with them.
    if (seq_less(psn, ctx.una) || !seq_less(psn, ctx.nxt)) continue;
    Sent& record = sent(ctx, psn);
    if (record.ce_noted) continue;
    record.ce_noted = true;
    Slot& slot = ctx.paths[record.slot];
    ++slot.ce_datagrams;
  }
}

// --- round-trip times ---

// A slot that is opened under load does not see its round trip without the queue at first. Paths of
// one network are alike, so for a second its base counts as at most about twice the context's.
std::uint64_t Core::Impl::slot_base_ns(const Ctx& ctx, std::uint32_t slot_index) const noexcept {
  const Slot& slot = ctx.paths[slot_index];
  const std::uint64_t base = ctx.rtt.base_ns();
  if (base == UINT64_MAX || now_ns_ - slot.opened_ns > kNewSlotNs) return slot.rtt.base_ns();
  return std::min(slot.rtt.base_ns(),
                  base + std::max(base, config_.timing.target_delay_min_ns / 4));
}

/// The peer told of something that left here `round_ns` before `arrived_ns`: it has handled what
/// was sent until then.
void Core::Impl::note_echo(Ctx& ctx, std::uint64_t arrived_ns, std::uint64_t round_ns) noexcept {
  if (round_ns < kRttMaxNs && round_ns <= arrived_ns) {
    ctx.echoed_ns = std::max(ctx.echoed_ns, arrived_ns - round_ns);
  }
}

void Core::Impl::note_rtt(Ctx& ctx, std::uint32_t slot, std::uint64_t rtt_ns,
                          std::uint64_t now_ns) noexcept {
  ctx.rtt.add(rtt_ns, now_ns);
  ctx.paths[slot].rtt.add(rtt_ns, now_ns);
}

void Core::Impl::take_rtt(Index index, const Arrival& arrival, const AckInfo& info,
                          AckTally& tally) noexcept {
  Ctx& ctx = contexts_[index];
  // The echo names one copy of one datagram, so retransmissions are no ambiguity.
  const std::uint64_t arrived = arrival.arrived_ns;
  const std::uint64_t round = wire::from_wire_span(wire::to_wire_time(arrived) - info.echo_time);
  const std::uint32_t echo_slot = info.echo_slot;
  bool echo_used = false;
  note_echo(ctx, arrived, round);
  if (tally.datagrams > 0 && echo_slot < ctx.paths.size() && round >= info.hold_ns &&
      round - info.hold_ns < kRttMaxNs &&
      (info.echo_gen_attempt >> 4U) == (ctx.paths[echo_slot].generation & 15U)) {
    note_rtt(ctx, echo_slot, round - info.hold_ns, arrival.now_ns);
    echo_used = true;
  }
  const std::uint64_t hold = std::min(info.hold_ns, kRttMaxNs);
  for (std::uint64_t rest = tally.slots; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(rest));
    Slot& slot = ctx.paths[i];
    // The newest datagram of the slot in this ACK: its time at the receiver is known to within the
    // ACK's coalescing, exactly for the echoed one.
    const bool exact = echo_used && i == echo_slot;
    std::uint64_t rtt = slot.rtt.srtt_ns();
    if (exact) {
      rtt = round - info.hold_ns;
    } else if (tally.newest_tx_ns[i] != 0 && arrived > tally.newest_tx_ns[i] + hold) {
      rtt = arrived - tally.newest_tx_ns[i] - hold;
      slot.rtt.add_rough(rtt);
    }
    const std::uint64_t base = slot_base_ns(ctx, i);
    slot.queue_delay_ns = rtt > base ? rtt - base : 0;
    ctx.congestion.add_delay(slot.queue_delay_ns, tally.slot_bytes[i]);
    if (slot.queue_delay_ns > ctx.congestion.target_ns())
      tally.delayed_bytes += tally.slot_bytes[i];
    if (slot.rate_since_ns == 0) slot.rate_since_ns = arrival.now_ns;
    const std::uint64_t span = arrival.now_ns - slot.rate_since_ns;
    if (span >= std::max<std::uint64_t>(slot.rtt.srtt_ns(), 100'000)) {
      const double rate = static_cast<double>(slot.rate_bytes) / static_cast<double>(span);
      slot.rate_bytes_per_ns += (rate - slot.rate_bytes_per_ns) / 8;
      slot.rate_bytes = 0;
      slot.rate_since_ns = arrival.now_ns;
    }
    ctx.paths.rebalance(i, arrival.now_ns, ctx.congestion.mean_delay_ns(),
                        static_cast<double>(ctx.congestion.target_ns()));
  }
}

// --- limit, una, messages ---

void Core::Impl::update_limit(Index index, std::uint64_t limit_units) noexcept {
  Ctx& ctx = contexts_[index];
  // The wire carries the low 32 bits of a count that only rises.
  const auto known = static_cast<std::uint32_t>(ctx.limit_bytes >> wire::kLimitUnitShift);
  const std::int32_t step = seq_diff(static_cast<std::uint32_t>(limit_units), known);
  if (step <= 0) return;
  ctx.limit_bytes += static_cast<std::uint64_t>(step) << wire::kLimitUnitShift;
  // A rejected message moves the limit by its own bytes; only more room is worth another try.
  if (ctx.limit_bytes > ctx.assigned_bytes + ctx.alone_room_bytes) {
    ctx.alone_at_ns = ctx.alone_pause_ns = 0;
  }
  if (ctx.limit_blocked) {
    ctx.limit_blocked = false;
    ctx.limit_probe.cancel();
  }
}

void Core::Impl::advance_una(Index index) noexcept {
  Ctx& ctx = contexts_[index];
  while (ctx.una != ctx.nxt && sent(ctx, ctx.una).state == Sent::State::acked) {
    ++ctx.una;
    if (ctx.una % kChunkPsns != 0) continue;
    Index& chunk = ctx.chunks[(ctx.una - 1) / kChunkPsns % kWindowWords];
    chunks_.give(chunk);
    chunk = kNone;
    ctx.acked[(ctx.una - 1) / 64 % kWindowWords] = 0;
  }
  if (ctx.una == ctx.nxt) {
    // Nothing out: the last chunk rests with the pool, not with an idle peer.
    Index& chunk = ctx.chunks[ctx.una / kChunkPsns % kWindowWords];
    if (chunk != kNone) {
      chunks_.give(chunk);
      chunk = kNone;
    }
  }
}

void Core::Impl::message_acked(Index index, Index at) noexcept {
  TxMessage& message = tx_messages_[at];
  if (message.state != TxMessage::State::active) return;  // rejected meanwhile
  --message.unacked;
  if (message.unacked > 0 || message.offset < message.bytes) return;
  Ctx& ctx = contexts_[index];
  if (message.bundle == kNone && message.is_multi) --ctx.open_multi;
  ctx.active.remove(tx_messages_, at);
  if (seq_diff16(ctx.rej_total_seen, ctx.rej_known) > 0) {
    message.state = TxMessage::State::parked;
    message.rej_needed = ctx.rej_total_seen;
    ctx.parked.push_back(tx_messages_, at);
    if (!ctx.want_nack_pending) ctx.want_nack.arm(now_ns_, pto_ns(ctx));
    return;
  }
  message_delivered(ctx, at);
}

void Core::Impl::message_delivered(Ctx& ctx, Index at) noexcept {
  ++ctx.counters.tx_messages;
  ctx.counters.tx_message_bytes += tx_messages_[at].bytes;
  finish_message(at, Errc::ok);
}

/// Completions that waited for rejections they might have been.
void Core::Impl::release_parked(Index index) noexcept {
  Ctx& ctx = contexts_[index];
  for (Index at = ctx.parked.head; at != kNone;) {
    const Index next = tx_messages_[at].next;
    if (seq_diff16(tx_messages_[at].rej_needed, ctx.rej_known) <= 0) {
      ctx.parked.remove(tx_messages_, at);
      message_delivered(ctx, at);
    }
    at = next;
  }
  if (ctx.parked.empty() && seq_diff16(ctx.rej_total_seen, ctx.rej_known) <= 0) {
    ctx.want_nack.cancel();
  }
}

// --- rejections ---

void Core::Impl::on_nack(Index index, Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  wire::NackHeader nack;
  if (!wire::decode(arrival.bytes, nack)) {
    counters_.rx_malformed.add();
    return;
  }
  const std::int16_t ahead = seq_diff16(nack.rej_seq, ctx.rej_known);
  if (ahead <= 0) {
    // Told again: our confirmation was lost.
    ctx.confirm_due_ns =
        std::min(ctx.confirm_due_ns, arrival.now_ns + config_.timing.max_ack_delay_ns);
    return;
  }
  if (ahead > static_cast<std::int16_t>(kRejectionsPerPeerMax)) {
    counters_.rx_malformed.add();
    return;
  }
  const auto bit = static_cast<unsigned>(ahead - 1);
  if ((ctx.rej_ahead[bit / 64] >> bit % 64 & 1U) != 0) return;
  ctx.rej_ahead[bit / 64] |= std::uint64_t{1} << bit % 64;
  while ((ctx.rej_ahead[0] & 1U) != 0) {
    ++ctx.rej_known;
    for (std::size_t i = 0; i < 4; ++i) {
      ctx.rej_ahead[i] = ctx.rej_ahead[i] >> 1U | (i < 3 ? ctx.rej_ahead[i + 1] << 63U : 0);
    }
  }
  if (seq_diff16(ctx.rej_known, ctx.rej_total_seen) > 0) ctx.rej_total_seen = ctx.rej_known;
  ctx.confirm_due_ns =
      std::min(ctx.confirm_due_ns, arrival.now_ns + config_.timing.max_ack_delay_ns);
  const Index message = find_sent_message(ctx, nack.msg_id);
  if (message != kNone) message_rejected(index, message, nack, arrival.now_ns);
  release_parked(index);
}

Index Core::Impl::find_sent_message(const Ctx& ctx, std::uint32_t msg_id) const noexcept {
  const auto ahead = [&](Index at) { return seq_diff(tx_messages_[at].msg_id, msg_id); };
  // Those in `active` are in the order of their ids: from the nearer end, until they have passed.
  if (!ctx.active.empty()) {
    const Index head = ctx.active.head, tail = ctx.active.tail;
    if (ahead(head) <= 0 && ahead(tail) >= 0) {
      const bool forward = -ahead(head) <= ahead(tail);
      Index at = forward ? head : tail;
      while (forward ? ahead(at) < 0 : ahead(at) > 0) {
        at = forward ? tx_messages_[at].next : tx_messages_[at].prev;
      }
      if (ahead(at) == 0) return at;
    }
  }
  for (Index at = ctx.parked.head; at != kNone; at = tx_messages_[at].next) {
    if (ahead(at) == 0) return at;
  }
  return kNone;
}

/// The message was consumed there without delivery. What of it is still out will be consumed
/// unseen, so those PSNs are voided, the message ends by ABORT and, unless final, comes again under
/// a new id.
void Core::Impl::message_rejected(Index index, Index at, const wire::NackHeader& nack,
                                  std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  TxMessage& message = tx_messages_[at];
  counters_.tx_rejected_messages.add();
  ++ctx.counters.tx_rejected_messages;
  if (message.state == TxMessage::State::parked) {
    ctx.parked.remove(tx_messages_, at);
  } else {
    if (message.is_multi) --ctx.open_multi;
    ctx.active.remove(tx_messages_, at);
  }
  if (ctx.current == at) abandon_current(ctx);
  if (message.unacked > 0 && message.bundle == kNone) void_outstanding(index, at);
  message.unacked = 0;
  message.status = Errc::ok;
  if (nack.code == wire::NackCode::too_long) message.status = Errc::message_too_long;
  if (nack.code == wire::NackCode::no_port) message.status = Errc::no_such_port;
  const std::uint64_t asked = std::clamp<std::uint64_t>(std::uint64_t{nack.retry_after_us} * 1000,
                                                        kRetryAfterMinNs, kRetryAfterMaxNs);
  message.rejections = static_cast<std::uint8_t>(std::min(message.rejections + 1, 10));
  message.retry_at_ns = now_ns + (asked << (message.rejections - 1U) / 2U);
  if (!message.is_multi) {
    settle_rejected(ctx.peer, at);
    return;
  }
  message.state = TxMessage::State::aborting;
  ctx.aborting.push_back(tx_messages_, at);
  queue_aborts(index, now_ns);
}

/// The peer keeps nothing of the rejected message any more: it ends, or waits to come again.
void Core::Impl::settle_rejected(Index peer, Index at) noexcept {
  TxMessage& message = tx_messages_[at];
  if (message.status != Errc::ok) {
    finish_message(at, message.status);
    return;
  }
  message.state = TxMessage::State::waiting;
  message.context = kNone;
  message.offset = 0;
  message.iov_at = 0;
  message.iov_offset = 0;
  wait_for_retry(peer, at);
}

/// PSNs of the message that are not acknowledged carry nothing from now on.
void Core::Impl::void_outstanding(Index index, Index at) noexcept {
  Ctx& ctx = contexts_[index];
  std::uint32_t left = tx_messages_[at].unacked;
  for (std::uint32_t psn = ctx.una; psn != ctx.nxt && left > 0; ++psn) {
    Sent& record = sent(ctx, psn);
    if (record.kind != Sent::Kind::data || record.message != at ||
        record.state == Sent::State::acked || record.state == Sent::State::none) {
      continue;
    }
    --left;
    record.kind = Sent::Kind::voided;
    record.message = kNone;
    // In flight ones may arrive yet; only if they do not are they sent again, as VOID.
  }
}

// --- reports about the peer's host ---

void Core::Impl::on_host_drop_report(Ctx& ctx, std::uint16_t host_drops,
                                     std::uint64_t now_ns) noexcept {
  const std::int16_t more = seq_diff16(host_drops, ctx.peer_host_drops);
  if (more <= 0) return;
  ctx.peer_host_drops = host_drops;
  ctx.charge_host_losses += static_cast<std::uint64_t>(more);
  ctx.congestion.on_host_drops(now_ns);
}

void Core::Impl::on_dup_report(Ctx& ctx, std::uint16_t dup_total, std::uint64_t now_ns) noexcept {
  const std::int16_t more = seq_diff16(dup_total, ctx.peer_dup_total);
  if (more <= 0) return;
  ctx.peer_dup_total = dup_total;
  std::uint32_t needless = static_cast<std::uint32_t>(more);
  counters_.tx_spurious.add(needless);
  ctx.counters.tx_spurious += needless;
  // Copies that probes sent on purpose say nothing about the rules of loss, if their report still
  // comes: most find the original lost, and nobody reports them.
  if (now_ns > ctx.own_copies_until_ns) ctx.own_copies = 0;
  const std::uint32_t own = std::min(needless, ctx.own_copies);
  ctx.own_copies -= own;
  needless -= own;
  if (needless == 0) return;
  // Reordering, or a retransmission came too early: allow for more (RFC 8985 7.2), for a while.
  const std::uint64_t target = ctx.congestion.target_ns();
  ctx.reo_ns = std::min(std::max(ctx.reo_ns, target) * 2, std::max(ctx.rtt.srtt_ns(), 4 * target));
  ctx.reo_relax_ns = now_ns + kReoRelaxNs;
  ctx.fifo_spurious += needless;
  if (ctx.fifo_losses >= kFifoJudgeCount) {
    if (ctx.fifo_spurious * 100 > ctx.fifo_losses) {
      ctx.fifo_enabled = false;
      ctx.fifo_off_until_ns = now_ns + kFifoOffNs;
    }
    ctx.fifo_losses = ctx.fifo_spurious = 0;
  }
}

}  // namespace srd::core
