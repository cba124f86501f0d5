// SPDX-License-Identifier: Apache-2.0
// Packets that carry no message: set-up, ACK, NACK, PROBE, PROBE_ACK, CLOSE; and acknowledgements
// that ride on payload. None of them needs window or limit.
#include <algorithm>
#include <bit>
#include <cstring>

#include "srd/core/impl.hpp"
#include "srd/wire/check.hpp"

namespace srd::core {

namespace {
constexpr std::uint64_t kSlotStayNs = 100'000;  // ACKs keep to a slot so long, and coalesce there
constexpr std::uint64_t kReminderMinNs = 1'000'000;
constexpr std::uint64_t kLimitStepBytes = 64U << 10;
}  // namespace

std::span<std::byte> Core::Impl::scratch(std::size_t bytes) noexcept {
  if (scratch_used_ == kScratchBlocks) return {};
  return std::span(scratch_[scratch_used_++]).first(bytes);
}

/// An answer to somebody without a context: kept whole, sent once, its path closed after.
void Core::Impl::queue_one_shot(const Arrival& arrival,
                                std::span<const std::byte> packet) noexcept {
  if (one_shot_count_ == kOneShots) return;  // a flood; such answers are hints anyway
  const auto path = path_control_.open_return_path(arrival.datagram);
  if (!path) return;
  OneShot& shot = one_shots_[one_shot_count_++];
  shot.path = *path;
  shot.bytes = static_cast<std::uint32_t>(packet.size());
  std::copy(packet.begin(), packet.end(), shot.packet.begin());
}

// --- which slot ---

/// Slot for ACKs, control packets and lone messages: the one that answered last, kept for a while
/// so that what follows coalesces, never one that is known to swallow ours.
std::uint32_t Core::Impl::control_slot(Ctx& ctx, std::uint64_t now_ns) noexcept {
  if (now_ns >= ctx.unheard_until_ns) ctx.unheard_slots = 0;
  const bool stays = now_ns < ctx.ack_slot_until_ns && ctx.ack_slot < ctx.paths.size() &&
                     ctx.paths.is_good(ctx.ack_slot) &&
                     (ctx.unheard_slots >> ctx.ack_slot & 1U) == 0;
  if (stays) return ctx.ack_slot;
  const std::uint32_t best = ctx.paths.freshest(ctx.unheard_slots);
  if (best == kSlotsMax) return best;
  ctx.ack_slot = static_cast<std::uint8_t>(best);
  ctx.ack_slot_until_ns = now_ns + kSlotStayNs;
  return best;
}

/// A slot other than `slot`: one whose ACKs arrive, then a good one, then the one that answered
/// last.
std::uint32_t Core::Impl::another_slot(const Ctx& ctx, std::uint32_t slot) const noexcept {
  const std::uint32_t best = ctx.paths.freshest(ctx.unheard_slots | std::uint64_t{1} << slot);
  return best == kSlotsMax ? slot : best;
}

// --- duties ---

void Core::Impl::acknowledge_now(Index index) noexcept {
  contexts_[index].ack.due = true;
  mark_ready(index);
}

/// At the latest after the delay we announced; `lazy`: already once the application had its turn,
/// so that the ACK can ride on its answer.
void Core::Impl::acknowledge_soon(Index index, std::uint64_t now_ns, bool lazy) noexcept {
  Ctx& ctx = contexts_[index];
  ctx.ack.deadline_ns = std::min(ctx.ack.deadline_ns, now_ns + config_.timing.max_ack_delay_ns);
  if (!lazy) return;
  ctx.ack.lazy = true;
  if (ctx.lazy_at != kNone) return;
  ctx.lazy_at = lazy_count_;
  lazy_[lazy_count_++] = index;
}

void Core::Impl::acks_told(Ctx& ctx) noexcept {
  AckDuty& ack = ctx.ack;
  ack.due = ack.lazy = ack.twice = ack.beyond = ack.duplicate = false;
  ack.pending_bytes = 0;
  ack.deadline_ns = UINT64_MAX;
}

std::uint8_t Core::Impl::pressure() const noexcept {
  const std::uint64_t pool = pool_used_bytes_ * 255 / config_.limits.receive_pool_bytes;
  return static_cast<std::uint8_t>(
      std::max<std::uint64_t>(std::min<std::uint64_t>(pool, 255), rx_fill_));
}

/// Flow-control limit to tell: what arrived, plus what partial messages still need (they reserved
/// it), plus this peer's share of the free pool. It never falls.
std::uint64_t Core::Impl::limit_units(Ctx& ctx) noexcept {
  const std::uint64_t limit = ctx.rx_total_bytes + ctx.reserved_left_bytes + receive_allowance();
  // Rounded up: the last bytes of a reserved message must not wait for a unit that never fills.
  constexpr std::uint64_t kUnit = std::uint64_t{1} << wire::kLimitUnitShift;
  ctx.told_limit = std::max(ctx.told_limit, (limit + kUnit - 1) >> wire::kLimitUnitShift);
  return ctx.told_limit;
}

/// Memory came back: tell a sender whose limit was used up, twice, since nothing else may remind
/// it.
void Core::Impl::offer_limit(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (ctx.state != Context::State::open) return;
  const std::uint64_t told = ctx.told_limit << wire::kLimitUnitShift;
  if (told > ctx.rx_total_bytes + kLimitStepBytes) return;  // it has room left to send into
  const std::uint64_t limit = ctx.rx_total_bytes + ctx.reserved_left_bytes + receive_allowance();
  if (limit <
      told + std::min<std::uint64_t>(kLimitStepBytes, config_.limits.receive_pool_bytes / 8)) {
    return;
  }
  acknowledge_now(index);
  ctx.limit_reminder_ns = now_ns + std::max(ctx.rtt.srtt_ns(), kReminderMinNs);
  rearm(index);
}

// --- ACK ---

/// True if the acknowledgement fits a PIGGY: no hole, no CE, no rejection to tell.
bool Core::Impl::can_ride(const Ctx& ctx) const noexcept {
  const AckDuty& ack = ctx.ack;
  return ack.has_echo && !ctx.rx.has_hole() && !ack.echo_ce && !ctx.rx.has_ce_news() &&
         ctx.rejections.empty() && !ack.beyond && !ack.duplicate && !ack.twice;
}

void Core::Impl::attach_extensions(Index index, std::uint64_t now_ns, std::size_t room,
                                   wire::Extensions& extensions) noexcept {
  Ctx& ctx = contexts_[index];
  const bool owes = ctx.ack.due || ctx.ack.lazy || ctx.ack.pending_bytes > 0;
  constexpr std::size_t kPiggyRoom = wire::kExtensionHeadBytes + 2 + wire::kPiggyBytes + 2;
  if (owes && can_ride(ctx) && room >= kPiggyRoom) {
    wire::Piggy piggy;
    piggy.cumulative = ctx.rx.base();
    piggy.echo_time = ctx.ack.echo_time;
    piggy.hold_time = wire::to_wire_time(now_ns) - wire::to_wire_time(ctx.ack.echo_arrived_ns);
    piggy.limit = static_cast<std::uint32_t>(limit_units(ctx));
    piggy.ack_seq = ++ctx.ack_seq;
    piggy.rej_total = ctx.rej_total;
    piggy.echo_slot = ctx.ack.echo_slot;
    piggy.echo_gen_attempt = ctx.ack.echo_gen_attempt;
    piggy.pressure = pressure();
    extensions.piggy = piggy;
    ctx.rx.told_cumulative();
    acks_told(ctx);
    counters_.tx_piggybacks.add();
    ++ctx.counters.tx_piggybacks;
    return;
  }
  if (room < 16) return;
  if (ctx.repath_wanted != 0) {
    const auto slot = static_cast<std::uint8_t>(std::countr_zero(ctx.repath_wanted));
    ctx.repath_wanted &= ctx.repath_wanted - 1;  // asked again after the next probe that fails
    extensions.re_path =
        wire::RePath{slot, static_cast<std::uint8_t>(ctx.paths[slot].generation & 15U)};
    return;
  }
  if (now_ns >= ctx.rev_path_due_ns) {
    ctx.rev_path_due_ns = now_ns + std::max<std::uint64_t>(ctx.rtt.srtt_ns(), 100'000);
    extensions.rev_path = wire::RevPath{heard_slots(ctx, now_ns), ctx.last_ack_seq};
  }
}

void Core::Impl::write_ack(Ctx& ctx, std::uint64_t now_ns, std::uint32_t slot,
                           std::span<std::byte> words, TxDatagram& out) noexcept {
  wire::AckHeader ack;
  std::array<std::uint64_t, wire::kAckWordsMax> received{};
  std::array<std::uint64_t, wire::kAckWordsMax> ce{};
  ctx.rx.fill_ack(ack, received, ce);
  if (ctx.ack.has_echo) {
    ack.echo_time = ctx.ack.echo_time;
    ack.echo_psn = ctx.ack.echo_psn;
    ack.echo_slot = ctx.ack.echo_slot;
    ack.echo_gen_attempt = ctx.ack.echo_gen_attempt;
    ack.rx_time = wire::to_wire_time(ctx.ack.echo_arrived_ns);
    if (ctx.ack.echo_ce) ack.flags |= wire::kAckCeEcho;
  } else {
    ack.echo_slot = kSlotsMax - 1;
    ack.echo_gen_attempt = 0xff;  // names no copy of anything
    ack.rx_time = wire::to_wire_time(now_ns);
  }
  if (ctx.ack.beyond) ack.flags |= wire::kAckBeyondWindow;
  if (ctx.ack.duplicate) ack.flags |= wire::kAckDuplicate;
  ack.pressure = pressure();
  ack.rx_bytes = static_cast<std::uint32_t>(ctx.rx_total_bytes);
  ack.limit = static_cast<std::uint32_t>(limit_units(ctx));
  ack.ce_total = ctx.ce_total;
  ack.dup_total = ctx.dup_total;
  ack.ack_seq = ++ctx.ack_seq;
  ack.rej_total = ctx.rej_total;
  ack.host_drops = static_cast<std::uint16_t>(host_drops_);
  start_datagram(ctx, slot, wire::PacketType::ack, 0, ctx.rx.base(), now_ns, out);
  // Header inline, bitmaps behind it: encoded as one packet, then split where the inline room ends.
  std::array<std::byte, wire::kAckBytes + 16 * wire::kAckWordsMax> packet;
  std::copy_n(out.header.begin(), wire::kCommonBytes, packet.begin());
  const bool with_ce = (ack.flags & wire::kAckCeBitmap) != 0;
  const std::size_t bytes =
      wire::encode(packet, ack, std::span<const std::uint64_t>(received).first(ack.words),
                   std::span<const std::uint64_t>(ce).first(with_ce ? ack.words : 0));
  const std::size_t inline_bytes = std::min(bytes, kHeaderBytesMax);
  std::copy_n(packet.begin(), inline_bytes, out.header.begin());
  out.header_bytes = static_cast<std::uint8_t>(inline_bytes);
  if (bytes > inline_bytes) {
    std::copy_n(packet.begin() + static_cast<std::ptrdiff_t>(inline_bytes), bytes - inline_bytes,
                words.begin());
    out.payload[0] = {words.data(), static_cast<std::uint32_t>(bytes - inline_bytes), kNoRegion};
    out.payload_count = 1;
  }
  out.copy = true;
  finish_datagram(ctx, out);
  Slot& used = ctx.paths[slot];
  ++used.acks_sent;
  used.ack_sent_ns = now_ns;
  counters_.tx_acks.add();
  ++ctx.counters.tx_acks;
}

std::size_t Core::Impl::transmit_acks(Index index, std::uint64_t now_ns,
                                      std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  if (!ctx.ack.due) return 0;
  std::size_t n = 0;
  // One ACK, more only while some word was never told; the answer to a probe goes on two slots.
  do {
    if (n == out.size()) return n;
    const std::uint32_t slot = control_slot(ctx, now_ns);
    if (slot == kSlotsMax) return n;
    const std::span<std::byte> words = scratch(kScratchBytes);
    if (words.empty()) return n;
    write_ack(ctx, now_ns, slot, words, out[n]);
    ++n;
    if (ctx.ack.twice && n < out.size()) {
      // The way the question came is open at least one way, whatever became of the others.
      const std::uint32_t other =
          ctx.ack.reply_slot != slot ? ctx.ack.reply_slot : another_slot(ctx, slot);
      if (other != slot && ctx.paths[other].path != kNoPath) {
        copy_to_slot(ctx, out[n - 1], other, out[n]);
        ++n;
      }
    }
  } while (ctx.rx.has_news());
  acks_told(ctx);
  return n;
}

/// The same packet on another slot: only slot, generation and check differ.
void Core::Impl::copy_to_slot(const Ctx& ctx, const TxDatagram& from, std::uint32_t slot,
                              TxDatagram& out) noexcept {
  out = from;
  out.path = ctx.paths[slot].path;
  out.header[2] = static_cast<std::byte>(slot);
  out.header[3] = static_cast<std::byte>((ctx.paths[slot].generation & 15U) << 4U);
  std::memset(&out.header[wire::kCheckOffset], 0, 4);
  finish_datagram(ctx, out);
}

// --- NACK, PROBE ---

std::size_t Core::Impl::transmit_nacks(Index index, std::uint64_t now_ns,
                                       std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  std::size_t n = 0;
  for (Index at = ctx.rejections.head; at != kNone && ctx.rejections_to_send > 0 &&
                                       n < std::min<std::size_t>(out.size(), kNacksPerTurn);
       at = rejections_[at].next) {
    Rejection& rejection = rejections_[at];
    if (!rejection.send) continue;
    // Asked for, they go the way the question came: the usual one may have swallowed them before.
    const bool asked = ctx.nack_slot < ctx.paths.size() && ctx.paths[ctx.nack_slot].path != kNoPath;
    const std::uint32_t slot = asked ? ctx.nack_slot : control_slot(ctx, now_ns);
    if (slot == kSlotsMax) break;
    rejection.send = false;
    --ctx.rejections_to_send;
    TxDatagram& datagram = out[n++];
    start_datagram(ctx, slot, wire::PacketType::nack, 0, 0, now_ns, datagram);
    wire::NackHeader nack;
    nack.code = rejection.code;
    nack.retry_after_us = rejection.retry_after_us;
    nack.msg_id = rejection.msg_id;
    nack.port = rejection.port;
    nack.rej_seq = rejection.seq;
    datagram.header_bytes = static_cast<std::uint8_t>(wire::encode(datagram.header, nack));
    finish_datagram(ctx, datagram);
  }
  if (ctx.rejections_to_send == 0) ctx.nack_slot = kSlotsMax;
  return n;
}

void Core::Impl::write_probe(Ctx& ctx, std::uint32_t slot_index, std::uint16_t flags,
                             std::uint64_t now_ns, TxDatagram& out) noexcept {
  Slot& slot = ctx.paths[slot_index];
  if (slot.probe_id == 0) {
    slot.probe_id = ctx.next_probe_id++;
    if (ctx.next_probe_id == 0) ctx.next_probe_id = 1;
  }
  // No shorter than an RTO, which has learned how long the hosts nap.
  const std::uint64_t wait = std::max(2 * ctx.rtt.srtt_ns(), rto_ns(ctx));
  slot.probe_deadline_ns = now_ns + wait;
  start_datagram(ctx, slot_index, wire::PacketType::probe, 0, slot.probe_id, now_ns, out);
  wire::ProbeHeader probe;
  probe.probe_id = slot.probe_id;
  probe.opaque = slot.probe_opaque;
  probe.flags = flags;
  probe.rej_known = ctx.rej_known;
  probe.backlog = wire::backlog_code(peers_[ctx.peer].backlog_bytes);
  out.header_bytes = static_cast<std::uint8_t>(wire::encode(out.header, probe));
  finish_datagram(ctx, out);
  slot.last_tx_ns = ctx.last_tx_ns = now_ns;
}

std::size_t Core::Impl::transmit_probes(Index index, std::uint64_t now_ns,
                                        std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  std::size_t n = 0;
  std::uint16_t flags = 0;
  if (ctx.want_nack_pending) flags |= wire::kProbeWantNack;
  // Asking for more than a slot's life needs some slot: two for RTO and limit probes, one to
  // confirm.
  std::uint32_t extra = ctx.probe_two_slots;
  if (extra == 0 && (flags != 0 || ctx.confirm_now)) extra = 1;
  if (ctx.probe_two_slots > 0) flags |= wire::kProbeWantAck;
  std::uint64_t tried = 0;
  while (extra > 0 && n < out.size()) {
    const std::uint32_t slot = ctx.paths.freshest(tried | ctx.unheard_slots);
    if (slot == kSlotsMax || (tried >> slot & 1U) != 0) break;
    tried |= std::uint64_t{1} << slot;
    write_probe(ctx, slot, flags, now_ns, out[n]);
    out[n++].cookie = probe_cookie(index, slot);
    --extra;
  }
  if (n > 0) {
    ctx.probe_two_slots = 0;
    ctx.want_nack_pending = false;
    ctx.confirm_now = false;
    ctx.confirm_due_ns = UINT64_MAX;
    ctx.probes_pending &= ~tried;
  }
  while (ctx.probes_pending != 0 && n < out.size()) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(ctx.probes_pending));
    ctx.probes_pending &= ctx.probes_pending - 1;
    if (ctx.paths[slot].path == kNoPath) continue;
    write_probe(ctx, slot, flags, now_ns, out[n]);
    out[n++].cookie = probe_cookie(index, slot);
  }
  while (ctx.probe_acks_pending != 0 && n < out.size()) {
    const auto asked = static_cast<std::uint32_t>(std::countr_zero(ctx.probe_acks_pending));
    ctx.probe_acks_pending &= ctx.probe_acks_pending - 1;
    const PendingProbeAck& answer = ctx.probe_acks[asked];
    const std::uint32_t slot = answer.same_slot ? asked : control_slot(ctx, now_ns);
    if (slot == kSlotsMax || ctx.paths[slot].path == kNoPath) continue;
    start_datagram(ctx, slot, wire::PacketType::probe_ack, 0, 0, now_ns, out[n]);
    out[n].header_bytes = static_cast<std::uint8_t>(wire::encode(out[n].header, answer.body));
    finish_datagram(ctx, out[n]);
    ++n;
    // An address that is new to us may be the only one that still works (NAT rebinding).
    if (slot != asked && !ctx.paths.is_good(asked) && n < out.size() &&
        ctx.paths[asked].path != kNoPath) {
      copy_to_slot(ctx, out[n - 1], asked, out[n]);
      ++n;
    }
  }
  return n;
}

// --- everything that is no payload ---

std::size_t Core::Impl::transmit_control(Index index, std::uint64_t now_ns,
                                         std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  std::size_t n = 0;
  if (out.empty()) return 0;
  if (ctx.hello_pending && !closing_down_) {
    ctx.hello_pending = false;
    const std::size_t written = write_hello(ctx, now_ns, out[n], false);
    n += written;
    ctx.hello_due_ns = now_ns + hello_interval_ns(ctx.hello_tries);
    ++ctx.hello_tries;
    if (written > 0) ++peers_[ctx.peer].hello_tries;  // which people are told
  }
  if (ctx.hello_ack_pending && n < out.size()) {
    ctx.hello_ack_pending = false;
    n += write_hello(ctx, now_ns, out[n], true);
  }
  if (ctx.state != Context::State::open) return n;
  if (ctx.close_pending) return n + transmit_close(index, now_ns, out.subspan(n));
  n += transmit_nacks(index, now_ns, out.subspan(n));
  n += transmit_probes(index, now_ns, out.subspan(n));
  return n;
}

/// The last ACK, then CLOSE, on two slots; then the context is gone.
std::size_t Core::Impl::transmit_close(Index index, std::uint64_t now_ns,
                                       std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  if (out.size() < 4) {
    mark_ready(index);  // with the next call: CLOSE must not get lost for want of room
    return 0;
  }
  std::size_t n = 0;
  if (ctx.ack.has_echo) {
    ctx.ack.due = true;
    n += transmit_acks(index, now_ns, out.first(2));
  }
  const std::uint32_t slot = control_slot(ctx, now_ns);
  if (slot != kSlotsMax) {
    start_datagram(ctx, slot, wire::PacketType::close, 0, ctx.nxt, now_ns, out[n]);
    wire::CloseHeader close;
    close.next_psn = ctx.rx.base();
    out[n].header_bytes = static_cast<std::uint8_t>(wire::encode(out[n].header, close));
    finish_datagram(ctx, out[n]);
    ++n;
    const std::uint32_t other = another_slot(ctx, slot);
    if (other != slot && ctx.paths.is_good(other)) {
      copy_to_slot(ctx, out[n - 1], other, out[n]);
      ++n;
    }
  }
  destroy_context(index, Errc::ok, now_ns);
  return n;
}

}  // namespace srd::core
