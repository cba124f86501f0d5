// SPDX-License-Identifier: Apache-2.0
// Complete messages on their way to the application and back: order of pieces, loan, release,
// events.
#include <algorithm>
#include <cstring>

#include "srd/core/impl.hpp"

namespace srd::core {

void Core::Impl::charge(RxMessage& message, std::uint64_t bytes) noexcept {
  pool_used_bytes_ += bytes - message.charged_bytes;
  message.charged_bytes = bytes;
  counters_.receive_pool_used_bytes.set(pool_used_bytes_);
}

/// All of it is here: the application gets it. False: its pieces contradict each other.
bool Core::Impl::complete_message(Index at) noexcept {
  RxMessage& message = rx_messages_[at];
  if (message.hashed) {  // of several segments; the slices of one are in order
    if (!sort_slices(message)) {
      // Overlapping segments under different PSNs: a peer that breaks the protocol loses its
      // message.
      counters_.rx_malformed.add();
      free_message(at);
      return false;
    }
    contexts_[message.context].unfinished.remove(rx_messages_, at);
    unhash(at);
  }
  message.state = RxMessage::State::ready;
  ready_messages_.push_back(rx_messages_, at);
  counters_.rx_messages.add();
  counters_.rx_message_bytes.add(message.length);
  return true;
}

// Natural merge sort of the linked pieces: bursts arrive in order, so there are few runs.
// False: the pieces do not tile the message exactly.
bool Core::Impl::sort_slices(RxMessage& message) noexcept {
  const auto next = [this](Index at) -> Index& { return slices_[at].next; };
  const auto before = [this](Index a, Index b) { return slices_[a].offset <= slices_[b].offset; };
  bool sorted = message.slices <= 1;
  while (!sorted) {
    Index rest = message.first, head = kNone, tail = kNone;
    std::uint32_t runs = 0;
    while (rest != kNone) {
      // Take two runs off the front and merge them.
      std::array<Index, 2> run{kNone, kNone};
      for (Index& start : run) {
        if (rest == kNone) break;
        start = rest;
        Index end = rest;
        while (next(end) != kNone && before(end, next(end))) end = next(end);
        rest = next(end);
        next(end) = kNone;
      }
      ++runs;
      while (run[0] != kNone || run[1] != kNone) {
        const bool left = run[1] == kNone || (run[0] != kNone && before(run[0], run[1]));
        Index& source = run[left ? 0 : 1];
        const Index taken = source;
        source = next(taken);
        (tail == kNone ? head : next(tail)) = taken;
        tail = taken;
      }
    }
    next(tail) = kNone;
    message.first = head;
    message.last = tail;
    sorted = runs <= 1;
  }
  std::uint32_t expected = 0;
  for (Index at = message.first; at != kNone; at = next(at)) {
    if (slices_[at].offset != expected) return false;
    expected += slices_[at].bytes;
  }
  return expected == message.length;
}

void Core::Impl::unhash(Index at) noexcept {
  RxMessage& message = rx_messages_[at];
  Index* link = &partial_hash_[hash_partial(message.context, message.msg_id)];
  while (*link != at) link = &rx_messages_[*link].hash_next;
  *link = message.hash_next;
  message.hashed = false;
  --contexts_[message.context].marks;
}

// Slices keep their memory until poll_release() hands it back: O(1) whatever the message's length.
void Core::Impl::free_slices(RxMessage& message) noexcept {
  if (message.first == kNone) return;
  slices_[message.last].next = release_slices_;
  release_slices_ = message.first;
  message.first = message.last = kNone;
  message.slices = 0;
}

/// Returns its context, kNone if that has ended.
Index Core::Impl::free_message(Index at) noexcept {
  RxMessage& message = rx_messages_[at];
  const bool lives = contexts_.generation(message.context) == message.context_life;
  const Index context = lives ? message.context : kNone;
  if (message.hashed) {  // unfinished, and its context lives
    Ctx& ctx = contexts_[context];
    const bool aborted = message.state == RxMessage::State::tombstone;
    (aborted ? ctx.tombstones : ctx.unfinished).remove(rx_messages_, at);
    unhash(at);
  }
  if (context != kNone) --contexts_[context].held;
  free_slices(message);
  charge(message, 0);
  rx_messages_.give(at);
  return context;
}

Index Core::Impl::loaned(MessageId id) const noexcept {
  const auto value = static_cast<std::uint64_t>(id);
  const Index at = static_cast<Index>(value & 0xffffffffU) - 1;
  if (value == 0 || !rx_messages_.is_used(at) ||
      rx_messages_.generation(at) != static_cast<std::uint32_t>(value >> 32U) ||
      rx_messages_[at].state != RxMessage::State::loaned) {
    return kNone;
  }
  return at;
}

Errc Core::Impl::release(Instant now, MessageId id) noexcept {
  now_ns_ = now.ns;
  const Index at = loaned(id);
  if (at == kNone) return Errc::invalid_argument;
  const Index context = free_message(at);
  // A sender that may be waiting for room learns of it.
  if (context != kNone) offer_limit(context, now.ns);
  return Errc::ok;
}

std::size_t Core::Impl::segments(MessageId id, std::span<srd_iov> out) const noexcept {
  const Index message = loaned(id);
  if (message == kNone) return 0;
  std::size_t n = 0;
  for (Index at = rx_messages_[message].first; at != kNone; at = slices_[at].next, ++n) {
    if (n < out.size()) out[n] = {slices_[at].data, slices_[at].bytes};
  }
  return n;
}

Result<std::size_t> Core::Impl::copy_out(MessageId id, std::uint64_t offset,
                                         std::span<std::byte> out) const noexcept {
  const Index message = loaned(id);
  if (message == kNone) return Errc::invalid_argument;
  std::size_t done = 0;
  for (Index at = rx_messages_[message].first; at != kNone && done < out.size();
       at = slices_[at].next) {
    const Slice& slice = slices_[at];
    const std::uint64_t from = offset + done;
    if (from >= std::uint64_t{slice.offset} + slice.bytes) continue;
    const std::uint64_t skip = from - slice.offset;
    const std::size_t bytes = std::min<std::size_t>(slice.bytes - skip, out.size() - done);
    std::memcpy(out.data() + done, slice.data + skip, bytes);
    done += bytes;
  }
  return done;
}

bool Core::Impl::has_events() const noexcept {
  return !done_sends_.empty() || !ready_messages_.empty() || peer_event_count_ > 0;
}

std::size_t Core::Impl::poll_events(std::span<Event> out) noexcept {
  std::size_t n = 0;
  while (n < out.size() && peer_event_count_ > 0) {
    const PeerEvent& happened = peer_events_[peer_event_head_];
    peer_event_head_ = (peer_event_head_ + 1) % peer_event_capacity();
    --peer_event_count_;
    Event& event = out[n++];
    event = Event{};
    event.kind = Event::Kind::peer;
    event.peer = happened.peer;
    event.status = happened.status;
  }
  while (n < out.size() && !done_sends_.empty()) {
    const Index at = done_sends_.pop_front(tx_messages_);
    const TxMessage& message = tx_messages_[at];
    if (!message.unsignaled || message.status != Errc::ok) {
      Event& event = out[n++];
      event = Event{};
      event.kind = Event::Kind::send_done;
      event.status = message.status;
      event.peer = message.handle;
      event.channel = message.channel;
      event.user_data = message.user_data;
      event.bytes = message.bytes;
    }
    free_tx_message(at);
  }
  while (n < out.size() && !ready_messages_.empty()) {
    const Index at = ready_messages_.pop_front(rx_messages_);
    RxMessage& message = rx_messages_[at];
    message.state = RxMessage::State::loaned;
    Event& event = out[n++];
    event = Event{};
    event.kind = Event::Kind::message;
    event.peer = message.handle;
    event.channel = message.channel;
    event.bytes = message.length;
    event.segment_count = message.slices;
    event.data = message.first == kNone ? nullptr : slices_[message.first].data;
    event.message =
        MessageId{(std::uint64_t{rx_messages_.generation(at)} << 32U) | (std::uint64_t{at} + 1)};
  }
  // The application has its turn now; ACKs that waited to ride on its answer go at the next
  // transmit.
  for (std::uint32_t i = 0; i < lazy_count_; ++i) {
    Ctx& ctx = contexts_[lazy_[i]];
    ctx.lazy_at = kNone;
    if (ctx.ack.lazy) {
      ctx.ack.due = true;
      mark_ready(lazy_[i]);
    }
  }
  lazy_count_ = 0;
  // Newcomers find room while nothing waits that names a lost peer.
  while (peers_.free() < config_.limits.peers / kPeersInReserve && !lost_peers_.empty() &&
         !has_events()) {
    forget_peer(lost_peers_.head);
  }
  return n;
}

std::uint64_t Core::Impl::receive_allowance() const noexcept {
  const std::uint64_t pool = config_.limits.receive_pool_bytes;
  const std::uint64_t free = pool - std::min(pool_used_bytes_, pool);
  // Senders of the running and the last tenth of a second share it; when all are blocked nobody
  // counts.
  const std::uint64_t age = now_ns_ / kActiveEpochNs - epoch_;
  const std::uint32_t active = age == 0   ? std::max(active_now_, active_before_)
                               : age == 1 ? active_now_
                                          : 0;
  return free / std::max(active, 1U);
}

}  // namespace srd::core
