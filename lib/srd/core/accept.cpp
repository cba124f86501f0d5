// SPDX-License-Identifier: Apache-2.0
// Packets that consume a PSN: DATA, SMALL, VOID, ABORT. A PSN is accepted only after its content
// was: what cannot be stored is either rejected as a message, reliably, or not acknowledged at all.
// Source: PROTOCOL.md 5.2, 6.
#include <algorithm>
#include <bit>

#include "srd/core/impl.hpp"

#include "base/check.hpp"
#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint32_t kRetryAfterUs = 1000;
constexpr std::uint32_t kCopyAlwaysBytes = 256;  // cheaper to copy than to pin a receive buffer for
constexpr std::uint64_t kRxRateSpanNs = 1'000'000;
}  // namespace

/// Duplicate and window checks. False: nothing more to do with the packet.
bool Core::Impl::admit_psn(Index index, const Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  const bool probe = (arrival.header.flags & wire::kFlagTailProbe) != 0;
  switch (ctx.rx.check(arrival.header.psn)) {
    case RecvWindow::Verdict::fresh:
      return true;
    case RecvWindow::Verdict::duplicate:
      ++ctx.dup_total;
      ctx.ack.duplicate = true;
      counters_.rx_duplicates.add();
      ++ctx.counters.rx_duplicates;
      break;
    case RecvWindow::Verdict::beyond:
      ctx.ack.beyond = true;
      counters_.rx_beyond_window.add();
      break;
  }
  if (probe) {
    ctx.rx.retell_all();
    ctx.ack.twice = true;
    ctx.ack.reply_slot = arrival.header.slot;
  }
  acknowledge_now(index);
  return false;
}

/// Of the datagrams in one receive buffer (GRO) only the first has an arrival time of its own. The
/// others came later than it says; for them the time of reading, which is too late, makes round
/// trips look longer, never shorter than they are.
void Core::Impl::note_echo(AckDuty& ack, const Arrival& arrival, bool ce) noexcept {
  ack.has_echo = true;
  ack.echo_psn = arrival.header.psn;
  ack.echo_slot = arrival.header.slot;
  ack.echo_gen_attempt =
      static_cast<std::uint8_t>(arrival.header.generation << 4U | arrival.header.attempt);
  ack.echo_time = arrival.header.tx_time;
  ack.echo_arrived_ns = arrival.datagram.burst_start ? arrival.arrived_ns : arrival.now_ns;
  ack.echo_ce = ce;
}

/// The PSN's content is dealt with: mark it and decide when the peer hears of it.
void Core::Impl::took_psn(Index index, const Arrival& arrival, std::uint64_t payload_bytes,
                          bool wants_prompt_ack) noexcept {
  Ctx& ctx = contexts_[index];
  const bool ce = arrival.datagram.ecn == Ecn::ce;
  const bool first_ce = ce && ctx.ce_total == 0;
  ctx.rx.accept(arrival.header.psn, ce);
  ctx.rx_total_bytes += payload_bytes;
  if (ce) {
    ++ctx.ce_total;
    counters_.rx_ce.add();
    ++ctx.counters.rx_ce;
  }
  const std::uint64_t epoch = arrival.now_ns / kActiveEpochNs;
  if (epoch != epoch_) {
    active_before_ = epoch == epoch_ + 1 ? active_now_ : 0;
    active_now_ = 0;
    epoch_ = epoch;
  }
  if (ctx.active_epoch != epoch_ || active_now_ == 0) {
    ctx.active_epoch = epoch_;
    ++active_now_;
  }
  AckDuty& ack = ctx.ack;
  if (arrival.datagram.burst_start || !ack.has_echo) note_echo(ack, arrival, ce);
  ack.pending_bytes += payload_bytes + wire::kDataBytes;
  // Few ACKs at high rates: one per eighth of a millisecond's worth, within the configured bounds.
  ctx.rx_rate_bytes += payload_bytes;
  if (arrival.now_ns - ctx.rx_rate_since_ns >= kRxRateSpanNs) {
    const std::uint64_t per_ms =
        ctx.rx_rate_bytes * kRxRateSpanNs / (arrival.now_ns - ctx.rx_rate_since_ns);
    ctx.ack_bytes_threshold = std::clamp<std::uint64_t>(per_ms / 8, config_.timing.ack_bytes_min,
                                                        config_.timing.ack_bytes_max);
    ctx.rx_rate_since_ns = arrival.now_ns;
    ctx.rx_rate_bytes = 0;
  }
  const bool probe = (arrival.header.flags & wire::kFlagTailProbe) != 0;
  if (probe) {
    ctx.rx.retell_all();
    ack.twice = true;
    ack.reply_slot = arrival.header.slot;
  }
  if (probe || first_ce || (arrival.header.flags & wire::kFlagAckRequest) != 0 ||
      ack.pending_bytes >=
          std::max<std::uint64_t>(ctx.ack_bytes_threshold, config_.timing.ack_bytes_min)) {
    acknowledge_now(index);
  } else {
    acknowledge_soon(index, arrival.now_ns, wants_prompt_ack);
  }
  if (ctx.rx.has_hole() || ctx.partials > 0) {
    ctx.silence.arm(arrival.now_ns, config_.timing.receiver_silence_ns);
  } else {
    ctx.silence.cancel();
  }
  advance_tombstones(ctx);
}

bool Core::Impl::on_data(Index index, Arrival& arrival) noexcept {
  wire::DataHeader header;
  const std::span<const std::byte> payload = arrival.bytes.subspan(arrival.payload_offset);
  const bool first = (arrival.header.flags & wire::kFlagFirst) != 0;
  const bool last = (arrival.header.flags & wire::kFlagLast) != 0;
  if (!wire::decode(arrival.bytes, header) || payload.size() > header.msg_len - header.msg_off ||
      first != (header.msg_off == 0) ||
      last != (header.msg_off + payload.size() == header.msg_len) ||
      (payload.empty() && header.msg_len != 0)) {
    counters_.rx_malformed.add();
    return false;
  }
  if (contexts_[index].initiator && !contexts_[index].all_paths_open &&
      wire::backlog_bytes(header.backlog) >= kOpenAllBytes) {
    open_all_paths(index, arrival.now_ns);  // the responder cannot, and has much to send
  }
  if (!admit_psn(index, arrival)) return false;
  const Outcome outcome = accept_segment(index, arrival, header, payload);
  if (outcome == Outcome::refused) {
    counters_.rx_no_memory.add();
    return false;
  }
  took_psn(index, arrival, payload.size(), last);
  return outcome == Outcome::kept;
}

Core::Impl::Outcome Core::Impl::accept_segment(Index index, const Arrival& arrival,
                                               const wire::DataHeader& header,
                                               std::span<const std::byte> payload) noexcept {
  Ctx& ctx = contexts_[index];
  const bool whole = payload.size() == header.msg_len;
  Index at = whole ? kNone : find_partial(index, header.msg_id);
  if (at == kNone) {
    const bool too_long = header.msg_len > config_.limits.max_message_bytes;
    const bool too_many = !whole && ctx.partials >= config_.limits.partial_messages;
    const bool no_room = pool_used_bytes_ + header.msg_len > config_.limits.receive_pool_bytes;
    if (too_long || too_many || no_room) {
      if (!reject(index, header.msg_id, header.port,
                  too_long ? wire::NackCode::too_long : wire::NackCode::no_resources)) {
        return Outcome::refused;
      }
      if (whole) return Outcome::consumed;
      const Index mark = open_message(index, header.msg_id, header.msg_len, header.port);
      if (mark != kNone) rx_messages_[mark].state = RxMessage::State::rejected;
      return Outcome::consumed;
    }
    if (!whole) {
      at = open_message(index, header.msg_id, header.msg_len, header.port);
    } else if (record_room(ctx) > 0) {
      at = take_record(index, header.msg_id, header.msg_len, header.port);
    }
    if (at == kNone) {
      return reject(index, header.msg_id, header.port, wire::NackCode::no_resources)
                 ? Outcome::consumed
                 : Outcome::refused;
    }
    charge(rx_messages_[at], header.msg_len);
    if (!whole) {
      ++ctx.partials;
      ctx.reserved_left_bytes += header.msg_len;
    }
  }
  RxMessage& message = rx_messages_[at];
  if (message.state != RxMessage::State::partial) return Outcome::consumed;
  if (message.length != header.msg_len || message.received + payload.size() > message.length) {
    counters_.rx_malformed.add();  // segments that contradict each other; the PSN is spent
    return Outcome::consumed;
  }
  bool kept = false;
  if (!store_slice(message, arrival, header.msg_off, payload, true, kept)) {
    return give_up_message(index, at);
  }
  message.received += static_cast<std::uint32_t>(payload.size());
  if (!whole) ctx.reserved_left_bytes -= payload.size();
  if (message.received == message.length) {
    if (!whole) --ctx.partials;
    if (complete_message(at)) {
      ++ctx.counters.rx_messages;
      ctx.counters.rx_message_bytes += header.msg_len;
    }
  }
  return kept ? Outcome::kept : Outcome::consumed;
}

/// No memory for the next piece. Messages that each wait for the others' memory would never finish,
/// so this one goes back to its sender and frees what it holds.
Core::Impl::Outcome Core::Impl::give_up_message(Index index, Index at) noexcept {
  Ctx& ctx = contexts_[index];
  RxMessage& message = rx_messages_[at];
  const bool rejected =
      reject(index, message.msg_id, message.channel, wire::NackCode::no_resources);
  if (!rejected && message.received > 0) return Outcome::refused;
  if (message.hashed) {
    --ctx.partials;
    ctx.reserved_left_bytes -= message.length - message.received;
  }
  if (rejected && message.hashed) {
    free_slices(message);
    charge(message, 0);
    message.state = RxMessage::State::rejected;
  } else {
    free_message(at);
  }
  return rejected ? Outcome::consumed : Outcome::refused;
}

bool Core::Impl::on_small(Index index, Arrival& arrival) noexcept {
  wire::SmallHeader header;
  std::span<const std::byte> rest = arrival.bytes.subspan(arrival.payload_offset);
  if (!wire::decode(arrival.bytes, header)) {
    counters_.rx_malformed.add();
    return false;
  }
  // All records first: a datagram is accepted whole or not at all.
  std::uint64_t payload_bytes = 0;
  std::uint32_t large_blocks = 0;
  std::span<const std::byte> scan = rest;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    wire::SmallRecord record;
    if (!wire::decode(scan, record) || record.bytes > kSmallRecordMax) {
      counters_.rx_malformed.add();
      return false;
    }
    payload_bytes += record.bytes;
    if (record.bytes > rx_small_.block_bytes()) ++large_blocks;
    scan = scan.subspan(wire::small_record_stride(record.bytes));
  }
  if (payload_bytes != header.bytes) {
    counters_.rx_malformed.add();
    return false;
  }
  if (!admit_psn(index, arrival)) return false;
  // What does not fit is rejected message by message; if not even that can be told, nothing is
  // taken. There is a small block for every message.
  const Ctx& ctx = contexts_[index];
  std::uint32_t room = std::min({record_room(ctx), slices_.free(), std::uint32_t{header.count}});
  room = std::min(room, rx_small_.free() + rx_large_.free());
  if (large_blocks > 0) room = std::min(room, rx_large_.free());
  const bool fits_pool = pool_used_bytes_ + payload_bytes <= config_.limits.receive_pool_bytes;
  if ((fits_pool ? room : 0) + tellable(ctx) < header.count) {
    counters_.rx_no_memory.add();
    return false;
  }
  std::uint64_t taken = 0, taken_bytes = 0;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    wire::SmallRecord record;
    wire::decode(rest, record);
    const std::span<const std::byte> payload = rest.subspan(wire::kSmallRecordBytes, record.bytes);
    rest = rest.subspan(wire::small_record_stride(record.bytes));
    const bool pool_full = pool_used_bytes_ + record.bytes > config_.limits.receive_pool_bytes;
    if (room == 0 || pool_full) {
      [[maybe_unused]] const bool told =
          reject(index, header.msg_id + i, record.port, wire::NackCode::no_resources);
      SRD_DCHECK(told);
      continue;
    }
    --room;
    const Index at = take_record(index, header.msg_id + i, record.bytes, record.port);
    RxMessage& message = rx_messages_[at];
    charge(message, record.bytes);
    bool kept = false;
    [[maybe_unused]] const bool stored = store_slice(message, arrival, 0, payload, false, kept);
    SRD_DCHECK(stored);  // `room` counted the blocks
    message.received = record.bytes;
    ++taken;
    taken_bytes += record.bytes;
    complete_message(at);  // one piece: it cannot fail
  }
  contexts_[index].counters.rx_messages += taken;
  contexts_[index].counters.rx_message_bytes += taken_bytes;
  took_psn(index, arrival, payload_bytes, true);
  return false;
}

void Core::Impl::on_void(Index index, Arrival& arrival) noexcept {
  wire::VoidHeader header;
  if (!wire::decode(arrival.bytes, header)) {
    counters_.rx_malformed.add();
    return;
  }
  bool any = false;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    const std::uint32_t psn = arrival.header.psn + i;
    if (contexts_[index].rx.check(psn) != RecvWindow::Verdict::fresh) continue;
    arrival.header.psn = psn;
    took_psn(index, arrival, header.bytes_each, false);
    arrival.header.psn -= i;
    any = true;
  }
  if (!any) admit_psn(index, arrival);  // a duplicate: acknowledged at once
}

void Core::Impl::on_abort(Index index, Arrival& arrival) noexcept {
  wire::AbortHeader header;
  if (!wire::decode(arrival.bytes, header)) {
    counters_.rx_malformed.add();
    return;
  }
  if (!admit_psn(index, arrival)) return;
  Ctx& ctx = contexts_[index];
  Index at = find_partial(index, header.msg_id);
  if (at == kNone && arrival.header.psn == ctx.rx.base()) {
    // Everything older has arrived: no segment of it can come any more.
    confirm_rejections(ctx, header.rej_known);
    took_psn(index, arrival, 0, false);
    return;
  }
  if (at == kNone) {
    // No segment arrived yet: one may still be under way and must not open the message.
    at = open_message(index, header.msg_id, 0, 0);
    if (at == kNone) {
      counters_.rx_no_memory.add();
      return;
    }
  }
  RxMessage& message = rx_messages_[at];
  if (message.state == RxMessage::State::partial && message.length > 0) {
    --ctx.partials;
    ctx.reserved_left_bytes -= message.length - message.received;
  }
  free_slices(message);
  charge(message, 0);
  if (message.state != RxMessage::State::tombstone) {
    ctx.unfinished.remove(rx_messages_, at);
    ctx.tombstones.push_back(rx_messages_, at);
  }
  message.state = RxMessage::State::tombstone;
  message.abort_psn = arrival.header.psn;
  confirm_rejections(ctx, header.rej_known);
  took_psn(index, arrival, 0, false);
}

// Once everything older than the ABORT has arrived no segment of its message can come any more.
void Core::Impl::advance_tombstones(Ctx& ctx) noexcept {
  while (!ctx.tombstones.empty()) {
    const Index at = ctx.tombstones.head;
    if (seq_less_equal(ctx.rx.base(), rx_messages_[at].abort_psn)) return;
    free_message(at);
  }
}

// --- rejections ---

/// How many more messages may be rejected now. Each peer has a few of the table for certain,
/// however many others keep to themselves by never confirming them.
std::uint32_t Core::Impl::tellable(const Ctx& ctx) const noexcept {
  const std::uint32_t limit = config_.limits.rejections_per_peer;
  const std::uint32_t free = rejections_.free();
  const std::uint32_t kept = rejections_.capacity() / 4;
  const std::uint32_t common = free > kept ? free - kept : 0;
  const std::uint32_t few = std::min(kRejectionsForCertain, limit);
  const std::uint32_t own = few > ctx.rejection_count ? few - ctx.rejection_count : 0;
  return std::min({limit - ctx.rejection_count, free, std::max(common, own)});
}

bool Core::Impl::reject(Index index, std::uint32_t msg_id, std::uint16_t port,
                        wire::NackCode code) noexcept {
  Ctx& ctx = contexts_[index];
  if (tellable(ctx) == 0) return false;
  const Index at = rejections_.take();
  Rejection& rejection = rejections_[at];
  rejection.seq = ++ctx.rej_total;
  rejection.msg_id = msg_id;
  rejection.port = port;
  rejection.code = code;
  const bool retry =
      code == wire::NackCode::no_resources || code == wire::NackCode::receiver_not_ready;
  rejection.retry_after_us = retry ? kRetryAfterUs : 0;
  ctx.rejections.push_back(rejections_, at);
  ++ctx.rejection_count;
  ++ctx.rejections_to_send;
  counters_.rx_rejected_messages.add();
  ++ctx.counters.rx_rejected_messages;
  mark_ready(index);
  return true;
}

void Core::Impl::confirm_rejections(Ctx& ctx, std::uint16_t known) noexcept {
  while (!ctx.rejections.empty()) {
    const Index at = ctx.rejections.head;
    if (seq_diff16(rejections_[at].seq, known) > 0) return;
    if (rejections_[at].send) --ctx.rejections_to_send;
    ctx.rejections.remove(rejections_, at);
    rejections_.give(at);
    --ctx.rejection_count;
  }
}

// --- storage ---

/// A record for a message of several segments, kNone if there is none or the context has its share.
Index Core::Impl::open_message(Index index, std::uint32_t msg_id, std::uint32_t length,
                               std::uint16_t port) noexcept {
  Ctx& ctx = contexts_[index];
  const std::uint32_t marks_max =
      config_.limits.partial_messages + config_.limits.rejections_per_peer;
  if (record_room(ctx) == 0 || ctx.marks >= marks_max) return kNone;
  const Index at = take_record(index, msg_id, length, port);
  RxMessage& message = rx_messages_[at];
  Index& bucket = partial_hash_[hash_partial(index, msg_id)];
  message.hash_next = bucket;
  message.hashed = true;
  bucket = at;
  ctx.last_partial = at;
  ctx.unfinished.push_back(rx_messages_, at);
  ++ctx.marks;
  return at;
}

/// A record for a message of one segment; record_room() has said that there is one.
Index Core::Impl::take_record(Index index, std::uint32_t msg_id, std::uint32_t length,
                              std::uint16_t port) noexcept {
  Ctx& ctx = contexts_[index];
  const Index at = rx_messages_.take();
  RxMessage& message = rx_messages_[at];
  message.context = index;
  message.context_life = ctx.life;
  message.msg_id = msg_id;
  message.length = length;
  message.channel = port;
  message.handle = peers_[ctx.peer].handle;
  ++ctx.held;
  return at;
}

Index Core::Impl::find_partial(Index index, std::uint32_t msg_id) const noexcept {
  const Index recent = contexts_[index].last_partial;
  if (recent != kNone && rx_messages_.is_used(recent) && rx_messages_[recent].hashed &&
      rx_messages_[recent].context == index && rx_messages_[recent].msg_id == msg_id) {
    return recent;
  }
  for (Index at = partial_hash_[hash_partial(index, msg_id)]; at != kNone;
       at = rx_messages_[at].hash_next) {
    if (rx_messages_[at].context == index && rx_messages_[at].msg_id == msg_id) return at;
  }
  return kNone;
}

/// Keeps the payload: in the driver's buffer where that is cheap, else in a copy. False: no memory.
bool Core::Impl::store_slice(RxMessage& message, const Arrival& arrival, std::uint32_t offset,
                             std::span<const std::byte> payload, bool may_keep,
                             bool& kept) noexcept {
  if (payload.empty()) return true;
  const bool copy = !may_keep || arrival.datagram.scarce || payload.size() <= kCopyAlwaysBytes;
  std::size_t done = 0;
  Index first = kNone, last = kNone;
  std::uint32_t pieces = 0;
  while (done < payload.size()) {
    const Index at = slices_.take();
    if (at == kNone) break;
    Slice& slice = slices_[at];
    std::size_t bytes = payload.size() - done;
    if (copy) {
      slice.large_chunk = bytes > rx_small_.block_bytes() || rx_small_.free() == 0;
      BlockPool& pool = slice.large_chunk ? rx_large_ : rx_small_;
      slice.chunk = pool.take();
      if (slice.chunk == kNone) {
        slices_.give(at);
        break;
      }
      bytes = std::min<std::size_t>(bytes, pool.block_bytes());
      std::byte* memory = pool.data(slice.chunk);
      std::copy_n(payload.data() + done, bytes, memory);
      slice.data = memory;
    } else {
      slice.data = payload.data();
      slice.buffer = arrival.datagram.buffer;
      kept = true;
    }
    slice.offset = offset + static_cast<std::uint32_t>(done);
    slice.bytes = static_cast<std::uint32_t>(bytes);
    (first == kNone ? first : slices_[last].next) = at;
    last = at;
    ++pieces;
    done += bytes;
  }
  if (done < payload.size()) {
    while (first != kNone) {
      const Index next = slices_[first].next;
      if (slices_[first].chunk != kNone) {
        (slices_[first].large_chunk ? rx_large_ : rx_small_).give(slices_[first].chunk);
      }
      slices_.give(first);
      first = next;
    }
    return false;
  }
  (message.first == kNone ? message.first : slices_[message.last].next) = first;
  message.last = last;
  message.slices += pieces;
  return true;
}

}  // namespace srd::core
