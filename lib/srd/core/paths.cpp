// SPDX-License-Identifier: Apache-2.0
// Life of path slots: opened by the initiator, probed before they carry data, suspected when data
// vanishes, re-rolled to new entropy; the responder answers on the reversed 5-tuples it has seen
// and asks for new ones. Source: PROTOCOL.md 7.
#include <algorithm>
#include <bit>
#include <cstring>

#include "srd/core/impl.hpp"

#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint32_t kInitialPaths = 4;
constexpr std::uint64_t kProbeWaitMinNs = 1'000'000;
constexpr std::uint32_t kSilentMisses = 6;  // 60 ms at least
constexpr std::uint64_t kBackoffMaxNs = 1'000'000'000;
constexpr std::uint64_t kAdoptCompareNs =
    60'000'000'000;  // half the wrap of wire time, with margin
constexpr std::uint64_t kUnheardNs = 100'000'000;
constexpr std::uint32_t kUnheardAcks = 3;
constexpr std::uint64_t kExploreFastNs = 100'000'000, kExploreSlowNs = 3'200'000'000;
constexpr double kUnevenLow = 0.5, kUnevenHigh = 1.75;
}  // namespace

/// What was learned of the path before says nothing about this one.
void Core::Impl::begin_path(Slot& slot, PathId path, std::uint64_t now_ns,
                            std::uint8_t answers) noexcept {
  slot.path = path;
  slot.rtt.reset();
  slot.has_acked = slot.fifo_pending = slot.lost_burst_valid = false;
  slot.loss_ewma = 0;
  slot.queue_delay_ns = 0;
  slot.last_acked_tx_ns = 0;
  slot.opened_ns = now_ns;
  slot.answers_needed = answers;
  slot.probe_id = slot.answered_probe_id = 0;
  slot.probe_opaque = prng_.next();
  slot.next_probe_ns = now_ns;
}

bool Core::Impl::open_slot(Ctx& ctx, std::uint32_t index, std::uint64_t now_ns,
                           std::uint8_t answers) noexcept {
  Slot& slot = ctx.paths[index];
  ctx.paths.want(index);
  slot.entropy =
      index == ctx.service_slot ? kServiceEntropy : static_cast<std::uint32_t>(prng_.next()) >> 1U;
  const auto path = path_control_.open_path(peers_[ctx.peer].dest, slot.entropy);
  if (!path) {
    slot.next_probe_ns = now_ns + kBackoffMaxNs;
    return false;
  }
  begin_path(slot, *path, now_ns, answers);
  ctx.paths.set_state(index, SlotState::untried);
  return true;
}

void Core::Impl::open_initial_paths(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  const std::uint32_t count = std::min(ctx.paths.size(), kInitialPaths);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (ctx.paths[i].path == kNoPath && open_slot(ctx, i, now_ns, 1)) probe_slot(ctx, i);
  }
}

void Core::Impl::open_all_paths(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  ctx.all_paths_open = true;
  for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) {
    if (ctx.paths[i].path == kNoPath && open_slot(ctx, i, now_ns, 1)) probe_slot(ctx, i);
  }
  mark_ready(index);
}

/// Closes a path once the datagrams that the current poll_transmit() returns are sent.
void Core::Impl::retire_path(PathId path) noexcept {
  if (retired_count_ == retired_.size()) {
    path_control_.close_path(path);  // costs at most datagrams that count as lost
    return;
  }
  retired_[retired_count_++] = path;
}

void Core::Impl::leave_path(Slot& slot) noexcept {
  if (slot.path != kNoPath) retire_path(slot.path);
  slot.path = kNoPath;
}

void Core::Impl::close_paths(Ctx& ctx) noexcept {
  for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) leave_path(ctx.paths[i]);
}

void Core::Impl::probe_slot(Ctx& ctx, std::uint32_t slot) noexcept {
  if (slot < ctx.paths.size() && ctx.paths[slot].path != kNoPath) {
    ctx.probes_pending |= std::uint64_t{1} << (slot & 63U);
  }
}

void Core::Impl::slot_answered(Index index, std::uint32_t slot_index,
                               std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  Slot& slot = ctx.paths[slot_index];
  slot.last_ack_ns = now_ns;
  slot.probe_id = 0;
  slot.probe_misses = 0;
  slot.probe_backoff_ns = 0;
  ctx.repath_wanted &= ~(std::uint64_t{1} << slot_index);
  if (slot.state == SlotState::good || slot.state == SlotState::closed) return;
  if (slot.answers_needed > 1) {
    --slot.answers_needed;
    slot.next_probe_ns = now_ns;
    probe_slot(ctx, slot_index);
    return;
  }
  slot.last_acked_tx_ns = now_ns;
  ctx.paths.set_state(slot_index, SlotState::good);
}

/// No data on it until two probes in a row are answered. The last good slot stays: the retry timer
/// decides about a peer that cannot be reached at all.
void Core::Impl::suspect(Index index, std::uint32_t slot_index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  Slot& slot = ctx.paths[slot_index];
  if (slot.state != SlotState::good || ctx.paths.good_count() <= 1) return;
  counters_.path_suspects.add();
  ++ctx.counters.path_suspects;
  ctx.paths.set_state(slot_index, SlotState::suspect);
  slot.answers_needed = 2;
  slot.next_probe_ns = now_ns;
  probe_slot(ctx, slot_index);
  mark_ready(index);
}

void Core::Impl::reroll(Index index, std::uint32_t slot_index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  Slot& slot = ctx.paths[slot_index];
  if (!ctx.initiator) {
    ctx.repath_wanted |= std::uint64_t{1} << (slot_index & 63U);
    return;
  }
  if (slot.state == SlotState::good && ctx.paths.good_count() <= 1) return;
  counters_.path_rerolls.add();
  ++ctx.counters.path_rerolls;
  ++slot.rerolls;
  leave_path(slot);
  ctx.paths.set_state(slot_index, SlotState::closed);
  slot.generation = static_cast<std::uint8_t>((slot.generation + 1U) & 15U);
  if (open_slot(ctx, slot_index, now_ns, 2)) probe_slot(ctx, slot_index);
  mark_ready(index);
}

/// Probe deadlines and repetitions of slots that are not good, and exploration.
void Core::Impl::slot_timers(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  for (std::uint64_t rest = ctx.paths.unproven_mask(); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(rest));
    Slot& slot = ctx.paths[i];
    if (slot.path == kNoPath) {
      if (ctx.initiator && now_ns >= slot.next_probe_ns) open_slot(ctx, i, now_ns, 2);
      continue;
    }
    if (slot.probe_id != 0 && now_ns >= slot.probe_deadline_ns) {
      slot.probe_id = 0;
      // While the peer has answered nothing that was sent later, it may have lost its CPU or have
      // much to read first; that tells nothing about this path. Asked again a few times, it does.
      if (ctx.echoed_ns < slot.last_tx_ns && slot.silent_misses < kSilentMisses) {
        slot.next_probe_ns =
            now_ns + (std::max(2 * ctx.rtt.srtt_ns(), kProbeWaitMinNs) << slot.silent_misses++);
        continue;
      }
      slot.silent_misses = 0;
      if (slot.probe_misses < 16) ++slot.probe_misses;
      const std::uint64_t step = std::max<std::uint64_t>(2 * ctx.rtt.srtt_ns(), kProbeWaitMinNs);
      reroll(index, i, now_ns);
      // The first re-roll is tried at once, later ones with growing pauses.
      slot.probe_backoff_ns =
          slot.probe_misses <= 2 ? 0 : std::min(step << (slot.probe_misses - 2U), kBackoffMaxNs);
      slot.next_probe_ns = now_ns + slot.probe_backoff_ns;
      if (slot.probe_backoff_ns > 0) ctx.probes_pending &= ~(std::uint64_t{1} << i);
    }
    if (slot.probe_id == 0 && now_ns >= slot.next_probe_ns && slot.path != kNoPath) {
      probe_slot(ctx, i);
      mark_ready(index);
      // Without any good slot nothing else is sent that the peer would answer.
      if (ctx.paths.good_count() == 0 && has_payload_to_send(ctx)) expect_answer(ctx, now_ns);
    }
  }
}

/// While the window limits: the slot with the lowest rate tries another path, often while rates are
/// uneven, now and then otherwise, so that a healed or unused path is found. Of few slots each
/// carries much: they move less often.
void Core::Impl::explore(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  const std::uint32_t good = ctx.paths.good_count();
  if (good < 2 || good < ctx.paths.size() || now_ns < ctx.explore_due_ns) return;
  std::uint32_t lowest = kSlotsMax;
  double sum = 0, low = 0, high = 0;
  for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) {
    const double rate = ctx.paths[i].rate_bytes_per_ns;
    sum += rate;
    high = std::max(high, rate);
    if (lowest == kSlotsMax || rate < low) {
      lowest = i;
      low = rate;
    }
  }
  // A slot far above the mean found room that others lack; one far below sits on a crowded path.
  const double mean = sum / good;
  const bool uneven = low < kUnevenLow * mean || high > kUnevenHigh * mean;
  if (!uneven && now_ns < ctx.explored_ns + kExploreSlowNs / good) {
    ctx.explore_due_ns = now_ns + kExploreFastNs;
    return;
  }
  ctx.explored_ns = now_ns;
  ctx.explore_due_ns = now_ns + kExploreFastNs;
  reroll(index, lowest, now_ns);
  ctx.paths[lowest].answers_needed = 1;
}

// --- responder: return paths ---

void Core::Impl::adopt_return_path(Index index, const Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  Slot& slot = ctx.paths[arrival.header.slot];
  // A packet older than the newest that came by the known address is a late one of an earlier
  // generation, or a replay from elsewhere.
  const bool newer = arrival.now_ns - slot.adopted_at_ns >= kAdoptCompareNs ||
                     seq_less(slot.adopted_tx_time, arrival.header.tx_time);
  if (slot.path != kNoPath && !newer) return;
  if (slot.path != kNoPath && slot.flow == arrival.datagram.flow) {
    slot.adopted_tx_time = arrival.header.tx_time;
    slot.adopted_at_ns = arrival.now_ns;
    return;
  }
  const auto path = path_control_.open_return_path(arrival.datagram);
  if (!path) return;
  const bool fresh = slot.path == kNoPath;
  if (!fresh) {
    retire_path(slot.path);
    ctx.paths.set_state(arrival.header.slot, SlotState::closed);
    ++slot.rerolls;
  }
  begin_path(slot, *path, arrival.now_ns, 1);
  slot.flow = arrival.datagram.flow;
  slot.adopted_tx_time = arrival.header.tx_time;
  slot.adopted_at_ns = arrival.now_ns;
  slot.generation = arrival.header.generation;
  slot.probe_misses = 0;
  ctx.repath_wanted &= ~(std::uint64_t{1} << arrival.header.slot);
  // Data goes to it only after a probe with a random number was answered from there.
  ctx.paths.set_state(arrival.header.slot, SlotState::untried);
  if (ctx.state == Context::State::open) probe_slot(ctx, arrival.header.slot);
}

// --- probes ---

void Core::Impl::on_probe(Index index, Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  wire::ProbeHeader probe;
  if (!wire::decode(arrival.bytes, probe)) {
    counters_.rx_malformed.add();
    return;
  }
  PendingProbeAck& answer = ctx.probe_acks[arrival.header.slot];
  ctx.probe_acks_pending |= std::uint64_t{1} << (arrival.header.slot & 63U);
  answer.body = {};
  answer.body.probe_id = probe.probe_id;
  answer.body.opaque = probe.opaque;
  answer.body.echo_time = arrival.header.tx_time;
  answer.body.rx_time = wire::to_wire_time(arrival.arrived_ns);
  answer.body.ce = arrival.datagram.ecn == Ecn::ce ? 1 : 0;
  answer.body.echo_slot = arrival.header.slot;
  answer.body.echo_gen_attempt =
      static_cast<std::uint8_t>(arrival.header.generation << 4U | arrival.header.attempt);
  answer.same_slot = (probe.flags & wire::kProbeSameSlot) != 0;
  confirm_rejections(ctx, probe.rej_known);
  if ((probe.flags & wire::kProbeWantNack) != 0) {
    ctx.nack_slot = arrival.header.slot;
    for (Index at = ctx.rejections.head; at != kNone; at = rejections_[at].next) {
      if (!rejections_[at].send) ++ctx.rejections_to_send;
      rejections_[at].send = true;
    }
  }
  if ((probe.flags & wire::kProbeWantAck) != 0) {
    ctx.rx.retell_all();
    ctx.ack.twice = true;
    ctx.ack.reply_slot = arrival.header.slot;
    acknowledge_now(index);
  }
}

void Core::Impl::on_probe_ack(Index index, Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  wire::ProbeAckHeader answer;
  if (!wire::decode(arrival.bytes, answer) || answer.echo_slot >= ctx.paths.size()) {
    counters_.rx_malformed.add();
    return;
  }
  const std::uint32_t slot = answer.echo_slot;
  // An answer counts however late it comes: the number proves this generation of the slot, and
  // while round trips are longer than thought only late answers can tell.
  const auto is_current = [&] {
    return (answer.echo_gen_attempt >> 4U) == (ctx.paths[slot].generation & 15U) &&
           ctx.paths[slot].probe_opaque == answer.opaque;
  };
  const bool current = is_current();
  const std::uint64_t hold = wire::from_wire_span(arrival.header.tx_time - answer.rx_time);
  const std::uint64_t round =
      wire::from_wire_span(wire::to_wire_time(arrival.arrived_ns) - answer.echo_time);
  const bool plausible = round >= hold && round - hold < kRttMaxNs;
  note_echo(ctx, arrival.arrived_ns, round);
  if (plausible && current) note_rtt(ctx, slot, round - hold, arrival.now_ns);
  // One that comes after the slot was given up tells how long to wait the next time: else an
  // overloaded host is asked more and more, in vain.
  if (plausible && !current) ctx.rtt.add(round - hold, arrival.now_ns);
  // Only the answer to a question asked since the doubt shows life; other packets may have been
  // under way when the peer died.
  if (ctx.doubted && current &&
      seq_diff(answer.echo_time, wire::to_wire_time(ctx.doubted_since_ns)) >= 0) {
    end_doubt_alive(index);  // may give the slot a new generation
  }
  if (!is_current() || answer.probe_id == ctx.paths[slot].answered_probe_id) return;
  ctx.paths[slot].answered_probe_id = answer.probe_id;
  slot_answered(index, slot, arrival.now_ns);
}

// --- which slots work in the other direction ---

std::uint64_t Core::Impl::heard_slots(const Ctx& ctx, std::uint64_t now_ns) const noexcept {
  const std::uint64_t span = std::max<std::uint64_t>(4 * ctx.rtt.srtt_ns(), 1'000'000);
  std::uint64_t heard = 0;
  for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) {
    if (ctx.paths[i].last_heard_ns + span > now_ns) heard |= std::uint64_t{1} << i;
  }
  return heard;
}

/// The peer tells where it heard us: slots that swallow our ACKs are left alone for a while.
void Core::Impl::on_rev_path(Ctx& ctx, const wire::RevPath& rev_path,
                             std::uint64_t now_ns) noexcept {
  const std::uint64_t srtt = std::max<std::uint64_t>(ctx.rtt.srtt_ns(), 100'000);
  if (now_ns >= ctx.unheard_until_ns) ctx.unheard_slots = 0;
  for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) {
    Slot& slot = ctx.paths[i];
    if (slot.acks_sent == 0) continue;
    const bool heard = (rev_path.heard_slots >> i & 1U) != 0;
    if (heard) {
      slot.acks_sent = 0;
      ctx.unheard_slots &= ~(std::uint64_t{1} << i);
    } else if (slot.acks_sent >= kUnheardAcks && now_ns - slot.ack_sent_ns > 3 * srtt / 2) {
      slot.acks_sent = 0;
      ctx.unheard_slots |= std::uint64_t{1} << i;
      ctx.unheard_until_ns = now_ns + kUnheardNs;
    }
  }
}

void Core::Impl::on_re_path(Index index, const wire::RePath& re_path,
                            std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (!ctx.initiator || re_path.slot >= ctx.paths.size()) return;
  Slot& slot = ctx.paths[re_path.slot];
  if ((slot.generation & 15U) != re_path.generation) return;
  // Asked for by the other side's view of its direction: obeyed once per slot and 10 round trips.
  const std::uint64_t pause = 10 * std::max<std::uint64_t>(ctx.rtt.srtt_ns(), 100'000);
  if (now_ns < slot.repath_again_ns || slot.path == kNoPath) return;
  slot.repath_again_ns = now_ns + pause;
  reroll(index, re_path.slot, now_ns);
  slot.answers_needed = 1;
}

// --- what the driver noticed ---

void Core::Impl::handle_path_event(Instant now, const PathEvent& event) noexcept {
  now_ns_ = now.ns;
  if (event.kind == PathEvent::Kind::mtu || event.kind == PathEvent::Kind::link_up) return;
  wire::CommonHeader quoted;
  const std::span<const std::byte> bytes(event.quoted.data(), event.quoted_bytes);
  const bool has_quote = wire::decode(bytes, quoted);
  std::uint32_t candidates = 0;
  if (has_quote && quoted.dst_ctx != 0) {
    for (Index i = contexts_by_remote_id_.first(hash_of_remote(quoted.dst_ctx)); i != kNone;
         i = contexts_by_remote_id_.next(i)) {
      const Ctx& ctx = contexts_[i];
      if (ctx.remote_id != quoted.dst_ctx) continue;
      if (++candidates > kHintCandidates) break;
      // A hint is believed only as far as it quotes something of ours that is out.
      if (seq_less_equal(ctx.una, quoted.psn) && seq_less(quoted.psn, ctx.nxt)) {
        note_icmp(i, now.ns);
      }
    }
  }
  if (event.dest == kNoDest) return;
  candidates = 0;
  for (Index i = peers_by_dest_.first(hash_of(event.dest)); i != kNone;
       i = peers_by_dest_.next(i)) {
    if (peers_[i].dest != event.dest || peers_[i].alias != kNone) continue;
    if (++candidates > kHintCandidates) break;
    for (Index c = peers_[i].contexts; c != kNone; c = contexts_[c].peer_next) note_icmp(c, now.ns);
  }
}

/// Something of the context could not be delivered, it is said: one probe, once per RTO, since the
/// probe may draw the next ICMP error.
void Core::Impl::note_icmp(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (ctx.state != Context::State::open || now_ns < ctx.icmp_again_ns) return;
  if (ctx.in_flight_datagrams == 0 && ctx.lost.count == 0) return;
  ctx.icmp_again_ns = now_ns + rto_ns(ctx);
  if (ctx.probe_two_slots == 0) ctx.probe_two_slots = 1;
  mark_ready(index);
}

void Core::Impl::handle_host_state(Instant now, std::uint64_t rx_host_drops,
                                   std::uint8_t rx_fill) noexcept {
  now_ns_ = now.ns;
  host_drops_ = rx_host_drops;
  rx_fill_ = rx_fill;
}

}  // namespace srd::core
