// SPDX-License-Identifier: Apache-2.0
// What goes out next: contexts in turn; within one, control packets, then lost datagrams, then
// short messages, then segments. Datagrams leave in bursts of one slot and one size, which a driver
// can hand to the device as one unit. Source: PROTOCOL.md 7.3, 8.
#include <algorithm>

#include "srd/core/impl.hpp"
#include "srd/wire/check.hpp"

#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint64_t kAlonePauseMinNs = 1'000'000, kAlonePauseMaxNs = 250'000'000;

// Cookies: message index + 1 above the PSN; contexts are found through the message or the tag,
// probes by another tag and their slot in place of a PSN. Above each index some bits of its
// generation: a late report must not meet the next owner.
constexpr std::uint64_t kContextCookie = std::uint64_t{1} << 63U;
constexpr std::uint64_t kProbeCookie = std::uint64_t{3} << 62U;
constexpr std::uint64_t kIndexMask = 0xfffff;
constexpr std::uint32_t kContextLifeMask = 0x3ff;

std::uint64_t data_cookie(Index message, std::uint32_t generation, std::uint32_t psn) {
  return std::uint64_t{generation & 0x7ffU} << 52U | (std::uint64_t{message} + 1) << 32U | psn;
}

std::uint64_t bytes_of(std::span<const TxDatagram> datagrams) {
  std::uint64_t sum = 0;
  for (const TxDatagram& datagram : datagrams) sum += datagram.bytes();
  return sum;
}
}  // namespace

std::uint64_t Core::Impl::context_cookie(Index context, std::uint32_t psn) const noexcept {
  const std::uint32_t life = contexts_.generation(context) & kContextLifeMask;
  return kContextCookie | std::uint64_t{life} << 52U | std::uint64_t{context} << 32U | psn;
}

std::uint64_t Core::Impl::probe_cookie(Index context, std::uint32_t slot) const noexcept {
  return kProbeCookie | context_cookie(context, slot);
}

/// kNone if that context has ended.
Index Core::Impl::context_of(std::uint64_t cookie) const noexcept {
  const auto index = static_cast<Index>(cookie >> 32U & kIndexMask);
  const bool lives = contexts_.is_used(index) && (contexts_.generation(index) & kContextLifeMask) ==
                                                     (cookie >> 52U & kContextLifeMask);
  return lives ? index : kNone;
}

std::size_t Core::Impl::poll_transmit(Instant now, std::span<TxDatagram> out) noexcept {
  now_ns_ = now.ns;
  scratch_used_ = 0;
  if (one_shots_sent_ > 0) {
    for (std::size_t i = 0; i < one_shots_sent_; ++i) retire_path(one_shots_[i].path);
    std::copy(one_shots_.begin() + static_cast<std::ptrdiff_t>(one_shots_sent_),
              one_shots_.begin() + static_cast<std::ptrdiff_t>(one_shot_count_),
              one_shots_.begin());
    one_shot_count_ -= one_shots_sent_;
    one_shots_sent_ = 0;
  }
  // What the last call returned has been sent by now.
  while (retired_count_ > 0) path_control_.close_path(retired_[--retired_count_]);
  std::size_t n = 0;
  while (n < out.size() && one_shots_sent_ < one_shot_count_) {
    OneShot& shot = one_shots_[one_shots_sent_++];
    TxDatagram& datagram = out[n++];
    datagram = TxDatagram{};
    datagram.path = shot.path;
    datagram.copy = true;
    datagram.payload[0] = {shot.packet.data(), shot.bytes, kNoRegion};
    datagram.payload_count = 1;
  }
  counters_.tx_bytes.add(bytes_of(out.first(n)));
  // One round over the ready contexts; each that has more to send stays in the ring.
  for (std::uint32_t round = contexts_.used(); n < out.size() && !ready_.empty() && round > 0;
       --round) {
    const Index index = ready_.pop_front(contexts_);
    contexts_[index].ready = false;
    const std::uint32_t life = contexts_.generation(index);
    const std::size_t quota = std::min<std::size_t>(out.size() - n, kContextQuantum);
    const std::size_t sent_now = transmit(index, now.ns, out.subspan(n, quota));
    const std::uint64_t sent_bytes = bytes_of(out.subspan(n, sent_now));
    counters_.tx_bytes.add(sent_bytes);
    n += sent_now;
    if (!contexts_.is_used(index) || contexts_.generation(index) != life) continue;
    contexts_[index].counters.tx_datagrams += sent_now;
    contexts_[index].counters.tx_bytes += sent_bytes;
    if (sent_now == quota || (sent_now > 0 && held_back(contexts_[index]))) mark_ready(index);
    rearm(index);
  }
  counters_.tx_datagrams.add(n);
  return n;
}

/// Whether a limit of one call, other than its length, kept something back.
bool Core::Impl::held_back(const Ctx& ctx) noexcept {
  return ctx.burst_held || ctx.ack.due || ctx.rejections_to_send > 0;
}

std::size_t Core::Impl::transmit(Index index, std::uint64_t now_ns,
                                 std::span<TxDatagram> out) noexcept {
  std::size_t n = transmit_control(index, now_ns, out);
  if (!contexts_.is_used(index) || contexts_[index].state != Context::State::open) return n;
  Ctx& ctx = contexts_[index];
  if (ctx.losses_to_judge) {
    ctx.losses_to_judge = false;
    detect_losses(index, now_ns);
  }
  // An ACK that can ride on payload waits for it; what did not ride is sent after.
  if (!can_ride(ctx) || !has_payload_to_send(ctx)) {
    n += transmit_acks(index, now_ns, out.subspan(n));
  }
  n += transmit_tail_probe(index, now_ns, out.subspan(n));
  if (!ctx.aborting.empty()) queue_aborts(index, now_ns);
  n += transmit_lost(index, now_ns, out.subspan(n));
  n += transmit_small(index, now_ns, out.subspan(n));
  n += transmit_data(index, now_ns, out.subspan(n));
  if (n < out.size()) n += transmit_acks(index, now_ns, out.subspan(n));
  if (ctx.window_limited) explore(index, now_ns);
  return n;
}

// --- window and bursts ---

bool Core::Impl::has_payload_to_send(const Ctx& ctx) const noexcept {
  const Peer& peer = peers_[ctx.peer];
  return !ctx.draining && (!peer.bundles.empty() || !peer.queue.empty() || ctx.current != kNone);
}

bool Core::Impl::within_window(Ctx& ctx, std::uint64_t bytes) noexcept {
  if (ctx.in_flight_datagrams == 0) return true;
  if (ctx.in_flight_bytes + bytes <= ctx.congestion.window_bytes()) return true;
  ctx.window_limited = true;
  return false;
}

std::uint64_t Core::Impl::burst_bytes(const Ctx& ctx) const noexcept {
  // As much as the current rate sends in burst_span: spread first, amortise second
  // (PROTOCOL.md 7.3).
  const auto at_rate = static_cast<std::uint64_t>(
      ctx.congestion.rate() * static_cast<double>(config_.timing.burst_span_ns));
  const std::uint64_t most =
      ctx.payload_bytes *
      std::min<std::uint64_t>(config_.driver.tx_burst_segments_max,
                              config_.driver.tx_burst_bytes_max / ctx.datagram_bytes);
  const std::uint64_t quarter = ctx.congestion.window_bytes() / 4;
  return std::max<std::uint64_t>(std::min({at_rate, most, quarter}), ctx.payload_bytes);
}

/// Chooses slot and length of the next burst. No datagrams: the window, the slots, pacing or an
/// outage say no, and whoever changes that makes the context ready again.
Core::Impl::Burst Core::Impl::start_burst(Ctx& ctx, std::uint64_t now_ns, std::uint64_t next_bytes,
                                          std::uint64_t avoid, std::uint32_t only) noexcept {
  Burst burst;
  if (!within_window(ctx, next_bytes)) return burst;
  const std::uint64_t gap = ctx.congestion.pacing_gap_ns(ctx.rtt.srtt_ns());
  if (gap > 0 && now_ns < ctx.pace_next_ns) {
    ctx.window_limited = true;
    ctx.pace_due_ns = ctx.pace_next_ns;
    return burst;
  }
  const std::uint64_t bytes = burst_bytes(ctx);
  if (only != kSlotsMax && ctx.paths[only].blocked_until_ns <= now_ns) burst.slot = only;
  // A lone message stays with the slot that answered last; spraying pays only when several are out.
  if (ctx.in_flight_datagrams == 0 && avoid == 0 && only == kSlotsMax) {
    const std::uint32_t slot = control_slot(ctx, now_ns);
    if (slot < kSlotsMax && ctx.paths.is_good(slot) && ctx.paths[slot].blocked_until_ns <= now_ns) {
      burst.slot = slot;
    }
  }
  if (burst.slot == kSlotsMax && only == kSlotsMax) {
    burst.slot = ctx.paths.choose(
        now_ns, {ctx.congestion.window_bytes(), ctx.in_flight_bytes, bytes}, avoid);
  }
  if (burst.slot == kSlotsMax) {
    ctx.window_limited = true;
    for (std::uint32_t i = 0; i < ctx.paths.size(); ++i) {
      if (ctx.paths[i].blocked_until_ns > now_ns) {
        ctx.blocked_due_ns = std::min(ctx.blocked_due_ns, ctx.paths[i].blocked_until_ns);
      }
    }
    return burst;
  }
  if (gap > 0) ctx.pace_next_ns = now_ns + gap;
  burst.datagrams = static_cast<std::uint32_t>(
      gap > 0 ? 1 : std::max<std::uint64_t>(bytes / ctx.payload_bytes, 1));
  ++ctx.paths[burst.slot].burst;
  ctx.congestion.on_burst_sent();
  return burst;
}

// --- datagrams ---

void Core::Impl::start_datagram(const Ctx& ctx, std::uint32_t slot, wire::PacketType type,
                                std::uint8_t flags, std::uint32_t psn, std::uint64_t now_ns,
                                TxDatagram& out) noexcept {
  out.path = ctx.paths[slot].path;
  out.header_bytes = 0;
  out.payload_count = 0;
  out.ecn = Ecn::not_ect;
  out.copy = false;
  out.cookie = 0;
  wire::CommonHeader common;
  common.type = type;
  common.flags =
      static_cast<std::uint8_t>(flags | (ctx.full_check ? unsigned{wire::kFlagFullCheck} : 0U));
  common.slot = static_cast<std::uint8_t>(slot);
  common.generation = ctx.paths[slot].generation & 15U;
  common.dst_ctx = ctx.remote_id;
  common.psn = psn;
  common.tx_time = wire::to_wire_time(now_ns);
  wire::encode(out.header, common);
}

void Core::Impl::finish_datagram(const Ctx& ctx, TxDatagram& out) noexcept {
  wire::seal(std::span(out.header).first(out.header_bytes),
             std::span(out.payload).first(out.payload_count), ctx.tx_seed);
}

/// Puts an assigned PSN on the wire as the next datagram of a burst.
void Core::Impl::emit_sent(Index index, std::uint32_t psn, Burst& burst, std::uint64_t now_ns,
                           std::uint8_t flags, TxDatagram& out) noexcept {
  Ctx& ctx = contexts_[index];
  Sent& record = sent(ctx, psn);
  Slot& slot = ctx.paths[burst.slot];
  if (record.state == Sent::State::lost) {
    unlink_lost(ctx, psn);
    if (record.unsent) {
      record.unsent = false;  // refused by the device, or never tried: no retransmission
    } else {
      if (record.attempt < 15) ++record.attempt;
      ++slot.retransmits;
      counters_.tx_retransmits.add();
      ++ctx.counters.tx_retransmits;
    }
  }
  record.slot = static_cast<std::uint8_t>(burst.slot);
  record.generation = slot.generation;
  record.tx_ns = now_ns;
  record.burst = slot.burst;
  record.burst_index = burst.index++;
  --burst.datagrams;
  put_in_flight(ctx, psn, burst.slot);
  write_sent(index, psn, flags, now_ns, out);
  slot.last_tx_ns = ctx.last_tx_ns = now_ns;
  ++slot.tx_datagrams;
  slot.tx_bytes += out.bytes();
  if (ctx.retry_timer.due_ns == UINT64_MAX) arm_retry(ctx, now_ns);
}

void Core::Impl::write_sent(Index index, std::uint32_t psn, std::uint8_t flags,
                            std::uint64_t now_ns, TxDatagram& out) noexcept {
  Ctx& ctx = contexts_[index];
  const Sent& record = sent(ctx, psn);
  using wire::PacketType;
  wire::Extensions extensions;
  const bool carries = record.kind == Sent::Kind::data || record.kind == Sent::Kind::small;
  if (carries) {
    const std::size_t used = record.kind == Sent::Kind::data
                                 ? wire::kDataBytes + record.bytes
                                 : wire::kSmallBytes + bundles_[record.message].bytes;
    attach_extensions(index, now_ns, ctx.datagram_bytes - used, extensions);
  }
  const std::size_t extension = wire::extension_bytes(extensions);
  if (extension > 0) flags |= wire::kFlagExtension;
  PacketType type = PacketType::data;
  std::size_t fixed = wire::kDataBytes;
  switch (record.kind) {
    case Sent::Kind::data: {
      const TxMessage& message = tx_messages_[record.message];
      if (record.offset == 0) flags |= wire::kFlagFirst;
      if (record.offset + record.bytes == message.bytes) flags |= wire::kFlagLast;
      break;
    }
    case Sent::Kind::small:
      type = PacketType::small;
      fixed = wire::kSmallBytes;
      break;
    case Sent::Kind::abort:
      type = PacketType::abort;
      fixed = wire::kAbortBytes;
      break;
    case Sent::Kind::voided:
      type = PacketType::void_psns;
      fixed = wire::kVoidBytes;
      break;
  }
  start_datagram(ctx, record.slot, type, flags, psn, now_ns, out);
  out.header[3] = static_cast<std::byte>((record.generation & 15U) << 4U | record.attempt);
  out.ecn = ctx.ecn && carries ? Ecn::ect0 : Ecn::not_ect;
  write_body(index, psn, out);
  if (extension > 0) wire::encode_extensions(std::span(out.header).subspan(fixed), extensions);
  out.header_bytes = static_cast<std::uint8_t>(fixed + extension);
  if (record.kind == Sent::Kind::data) {
    TxMessage& message = tx_messages_[record.message];
    out.cookie = data_cookie(record.message, tx_messages_.generation(record.message), psn);
    if (config_.driver.tx_async) ++message.tx_pending;
  }
  finish_datagram(ctx, out);
}

/// The packet behind its common header: what its type says, and the payload.
void Core::Impl::write_body(Index index, std::uint32_t psn, TxDatagram& out) noexcept {
  const Ctx& ctx = contexts_[index];
  const Sent& record = sent(ctx, psn);
  const std::uint8_t backlog = wire::backlog_code(peers_[ctx.peer].backlog_bytes);
  const std::span<std::byte> header(out.header);
  switch (record.kind) {
    case Sent::Kind::data: {
      const TxMessage& message = tx_messages_[record.message];
      wire::DataHeader data;
      data.msg_id = message.msg_id;
      data.msg_len = static_cast<std::uint32_t>(message.bytes);
      data.msg_off = record.offset;
      data.port = message.channel;
      data.backlog = backlog;
      wire::encode(header, data);
      attach_payload(message, record, out);
      break;
    }
    case Sent::Kind::small: {
      const Bundle& bundle = bundles_[record.message];
      wire::SmallHeader small;
      small.msg_id = bundle.msg_id;
      small.count = static_cast<std::uint8_t>(bundle.count);
      small.backlog = backlog;
      small.bytes = bundle.payload_bytes;
      wire::encode(header, small);
      out.payload[0] = {bundle_data(record.message), bundle.bytes, kNoRegion};
      out.payload_count = 1;
      out.copy = true;
      out.cookie = context_cookie(index, psn);
      break;
    }
    case Sent::Kind::abort: {
      wire::AbortHeader abort;
      abort.msg_id = record.offset;
      abort.rej_known = ctx.rej_known;
      abort.requeue = record.requeue ? 1 : 0;
      wire::encode(header, abort);
      out.cookie = context_cookie(index, psn);
      break;
    }
    case Sent::Kind::voided: {
      wire::VoidHeader filler;
      filler.count = 1;
      filler.bytes_each = record.bytes;
      wire::encode(header, filler);
      out.cookie = context_cookie(index, psn);
      break;
    }
  }
}

void Core::Impl::attach_payload(const TxMessage& message, const Sent& record,
                                TxDatagram& out) noexcept {
  std::uint32_t left = record.bytes, offset = record.iov_offset;
  for (std::size_t i = record.iov_at; left > 0; ++i, offset = 0) {
    const Segment& piece = message.iov[i];
    const std::uint32_t bytes = std::min(left, piece.bytes - offset);
    if (bytes == 0) continue;
    out.payload[out.payload_count++] = {piece.data + offset, bytes, piece.region};
    left -= bytes;
  }
}

// --- what was lost ---

std::size_t Core::Impl::transmit_lost(Index index, std::uint64_t now_ns,
                                      std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  std::size_t n = 0;
  Burst burst;
  while (n < out.size() && ctx.lost.count > 0) {
    const std::uint32_t psn = ctx.lost.head;
    const Sent& record = sent(ctx, psn);
    if (!within_window(ctx, record.bytes)) break;
    if (burst.datagrams == 0 || (burst.slot == record.slot && ctx.paths.good_count() > 1)) {
      burst = start_burst(ctx, now_ns, record.bytes, std::uint64_t{1} << record.slot);
      if (burst.datagrams == 0) break;
    }
    emit_sent(index, psn, burst, now_ns, 0, out[n++]);
  }
  return n;
}

/// Tail and RTO probes: the oldest datagram that is out goes again, on another slot, and asks for a
/// full answer. It is neither lost nor counted again in flight.
std::size_t Core::Impl::transmit_tail_probe(Index index, std::uint64_t now_ns,
                                            std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  if (!ctx.tail_probe_pending || out.empty()) return 0;
  ctx.tail_probe_pending = false;
  if (ctx.in_flight_datagrams == 0 && ctx.lost.count == 0) return 0;
  std::uint32_t psn = ctx.una;
  while (psn != ctx.nxt && sent(ctx, psn).state == Sent::State::acked) ++psn;
  if (psn == ctx.nxt) return 0;
  const std::uint8_t flags = wire::kFlagAckRequest | wire::kFlagTailProbe;
  Sent& record = sent(ctx, psn);
  std::uint32_t slot = another_slot(ctx, record.slot);
  if (slot == kSlotsMax || !ctx.paths.is_good(slot)) slot = record.slot;
  if (!ctx.paths.is_good(slot)) {
    // No way is proven just now, and payload goes by proven ones only: a PROBE asks instead.
    ctx.probe_two_slots = std::max(ctx.probe_two_slots, 1U);
    mark_ready(index);
    return 0;
  }
  if (record.state == Sent::State::in_flight) {
    take_from_flight(ctx, psn);
    push_lost(ctx, psn, true);
    ++ctx.own_copies;
    ctx.own_copies_until_ns = now_ns + 2 * rto_ns(ctx);
  }
  Burst burst;
  burst.slot = slot;
  burst.datagrams = 1;
  ++ctx.paths[slot].burst;
  emit_sent(index, psn, burst, now_ns, flags, out[0]);
  return 1;
}

// --- new messages ---

std::size_t Core::Impl::transmit_small(Index index, std::uint64_t now_ns,
                                       std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  Peer& peer = peers_[ctx.peer];
  std::size_t n = 0;
  Burst burst;
  while (n < out.size() && !ctx.draining && !peer.bundles.empty() && may_send_new(ctx)) {
    const Index at = peer.bundles.head;
    Bundle& bundle = bundles_[at];
    if (!within_limit(ctx, bundle.payload_bytes, now_ns) || !has_psn_room(ctx, 1 + kPsnReserve))
      break;
    if (!within_window(ctx, bundle.payload_bytes)) break;
    if (burst.datagrams == 0) {
      burst = start_burst(ctx, now_ns, bundle.payload_bytes, 0);
      if (burst.datagrams == 0) break;
    }
    if (!lease_psn(ctx)) {
      note_blocked(ctx, now_ns);
      break;
    }
    peer.bundles.remove(bundles_, at);
    bundle.msg_id = ctx.next_msg_id;
    for (Index m = bundle.first_message; m != kNone; m = tx_messages_[m].bundle_next) {
      TxMessage& message = tx_messages_[m];
      message.msg_id = ctx.next_msg_id++;
      message.state = TxMessage::State::active;
      message.context = index;
      message.unacked = 1;
      message.offset = message.bytes;
      ctx.active.push_back(tx_messages_, m);
      --peer.queued_messages;
      peer.backlog_bytes -= message.bytes;
    }
    ++bundle.live;
    const std::uint32_t psn = assign_psn(ctx, Sent::Kind::small, at, bundle.payload_bytes);
    emit_sent(index, psn, burst, now_ns, 0, out[n++]);
  }
  return n;
}

/// Length of the next segment: a full payload, less at the end of the message or where more than
/// two pieces of the application's memory would meet.
std::uint32_t Core::Impl::next_segment(const Ctx& ctx, const TxMessage& message) const noexcept {
  const std::uint64_t left = message.bytes - message.offset;
  auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, ctx.payload_bytes));
  if (message.iov_count <= kPayloadSegmentsMax) return most;
  std::uint32_t reach = 0;
  std::size_t pieces = 0;
  std::uint32_t offset = message.iov_offset;
  for (std::size_t i = message.iov_at; i < message.iov_count && pieces < kPayloadSegmentsMax;
       ++i, offset = 0) {
    const std::uint32_t bytes = message.iov[i].bytes - offset;
    if (bytes == 0) continue;
    reach += bytes;
    ++pieces;
  }
  return std::min(most, reach);
}

/// Assigns the next segment of `message` to a PSN.
std::uint32_t Core::Impl::cut_segment(Ctx& ctx, Index at, std::uint32_t bytes) noexcept {
  TxMessage& message = tx_messages_[at];
  const std::uint32_t psn = assign_psn(ctx, Sent::Kind::data, at, bytes);
  Sent& record = sent(ctx, psn);
  record.offset = static_cast<std::uint32_t>(message.offset);
  record.iov_at = message.iov_at;
  record.iov_offset = message.iov_offset;
  message.offset += bytes;
  ++message.unacked;
  std::uint32_t left = bytes;
  while (left > 0) {
    const std::uint32_t rest = message.iov[message.iov_at].bytes - message.iov_offset;
    if (left < rest) {
      message.iov_offset += left;
      break;
    }
    left -= rest;
    ++message.iov_at;
    message.iov_offset = 0;
  }
  return psn;
}

/// The message being cut ends early: what of it was still waiting waits no more.
void Core::Impl::abandon_current(Ctx& ctx) noexcept {
  const TxMessage& message = tx_messages_[ctx.current];
  --peers_[ctx.peer].queued_messages;
  peers_[ctx.peer].backlog_bytes -= message.bytes - message.offset;
  ctx.current = kNone;
}

/// The context ends. A message of which no segment was cut yet goes back to wait for another one.
void Core::Impl::abandon_or_return_current(Ctx& ctx) noexcept {
  const Index at = ctx.current;
  TxMessage& message = tx_messages_[at];
  if (message.offset > 0) {
    abandon_current(ctx);
    return;
  }
  ctx.active.remove(tx_messages_, at);
  if (message.is_multi) --ctx.open_multi;
  message.state = TxMessage::State::queued;
  message.context = kNone;
  message.one_path_slot = 0xff;
  peers_[ctx.peer].queue.push_front(tx_messages_, at);
  ctx.current = kNone;
}

/// The receiver reserves the whole message at its first segment: begun without room for all of it,
/// it would be rejected. Alone it may begin, since a limit below its length never grows otherwise,
/// with growing pauses until there is more room.
bool Core::Impl::may_begin_alone(Ctx& ctx) noexcept {
  if (ctx.una != ctx.nxt) return false;
  if (now_ns_ < ctx.alone_at_ns) {
    block_by_limit(ctx, now_ns_);
    ctx.blocked_due_ns = std::min(ctx.blocked_due_ns, ctx.alone_at_ns);
    return false;
  }
  ctx.alone_pause_ns = std::clamp(2 * ctx.alone_pause_ns, kAlonePauseMinNs, kAlonePauseMaxNs);
  ctx.alone_at_ns = now_ns_ + ctx.alone_pause_ns;
  ctx.alone_room_bytes = ctx.limit_bytes - ctx.assigned_bytes;
  return true;
}

/// The message to cut next: the one begun, else the next in the queue if it may begin.
Index Core::Impl::current_message(Index index) noexcept {
  Ctx& ctx = contexts_[index];
  if (ctx.current != kNone) return ctx.current;
  Peer& peer = peers_[ctx.peer];
  if (ctx.draining || peer.queue.empty()) return kNone;
  // Queued before the peer's limit was known.
  while (!peer.queue.empty() && tx_messages_[peer.queue.head].bytes > ctx.remote_max_message) {
    const Index too_long = peer.queue.pop_front(tx_messages_);
    --peer.queued_messages;
    peer.backlog_bytes -= tx_messages_[too_long].bytes;
    finish_message(too_long, Errc::message_too_long);
  }
  if (peer.queue.empty()) return kNone;
  const Index at = peer.queue.head;
  TxMessage& message = tx_messages_[at];
  message.is_multi = message.bytes > next_segment(ctx, message);
  if (message.is_multi && ctx.open_multi >= ctx.partial_limit) return kNone;
  if (message.is_multi && ctx.assigned_bytes + message.bytes > ctx.limit_bytes &&
      !may_begin_alone(ctx)) {
    return kNone;
  }
  peer.queue.remove(tx_messages_, at);
  message.msg_id = ctx.next_msg_id++;
  message.state = TxMessage::State::active;
  message.context = index;
  message.unacked = 0;
  if (message.is_multi) ++ctx.open_multi;
  ctx.active.push_back(tx_messages_, at);
  ctx.current = at;
  return at;
}

std::size_t Core::Impl::transmit_data(Index index, std::uint64_t now_ns,
                                      std::span<TxDatagram> out) noexcept {
  Ctx& ctx = contexts_[index];
  std::size_t n = 0;
  Burst burst;
  ctx.burst_held = false;
  while (n < out.size() && may_send_new(ctx)) {
    const Index at = current_message(index);
    if (at == kNone) break;
    TxMessage& message = tx_messages_[at];
    const std::uint32_t bytes = next_segment(ctx, message);
    if (!within_limit(ctx, bytes, now_ns) || !has_psn_room(ctx, 1 + kPsnReserve)) break;
    if (burst.datagrams > 0 && message.one_path) {
      if (message.one_path_slot == 0xff) {
        message.one_path_slot = static_cast<std::uint8_t>(burst.slot);
      }
      if (message.one_path_slot != burst.slot) burst = Burst{};
    }
    // A burst begins when the window has room for all of it: what each ACK frees would be sent in
    // ever smaller pieces. One cut short by the end of `out` would cost the device a unit more.
    const bool begins = burst.datagrams == 0;
    const std::uint64_t whole = begins ? burst_bytes(ctx) : bytes;
    if (!within_window(ctx, std::min(whole, peers_[ctx.peer].backlog_bytes))) break;
    if (begins) {
      ctx.burst_held = n > 0 && (out.size() - n) * ctx.payload_bytes < whole;
      if (ctx.burst_held) break;
      burst = start_data_burst(ctx, message, bytes, now_ns);
      if (burst.datagrams == 0) break;
    }
    if (!lease_psn(ctx)) {
      note_blocked(ctx, now_ns);
      break;
    }
    const std::uint32_t psn = cut_segment(ctx, at, bytes);
    if (message.offset == message.bytes) {
      ctx.current = kNone;
      --peers_[ctx.peer].queued_messages;
    }
    peers_[ctx.peer].backlog_bytes -= bytes;
    emit_sent(index, psn, burst, now_ns, 0, out[n++]);
  }
  return n;
}

Core::Impl::Burst Core::Impl::start_data_burst(Ctx& ctx, TxMessage& message, std::uint32_t bytes,
                                               std::uint64_t now_ns) noexcept {
  if (!message.one_path) return start_burst(ctx, now_ns, bytes, 0);
  // One-path messages stay where they began while that slot is good.
  const bool begun = message.one_path_slot != 0xff && ctx.paths.is_good(message.one_path_slot);
  if (begun) {
    const Slot& slot = ctx.paths[message.one_path_slot];
    if (slot.in_flight_bytes != 0 && slot.in_flight_bytes + bytes > ctx.congestion.window_bytes()) {
      ctx.window_limited = true;
      return {};
    }
    return start_burst(ctx, now_ns, bytes, 0, message.one_path_slot);
  }
  const Burst burst = start_burst(ctx, now_ns, bytes, 0);
  if (burst.slot != kSlotsMax) message.one_path_slot = static_cast<std::uint8_t>(burst.slot);
  return burst;
}

// During an outage only probes go out; while hosts nap nothing is gained by filling queues.
bool Core::Impl::may_send_new(const Ctx& ctx) const noexcept {
  return !closing_down_ && !ctx.close_pending && ctx.retries <= 2 && ctx.paths.good_count() > 0 &&
         !(ctx.doubted && ctx.successor != kNone);
}

bool Core::Impl::within_limit(Ctx& ctx, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  if (ctx.assigned_bytes + bytes <= ctx.limit_bytes) return true;
  block_by_limit(ctx, now_ns);
  return false;
}

/// The peer is asked until it raises the limit.
void Core::Impl::block_by_limit(Ctx& ctx, std::uint64_t now_ns) noexcept {
  if (ctx.limit_blocked) return;
  ctx.limit_blocked = true;
  ctx.limit_probe.arm(now_ns, std::max<std::uint64_t>(4 * ctx.rtt.srtt_ns(), 1'000'000));
}

/// A shared table is exhausted: try again soon.
void Core::Impl::note_blocked(Ctx& ctx, std::uint64_t now_ns) noexcept {
  ctx.blocked_due_ns = std::min(ctx.blocked_due_ns, now_ns + config_.timing.refused_pause_min_ns);
}

/// ABORT takes a fresh PSN and waits in the lost list like anything that must go out. Without a PSN
/// the message waits: the receiver keeps its mark until it hears of the ABORT.
void Core::Impl::queue_aborts(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  while (!ctx.aborting.empty() && has_psn_room(ctx, 1)) {
    if (!lease_psn(ctx)) {
      note_blocked(ctx, now_ns);
      return;
    }
    const Index at = ctx.aborting.pop_front(tx_messages_);
    const std::uint32_t psn = assign_psn(ctx, Sent::Kind::abort, kNone, 0);
    Sent& record = sent(ctx, psn);
    record.offset = tx_messages_[at].msg_id;
    record.requeue = tx_messages_[at].status == Errc::ok;
    record.unsent = true;
    push_lost(ctx, psn, false);
    settle_rejected(ctx.peer, at);
  }
}

// --- what the device says ---

void Core::Impl::handle_tx_done(Instant now, std::span<const TxDone> done) noexcept {
  now_ns_ = now.ns;
  // Backwards: what was refused goes back to the front, and the first of it shall be in front.
  for (std::size_t i = done.size(); i-- > 0;) {
    const TxDone& report = done[i];
    if (report.cookie == 0) continue;
    const auto psn = static_cast<std::uint32_t>(report.cookie);
    Index context = kNone;
    if ((report.cookie & kProbeCookie) == kProbeCookie) {
      if (report.status != Errc::ok) probe_refused(context_of(report.cookie), psn, now.ns);
      continue;
    }
    if ((report.cookie & kContextCookie) != 0) {
      context = context_of(report.cookie);
    } else {
      const Index at = static_cast<Index>(report.cookie >> 32U & kIndexMask) - 1;
      if (!tx_messages_.is_used(at) ||
          (tx_messages_.generation(at) & 0x7ffU) != (report.cookie >> 52U & 0x7ffU)) {
        continue;
      }
      TxMessage& message = tx_messages_[at];
      context = message.context;
      if (config_.driver.tx_async && message.tx_pending > 0) {
        --message.tx_pending;
        if (message.tx_pending == 0 && message.state == TxMessage::State::done) report_message(at);
      }
    }
    if (report.status != Errc::ok) refused(context, psn, report.status, now.ns);
  }
}

/// It was never out: no miss of its slot.
void Core::Impl::probe_refused(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept {
  counters_.tx_refused.add();
  if (index == kNone || slot >= contexts_[index].paths.size()) return;
  Slot& refusing = contexts_[index].paths[slot];
  refusing.probe_id = 0;
  refusing.next_probe_ns = rest_refused(refusing, now_ns);
  rearm(index);
}

/// The device refused something on the slot: it rests, longer each time until something on it is
/// acknowledged. Until when.
std::uint64_t Core::Impl::rest_refused(Slot& slot, std::uint64_t now_ns) const noexcept {
  if (slot.blocked_until_ns <= now_ns) {
    const Timing& timing = config_.timing;
    slot.blocked_until_ns = now_ns + std::min(timing.refused_pause_min_ns << slot.refusals,
                                              timing.refused_pause_max_ns);
    if (slot.refusals < 16) ++slot.refusals;
  }
  return slot.blocked_until_ns;
}

/// A refused datagram was never sent: back to the front, no loss, no attempt.
void Core::Impl::refused(Index index, std::uint32_t psn, Errc status,
                         std::uint64_t now_ns) noexcept {
  counters_.tx_refused.add();
  if (index == kNone) return;
  Ctx& ctx = contexts_[index];
  if (seq_less(psn, ctx.una) || !seq_less(psn, ctx.nxt)) return;
  Sent& record = sent(ctx, psn);
  if (record.state != Sent::State::in_flight) return;
  if (status == Errc::message_too_long && route_shrank(ctx)) {
    // What is cut cannot be cut again: its PSNs may have been sent before. A new context is made
    // for the smaller route.
    destroy_context(index, Errc::context_lost, now_ns);
    return;
  }
  Slot& slot = ctx.paths[record.slot];
  ctx.blocked_due_ns = std::min(ctx.blocked_due_ns, rest_refused(slot, now_ns));
  take_from_flight(ctx, psn);
  record.unsent = true;
  push_lost(ctx, psn, true);
  rearm(index);
}

bool Core::Impl::route_shrank(const Ctx& ctx) noexcept {
  const std::uint32_t route = path_control_.datagram_bytes(peers_[ctx.peer].dest);
  return route != 0 && route < ctx.datagram_bytes;
}

}  // namespace srd::core
