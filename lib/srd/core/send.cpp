// SPDX-License-Identifier: Apache-2.0
// Messages from the application until they are cut into datagrams: short ones are copied into
// bundles that become SMALL datagrams, longer ones are referenced (or copied on request). And their
// end.
#include <algorithm>
#include <cstring>

#include "srd/core/impl.hpp"

namespace srd::core {

namespace {
constexpr std::uint8_t kNoCopy = 0xff;

std::byte* gather(std::span<const Segment> pieces, std::byte* out) {
  for (const Segment& piece : pieces) {
    if (piece.bytes > 0) std::memcpy(out, piece.data, piece.bytes);
    out += piece.bytes;
  }
  return out;
}
}  // namespace

Errc Core::Impl::send(Instant now, const SendRequest& request) noexcept {
  now_ns_ = now.ns;
  if (request.payload.size() > kIovMax) return Errc::invalid_argument;
  const Index peer = live_peer(request.peer);
  if (peer == kNone || closing_down_) return Errc::not_found;
  std::uint64_t bytes = 0;
  for (const Segment& piece : request.payload) bytes += piece.bytes;
  if (bytes > config_.limits.max_message_bytes) return Errc::message_too_long;
  const Index preferred = peers_[peer].preferred;
  if (preferred != kNone && bytes > contexts_[preferred].remote_max_message) {
    return Errc::message_too_long;
  }
  const bool small = bytes <= config_.limits.small_bytes;
  if (!small && request.copy && bytes > config_.limits.copy_bytes_max) {
    return Errc::message_too_long;
  }
  const Errc queued = small ? send_small(peer, request, bytes) : send_large(peer, request, bytes);
  if (queued != Errc::ok) return queued;
  Peer& target = peers_[peer];
  ++target.queued_messages;
  target.backlog_bytes += bytes;
  counters_.sends_active.set(tx_messages_.used());
  if (target.preferred != kNone) {
    mark_ready(target.preferred);
  } else if (!has_set_up(peer)) {
    start_context(now.ns, peer);
    if (!has_set_up(peer)) {
      // No context free: nothing may stay queued without anybody to send it.
      fail_queued(peer, Errc::no_memory);
    }
  }
  return Errc::ok;
}

/// Whether any context of the peer may still become able to send.
bool Core::Impl::has_set_up(Index peer) const noexcept {
  for (Index i = peers_[peer].contexts; i != kNone; i = contexts_[i].peer_next) {
    // A half-open one may be a forgery that never opens.
    if (contexts_[i].state != Context::State::half_open) return true;
  }
  return false;
}

Index Core::Impl::new_message(const SendRequest& request, std::uint64_t bytes) noexcept {
  const Index at = tx_messages_.take();
  if (at == kNone) return kNone;
  TxMessage& message = tx_messages_[at];
  message.handle = request.peer;
  message.user_data = request.user_data;
  message.channel = request.channel;
  message.unsignaled = request.unsignaled;
  message.one_path = request.one_path;
  message.bytes = bytes;
  message.copy_class = kNoCopy;
  return at;
}

Errc Core::Impl::send_small(Index peer_index, const SendRequest& request,
                            std::uint64_t bytes) noexcept {
  const Index at = new_message(request, bytes);
  if (at == kNone) return Errc::would_block;
  if (!append_record(peers_[peer_index], at, request.payload)) {
    tx_messages_.give(at);
    return Errc::would_block;
  }
  return Errc::ok;
}

/// Whether the peer's open bundle takes a message of so many bytes.
bool Core::Impl::fits_open_bundle(const Peer& peer, std::uint64_t bytes) const noexcept {
  const Index open = peer.bundles.tail;
  return open != kNone && bundles_[open].count < wire::kSmallCountMax &&
         bundles_[open].bytes + wire::small_record_stride(bytes) <= config_.limits.bundle_bytes;
}

bool Core::Impl::has_record_room(const Peer& peer, std::uint64_t bytes) const noexcept {
  return fits_open_bundle(peer, bytes) || bundles_.free() > 0;
}

/// Copies a message into the peer's open bundle, or a new one. False: no bundle left.
bool Core::Impl::append_record(Peer& peer, Index at, std::span<const Segment> payload) noexcept {
  TxMessage& message = tx_messages_[at];
  const auto need = static_cast<std::uint32_t>(wire::small_record_stride(message.bytes));
  Index open = peer.bundles.tail;
  if (!fits_open_bundle(peer, message.bytes)) {
    open = bundles_.take();
    if (open == kNone) return false;
    peer.bundles.push_back(bundles_, open);
  }
  Bundle& bundle = bundles_[open];
  std::byte* record = bundle_data(open) + bundle.bytes;
  wire::SmallRecord header;
  header.port = message.channel;
  header.bytes = static_cast<std::uint16_t>(message.bytes);
  wire::encode(std::span(record, wire::kSmallRecordBytes), header);
  std::byte* data = record + wire::kSmallRecordBytes;
  std::byte* end = gather(payload, data);
  std::fill(end, record + need, std::byte{0});
  message.bundle = open;
  message.bundle_next = kNone;
  message.iov[0] = {data, static_cast<std::uint32_t>(message.bytes), kNoRegion};
  message.iov_count = 1;
  (bundle.first_message == kNone ? bundle.first_message
                                 : tx_messages_[bundle.last_message].bundle_next) = at;
  bundle.last_message = at;
  ++bundle.count;
  ++bundle.live;
  bundle.bytes = static_cast<std::uint16_t>(bundle.bytes + need);
  bundle.payload_bytes = static_cast<std::uint16_t>(bundle.payload_bytes + message.bytes);
  return true;
}

Errc Core::Impl::send_large(Index peer, const SendRequest& request, std::uint64_t bytes) noexcept {
  const Index at = new_message(request, bytes);
  if (at == kNone) return Errc::would_block;
  TxMessage& message = tx_messages_[at];
  if (request.copy) {
    for (std::uint8_t c = 0; c < copy_pools_.size() && message.copy_class == kNoCopy; ++c) {
      if (copy_pools_[c].block_bytes() < bytes) continue;
      message.copy_block = copy_pools_[c].take();
      if (message.copy_block != kNone) message.copy_class = c;
    }
    if (message.copy_class == kNoCopy) {
      tx_messages_.give(at);
      return Errc::would_block;
    }
    std::byte* memory = copy_pools_[message.copy_class].data(message.copy_block);
    gather(request.payload, memory);
    message.iov[0] = {memory, static_cast<std::uint32_t>(bytes), kNoRegion};
    message.iov_count = 1;
  } else {
    std::copy(request.payload.begin(), request.payload.end(), message.iov.begin());
    message.iov_count = static_cast<std::uint8_t>(request.payload.size());
  }
  peers_[peer].queue.push_back(tx_messages_, at);
  return Errc::ok;
}

// --- end of a message ---

/// Outcome known. The event waits until the device has let go of the payload.
void Core::Impl::finish_message(Index at, Errc status) noexcept {
  TxMessage& message = tx_messages_[at];
  message.status = status;
  message.state = TxMessage::State::done;
  message.context = kNone;
  if (message.tx_pending == 0) report_message(at);
}

void Core::Impl::report_message(Index at) noexcept {
  TxMessage& message = tx_messages_[at];
  if (message.status == Errc::ok) {
    counters_.tx_messages.add();
    counters_.tx_message_bytes.add(message.bytes);
  } else {
    counters_.tx_failed_messages.add();
    const Index peer = live_peer(message.handle);
    if (peer != kNone) ++peers_[peer].counters.tx_failed_messages;
  }
  leave_bundle(at);
  if (message.copy_class != kNoCopy) {
    copy_pools_[message.copy_class].give(message.copy_block);
    message.copy_class = kNoCopy;
  }
  if (message.unsignaled && message.status == Errc::ok) {
    free_tx_message(at);
    return;
  }
  done_sends_.push_back(tx_messages_, at);
}

void Core::Impl::free_tx_message(Index at) noexcept {
  tx_messages_.give(at);
  counters_.sends_active.set(tx_messages_.used());
}

void Core::Impl::leave_bundle(Index at) noexcept {
  TxMessage& message = tx_messages_[at];
  const Index index = message.bundle;
  if (index == kNone) return;
  Bundle& bundle = bundles_[index];
  Index previous = kNone;
  for (Index m = bundle.first_message; m != at; m = tx_messages_[m].bundle_next) previous = m;
  (previous == kNone ? bundle.first_message : tx_messages_[previous].bundle_next) =
      message.bundle_next;
  if (bundle.last_message == at) bundle.last_message = previous;
  message.bundle = message.bundle_next = kNone;
  --bundle.live;
  drop_bundle_if_dead(index);
}

void Core::Impl::drop_bundle_if_dead(Index index) noexcept {
  if (bundles_[index].live == 0) bundles_.give(index);
}

// --- rejected messages come again ---

/// In the order of their time, so that the head has the earliest; mostly they come in order.
void Core::Impl::wait_for_retry(Index peer, Index at) noexcept {
  IndexList& waiting = peers_[peer].waiting;
  Index before = waiting.tail;
  while (before != kNone && tx_messages_[before].retry_at_ns > tx_messages_[at].retry_at_ns) {
    before = tx_messages_[before].prev;
  }
  waiting.insert_after(tx_messages_, before, at);
}

void Core::Impl::wake_waiting(Index peer_index, std::uint64_t now_ns) noexcept {
  Peer& peer = peers_[peer_index];
  while (!peer.waiting.empty() && tx_messages_[peer.waiting.head].retry_at_ns <= now_ns) {
    if (!requeue(peer_index, peer.waiting.head)) return;
  }
}

/// Back into the queue under a new message id. False: no bundle left now.
bool Core::Impl::requeue(Index peer_index, Index at) noexcept {
  Peer& peer = peers_[peer_index];
  const Index old = tx_messages_[at].bundle;
  if (old == kNone) {
    back_to_queue(peer, at);
    peer.queue.push_front(tx_messages_, at);
  } else if (has_record_room(peer, tx_messages_[at].bytes)) {
    back_to_queue(peer, at);
    const Segment payload = tx_messages_[at].iov[0];
    ++bundles_[old].live;  // the payload must outlive the copy
    leave_bundle(at);
    append_record(peer, at, std::span(&payload, 1));
    --bundles_[old].live;
    drop_bundle_if_dead(old);
  } else if (!requeue_bundle(peer, old)) {
    peer.waiting.remove(tx_messages_, at);
    tx_messages_[at].retry_at_ns = now_ns_ + config_.timing.rto_min_ns;
    wait_for_retry(peer_index, at);
    return false;
  }
  if (peer.preferred != kNone) mark_ready(peer.preferred);
  return true;
}

void Core::Impl::back_to_queue(Peer& peer, Index at) noexcept {
  TxMessage& message = tx_messages_[at];
  peer.waiting.remove(tx_messages_, at);
  message.state = TxMessage::State::queued;
  message.unacked = 0;
  ++peer.queued_messages;
  peer.backlog_bytes += message.bytes;
}

/// A bundle of which only rejected messages are left goes again with all of them: the last way when
/// such messages hold all bundles.
bool Core::Impl::requeue_bundle(Peer& peer, Index index) noexcept {
  Bundle& bundle = bundles_[index];
  std::uint32_t waiting = 0;
  for (Index m = bundle.first_message; m != kNone; m = tx_messages_[m].bundle_next) {
    if (tx_messages_[m].state == TxMessage::State::waiting) ++waiting;
  }
  if (waiting != bundle.live) return false;
  bundle.count = bundle.bytes = bundle.payload_bytes = 0;
  for (Index m = bundle.first_message; m != kNone; m = tx_messages_[m].bundle_next) {
    back_to_queue(peer, m);
    // Records are linked in the order of their places: each moves towards the front, over dead
    // ones.
    Segment& payload = tx_messages_[m].iov[0];
    std::byte* place = bundle_data(index) + bundle.bytes;
    const std::size_t bytes = wire::small_record_stride(payload.bytes);
    std::memmove(place, payload.data - wire::kSmallRecordBytes, bytes);
    payload.data = place + wire::kSmallRecordBytes;
    ++bundle.count;
    bundle.bytes = static_cast<std::uint16_t>(bundle.bytes + bytes);
    bundle.payload_bytes = static_cast<std::uint16_t>(bundle.payload_bytes + payload.bytes);
  }
  peer.bundles.push_back(bundles_, index);
  return true;
}

}  // namespace srd::core
