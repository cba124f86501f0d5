// SPDX-License-Identifier: Apache-2.0
// From a datagram to the context it belongs to: bounds, check, return path, dispatch by type.
// Whatever the network sends that does not fit is a counted drop.
#include <algorithm>

#include "srd/core/impl.hpp"
#include "srd/wire/check.hpp"

namespace srd::core {

void Core::Impl::handle_datagrams(Instant now, std::span<const RxDatagram> in) noexcept {
  now_ns_ = now.ns;
  for (const RxDatagram& datagram : in) {
    counters_.rx_datagrams.add();
    counters_.rx_bytes.add(datagram.bytes);
    if (!receive(now.ns, datagram)) drop_buffer(datagram.buffer);
  }
  flush_touched();
}

void Core::Impl::drop_buffer(BufferId buffer) noexcept {
  SRD_CHECK(release_count_ < kReleaseRing);  // the caller polls releases after each burst
  releases_[release_count_++] = buffer;
}

std::size_t Core::Impl::poll_release(std::span<BufferId> out) noexcept {
  std::size_t n = 0;
  while (n < out.size() && release_count_ > 0) out[n++] = releases_[--release_count_];
  while (n < out.size() && release_slices_ != kNone) {
    const Index slice = release_slices_;
    release_slices_ = slices_[slice].next;
    if (slices_[slice].buffer != kNoBuffer) out[n++] = slices_[slice].buffer;
    if (slices_[slice].chunk != kNone) {
      (slices_[slice].large_chunk ? rx_large_ : rx_small_).give(slices_[slice].chunk);
    }
    slices_.give(slice);
  }
  return n;
}

// Context ids: 12 bits of salt, then the slab index, then 6 bits for the worker of a shared port.
Index Core::Impl::find_context(std::uint32_t id) const noexcept {
  const Index index = id >> 6U & 0x3fffU;
  if (!contexts_.is_used(index) || contexts_[index].local_id != id) return kNone;
  return index;
}

/// True if the datagram's buffer was kept for a message.
bool Core::Impl::receive(std::uint64_t now_ns, const RxDatagram& datagram) noexcept {
  const std::span<const std::byte> bytes(datagram.data, datagram.bytes);
  Arrival arrival{datagram, {}, bytes, {}, 0, now_ns, now_ns};
  if (datagram.arrived.ns != 0) arrival.arrived_ns = std::min(datagram.arrived.ns, now_ns);
  if (!wire::decode(bytes, arrival.header) || arrival.header.slot >= kSlotsMax) {
    counters_.rx_malformed.add();
    return false;
  }
  const std::size_t body = wire::body_bytes(bytes, arrival.header.type);
  if (body == 0) {
    counters_.rx_malformed.add();
    return false;
  }
  arrival.payload_offset = body;
  const bool extended = (arrival.header.flags & wire::kFlagExtension) != 0;
  std::size_t extension = 0;
  if (extended && !wire::decode_extensions(bytes.subspan(body), arrival.extensions, extension)) {
    counters_.rx_malformed.add();
    return false;
  }
  arrival.payload_offset += extension;
  using wire::PacketType;
  switch (arrival.header.type) {
    case PacketType::hello:
    case PacketType::hello_ack:
    case PacketType::retry:
    case PacketType::reset:
      if (!wire::verify(bytes, bytes.size(), wire::kUnseeded)) {
        counters_.rx_bad_check.add();
        return false;
      }
      if (arrival.header.type == PacketType::hello) on_hello(arrival);
      if (arrival.header.type == PacketType::hello_ack) on_hello_ack(arrival);
      if (arrival.header.type == PacketType::retry) on_retry(arrival);
      if (arrival.header.type == PacketType::reset) on_reset(arrival);
      return false;
    default:
      break;
  }
  const Index index = find_context(arrival.header.dst_ctx);
  if (index == kNone || contexts_[index].state == Context::State::hello_sent) {
    counters_.rx_unknown_context.add();
    if (index == kNone) send_reset(arrival);
    return false;
  }
  return receive_in_context(index, arrival);
}

bool Core::Impl::receive_in_context(Index index, Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  const std::uint8_t form = arrival.header.flags & (wire::kFlagFullCheck | wire::kFlagAead);
  const std::uint8_t agreed = ctx.full_check ? std::uint8_t{wire::kFlagFullCheck} : std::uint8_t{0};
  // A header-only check spares the payload of DATA; everything else is always covered whole.
  const std::size_t covered =
      arrival.header.type == wire::PacketType::data ? arrival.payload_offset : arrival.bytes.size();
  if (form != agreed || !wire::verify(arrival.bytes, covered, ctx.rx_seed)) {
    counters_.rx_bad_check.add();
    return false;
  }
  if (arrival.header.slot >= ctx.paths.size()) {
    counters_.rx_malformed.add();
    return false;
  }
  ++ctx.counters.rx_datagrams;
  ctx.counters.rx_bytes += arrival.bytes.size();
  ctx.last_heard_ns = arrival.now_ns;
  ctx.dead_timer.cancel();
  if (ctx.state == Context::State::half_open) establish(index, arrival.now_ns);
  ctx.third_leg_pending = false;
  ctx.hello_due_ns = UINT64_MAX;
  Slot& slot = ctx.paths[arrival.header.slot];
  slot.last_heard_ns = arrival.now_ns;
  ++slot.rx_datagrams;
  if (!ctx.initiator) adopt_return_path(index, arrival);
  touch(index);
  return dispatch(index, arrival);
}

bool Core::Impl::dispatch(Index index, Arrival& arrival) noexcept {
  using wire::PacketType;
  Ctx& ctx = contexts_[index];
  if (arrival.extensions.piggy) on_piggy(index, arrival);
  if (arrival.extensions.rev_path) on_rev_path(ctx, *arrival.extensions.rev_path, arrival.now_ns);
  if (arrival.extensions.re_path) {
    on_re_path(index, *arrival.extensions.re_path, arrival.now_ns);
  }
  switch (arrival.header.type) {
    case PacketType::data:
      return on_data(index, arrival);
    case PacketType::small:
      return on_small(index, arrival);
    case PacketType::ack:
      on_ack(index, arrival);
      return false;
    case PacketType::nack:
      on_nack(index, arrival);
      return false;
    case PacketType::probe:
      on_probe(index, arrival);
      return false;
    case PacketType::probe_ack:
      on_probe_ack(index, arrival);
      return false;
    case PacketType::void_psns:
      on_void(index, arrival);
      return false;
    case PacketType::abort:
      on_abort(index, arrival);
      return false;
    case PacketType::close:
      on_close(index, arrival);
      return false;
    default:
      counters_.rx_malformed.add();
      return false;
  }
}

}  // namespace srd::core
