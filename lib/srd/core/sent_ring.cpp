// SPDX-License-Identifier: Apache-2.0
// Datagrams that consumed a PSN, from assignment to acknowledgement: leased records, and the lists
// they are in (one per slot in order of sending, one of the lost).
#include "srd/core/impl.hpp"

#include "base/seqno.hpp"

namespace srd::core {

bool Core::Impl::has_psn_room(const Ctx& ctx, std::uint32_t count) const noexcept {
  // The peer accepts cumulative .. cumulative + window; our own ring holds kWindowPsnsMax records.
  const std::uint32_t from_cumulative = ctx.nxt + count - ctx.cumulative;
  const std::uint32_t from_una = ctx.nxt + count - ctx.una;
  return from_cumulative <= ctx.tx_window && from_una + kChunkPsns <= kWindowPsnsMax;
}

/// Makes a record for ctx.nxt. False: no chunk left.
bool Core::Impl::lease_psn(Ctx& ctx) noexcept {
  Index& chunk = ctx.chunks[ctx.nxt / kChunkPsns % kWindowWords];
  if (chunk == kNone) {
    chunk = chunks_.take_uncleared();
    if (chunk == kNone) return false;
    const std::size_t ring = ctx.nxt / 64 % kWindowWords;
    ctx.acked[ring] = 0;
    ctx.covered[ring] = ctx.ack_order;
  }
  sent(ctx, ctx.nxt) = Sent{};
  return true;
}

std::uint32_t Core::Impl::assign_psn(Ctx& ctx, Sent::Kind kind, Index message,
                                     std::uint32_t bytes) noexcept {
  if (ctx.una == ctx.nxt) ctx.progress_ns = now_ns_;
  Sent& record = sent(ctx, ctx.nxt);
  record.kind = kind;
  record.message = message;
  record.bytes = bytes;
  ctx.assigned_bytes += bytes;
  return ctx.nxt++;
}

void Core::Impl::put_in_flight(Ctx& ctx, std::uint32_t psn, std::uint32_t slot_index) noexcept {
  Sent& record = sent(ctx, psn);
  Slot& slot = ctx.paths[slot_index];
  record.state = Sent::State::in_flight;
  if (slot.in_flight_datagrams == 0) {
    slot.head_psn = psn;
  } else {
    sent(ctx, slot.tail_psn).next = psn;
    record.prev = slot.tail_psn;
  }
  slot.tail_psn = psn;
  ++slot.in_flight_datagrams;
  slot.in_flight_bytes += record.bytes;
  ++ctx.in_flight_datagrams;
  ctx.in_flight_bytes += record.bytes;
  ctx.paths.note_in_flight(slot_index);
}

void Core::Impl::take_from_flight(Ctx& ctx, std::uint32_t psn) noexcept {
  const Sent& record = sent(ctx, psn);
  Slot& slot = ctx.paths[record.slot];
  if (slot.head_psn == psn) {
    slot.head_psn = record.next;
  } else {
    sent(ctx, record.prev).next = record.next;
  }
  if (slot.tail_psn == psn) {
    slot.tail_psn = record.prev;
  } else {
    sent(ctx, record.next).prev = record.prev;
  }
  --slot.in_flight_datagrams;
  slot.in_flight_bytes -= record.bytes;
  --ctx.in_flight_datagrams;
  ctx.in_flight_bytes -= record.bytes;
  ctx.paths.note_in_flight(record.slot);
}

void Core::Impl::push_lost(Ctx& ctx, std::uint32_t psn, bool front) noexcept {
  Sent& record = sent(ctx, psn);
  record.state = Sent::State::lost;
  auto& list = ctx.lost;
  if (list.count == 0) {
    list.head = list.tail = psn;
  } else if (front) {
    record.next = list.head;
    sent(ctx, list.head).prev = psn;
    list.head = psn;
  } else {
    record.prev = list.tail;
    sent(ctx, list.tail).next = psn;
    list.tail = psn;
  }
  ++list.count;
}

void Core::Impl::unlink_lost(Ctx& ctx, std::uint32_t psn) noexcept {
  const Sent& record = sent(ctx, psn);
  auto& list = ctx.lost;
  if (list.head == psn) {
    list.head = record.next;
  } else {
    sent(ctx, record.prev).next = record.next;
  }
  if (list.tail == psn) {
    list.tail = record.prev;
  } else {
    sent(ctx, record.next).prev = record.prev;
  }
  --list.count;
}

}  // namespace srd::core
