// SPDX-License-Identifier: Apache-2.0
// Peers (what the application names) and the life of their contexts: made, merged, chosen,
// destroyed. Source: PROTOCOL.md 4.
#include <algorithm>
#include <cstring>

#include "srd/core/impl.hpp"

#include "base/bytes.hpp"
#include "base/seqno.hpp"
#include "base/siphash.hpp"

namespace srd::core {

namespace {
constexpr std::uint32_t kContextSalts = (1U << 12U) - 1;
}  // namespace

// --- peers ---

// Strangers choose ids and addresses: keyed, so that they cannot choose the chain.

std::uint64_t Core::Impl::hash_of(const wire::EndpointId& id) const noexcept {
  return siphash24(cookie_key_, std::as_bytes(std::span(id)));
}

std::uint64_t Core::Impl::hash_of(const Address& address) const noexcept {
  std::array<std::byte, 19> text{};
  std::memcpy(text.data(), address.bytes, 16);
  store_le<std::uint16_t>(&text[16], address.port);
  text[18] = static_cast<std::byte>(address.family);
  return siphash24(cookie_key_, text);
}

std::uint64_t Core::Impl::hash_of(DestId dest) const noexcept {
  return static_cast<std::uint64_t>(dest);  // dense numbers of the driver
}

std::uint64_t Core::Impl::hash_of_remote(std::uint32_t context_id) const noexcept {
  std::array<std::byte, 4> text{};
  store_le<std::uint32_t>(text.data(), context_id);
  return siphash24(cookie_key_, text);
}

Result<Index> Core::Impl::new_peer(const Address& address) noexcept {
  const Index index = peers_.take();
  if (index == kNone) return Errc::no_memory;
  Peer& peer = peers_[index];
  const auto dest = path_control_.resolve(address);
  if (!dest) {
    peers_.give(index);
    return dest.errc();
  }
  peer.address = address;
  peer.dest = *dest;
  peer.handle = PeerId{index};
  peers_by_address_.insert(hash_of(address), index);
  peers_by_dest_.insert(hash_of(peer.dest), index);
  return index;
}

void Core::Impl::free_peer(Index index) noexcept {
  const Peer& peer = peers_[index];
  keep_peer(index);
  if (peer.id_known) peers_by_endpoint_.remove(hash_of(peer.endpoint), index);
  peers_by_address_.remove(hash_of(peer.address), index);
  peers_by_dest_.remove(hash_of(peer.dest), index);
  path_control_.forget(peer.dest);
  peers_.give(index);
}

/// With all handles of it.
void Core::Impl::forget_peer(Index index) noexcept {
  for (Index at = peers_[index].aliases; at != kNone;) {
    const Index next = peers_[at].alias_next;
    free_peer(at);
    at = next;
  }
  free_peer(index);
}

/// The table is full: of the peers that came by themselves and were lost, the one lost longest
/// gives its place to another.
void Core::Impl::recycle_peer() noexcept {
  if (lost_peers_.empty()) return;
  unname_peer(lost_peers_.head);
  forget_peer(lost_peers_.head);
}

void Core::Impl::note_recyclable(Index index) noexcept {
  Peer& peer = peers_[index];
  if (peer.recyclable || peer.resolved_by_app || peer.contexts != kNone || peer.alias != kNone ||
      peer.state != Peer::State::lost) {
    return;
  }
  peer.recyclable = true;
  lost_peers_.push_back(peers_, index);
}

/// It is needed again, or gone.
void Core::Impl::keep_peer(Index index) noexcept {
  if (!peers_[index].recyclable) return;
  peers_[index].recyclable = false;
  lost_peers_.remove(peers_, index);
}

/// Whatever still waits to be polled must not be taken for the next owner of one of its handles.
void Core::Impl::unname_peer(Index index) noexcept {
  const auto unname = [&](PeerId& handle) {
    if (handle != kNoPeer && live_peer(handle) == index) handle = kNoPeer;
  };
  for (Index at = ready_messages_.head; at != kNone; at = rx_messages_[at].next) {
    unname(rx_messages_[at].handle);
  }
  for (Index at = done_sends_.head; at != kNone; at = tx_messages_[at].next) {
    unname(tx_messages_[at].handle);
  }
  for (std::uint32_t i = 0; i < peer_event_count_; ++i) {
    unname(peer_events_[(peer_event_head_ + i) % peer_event_capacity()].peer);
  }
}

Result<PeerId> Core::Impl::add_peer(Instant, const Address& address) noexcept {
  const std::uint64_t hash = hash_of(address);
  for (Index i = peers_by_address_.first(hash); i != kNone; i = peers_by_address_.next(i)) {
    if (!same_address(peers_[i].address, address)) continue;
    const Index live = live_peer(PeerId{i});
    if (live == kNone) continue;
    if (!peers_[i].resolved_by_app) {
      peers_[i].resolved_by_app = peers_[live].resolved_by_app = true;
      peers_[live].handle = PeerId{i};
      keep_peer(live);
    }
    return PeerId{i};
  }
  if (peers_.free() == 0) recycle_peer();
  if (peers_.free() == 0) return Errc::no_memory;
  const Result<Index> index = new_peer(address);
  if (!index) return index.errc();
  peers_[*index].resolved_by_app = true;
  return PeerId{*index};
}

Index Core::Impl::live_peer(PeerId handle) const noexcept {
  auto index = static_cast<Index>(handle);
  if (!peers_.is_used(index)) return kNone;
  while (peers_[index].alias != kNone) index = peers_[index].alias;
  // One that never opened was never named to the application.
  return peers_[index].resolved_by_app || peers_[index].was_up ? index : kNone;
}

Index Core::Impl::find_peer(const wire::EndpointId& id) const noexcept {
  for (Index i = peers_by_endpoint_.first(hash_of(id)); i != kNone;
       i = peers_by_endpoint_.next(i)) {
    if (peers_[i].endpoint == id) return i;
  }
  return kNone;
}

void Core::Impl::name_peer(Index index, const wire::EndpointId& id) noexcept {
  Peer& peer = peers_[index];
  if (peer.id_known && peer.endpoint == id) return;
  if (peer.id_known) peers_by_endpoint_.remove(hash_of(peer.endpoint), index);
  peer.id_known = true;
  peer.endpoint = id;
  peers_by_endpoint_.insert(hash_of(id), index);
}

Errc Core::Impl::remove_peer(Instant now, PeerId handle) noexcept {
  now_ns_ = now.ns;
  const Index index = live_peer(handle);
  if (index == kNone) return Errc::not_found;
  lose_peer(index, Errc::canceled, now.ns);
  unname_peer(index);
  forget_peer(index);
  return Errc::ok;
}

void Core::Impl::drop_peer_if_unused(Index index) noexcept {
  const Peer& peer = peers_[index];
  if (peer.contexts != kNone || peer.alias != kNone) return;
  if (peer.resolved_by_app || peer.was_up) {
    note_recyclable(index);
  } else {
    free_peer(index);
  }
}

void Core::Impl::set_peer_state(Peer& peer, Peer::State state) noexcept {
  if (peer.state == Peer::State::up) --peers_up_;
  if (state == Peer::State::up) ++peers_up_;
  peer.state = state;
  counters_.peers_active.set(peers_up_);
}

// A context became able to send: its peer's identity is known now. Two handles may turn out to be
// one endpoint, and an incarnation may be new.
void Core::Impl::learn_identity(Index index, std::uint64_t now_ns) noexcept {
  Index peer = contexts_[index].peer;
  const wire::EndpointId& endpoint = contexts_[index].remote_endpoint;
  const Index known = find_peer(endpoint);
  if (known != kNone && known != peer) {
    // The handle that the application resolved survives, so that its name stays valid.
    const bool keep_known = peers_[known].resolved_by_app && !peers_[peer].resolved_by_app;
    merge_peers(keep_known ? known : peer, keep_known ? peer : known);
    peer = keep_known ? known : peer;
  }
  name_peer(peer, endpoint);
  if (peers_[peer].incarnation != contexts_[index].remote_incarnation) {
    peers_[peer].incarnation = contexts_[index].remote_incarnation;
    // Serials are of one life; those of contexts the peer opened are noted when they open.
    if (contexts_[index].initiator) peers_[peer].newest_serial = 0;
  }
  weigh_successor(index, contexts_[index].prev_state, now_ns);
  if (!contexts_.is_used(index)) return;
  choose_preferred(peer);
  if (peers_[peer].state != Peer::State::up) {
    counters_.peers_up.add();
    set_peer_state(peers_[peer], Peer::State::up);
    peers_[peer].was_up = true;
    peers_[peer].hello_tries = 0;
    announce_peer(peer, Errc::ok);
  }
}

void Core::Impl::merge_peers(Index into, Index from) noexcept {
  Peer& target = peers_[into];
  Peer& source = peers_[from];
  while (source.contexts != kNone) {
    const Index context = source.contexts;
    source.contexts = contexts_[context].peer_next;
    contexts_[context].peer = into;
    contexts_[context].peer_next = target.contexts;
    target.contexts = context;
  }
  while (!source.queue.empty()) {
    const Index message = source.queue.pop_front(tx_messages_);
    target.queue.push_back(tx_messages_, message);
  }
  while (!source.waiting.empty()) {
    const Index message = source.waiting.pop_front(tx_messages_);
    wait_for_retry(into, message);
  }
  while (!source.bundles.empty()) {
    const Index bundle = source.bundles.pop_front(bundles_);
    target.bundles.push_back(bundles_, bundle);
  }
  target.counters += source.counters;
  source.counters = {};
  target.queued_messages += source.queued_messages;
  target.backlog_bytes += source.backlog_bytes;
  target.was_up |= source.was_up;
  // Replays of what either of them confirmed stay stale.
  const bool same_life = target.incarnation == source.incarnation;
  if (target.newest_serial == 0 ||
      (same_life && seq_less(target.newest_serial, source.newest_serial))) {
    target.newest_serial = source.newest_serial;
  }
  if (source.state == Peer::State::up) set_peer_state(target, Peer::State::up);
  set_peer_state(source, Peer::State::idle);
  source.queued_messages = 0;
  source.backlog_bytes = 0;
  if (source.id_known) peers_by_endpoint_.remove(hash_of(source.endpoint), from);
  source.id_known = false;
  source.preferred = kNone;
  keep_peer(into);
  keep_peer(from);
  source.alias = into;
  source.alias_next = source.aliases;
  source.aliases = kNone;
  for (Index at = from;; at = peers_[at].alias_next) {
    peers_[at].alias = into;
    if (peers_[at].alias_next != kNone) continue;
    peers_[at].alias_next = target.aliases;
    target.aliases = from;
    break;
  }
}

// New messages go to the open context that the smaller endpoint id initiated, the newest of them;
// both sides judge alike. The others drain. Source: PROTOCOL.md 4.6 (succession).
void Core::Impl::choose_preferred(Index index) noexcept {
  Peer& peer = peers_[index];
  const bool mine_counts = config_.endpoint_id < peer.endpoint;
  Index best = kNone;
  for (Index i = peer.contexts; i != kNone; i = contexts_[i].peer_next) {
    const Ctx& ctx = contexts_[i];
    if (ctx.state != Context::State::open || ctx.close_pending ||
        ctx.remote_incarnation != peer.incarnation) {
      continue;
    }
    if (best == kNone) {
      best = i;
      continue;
    }
    const Ctx& champion = contexts_[best];
    const bool right_side = ctx.initiator == mine_counts;
    const bool champion_right = champion.initiator == mine_counts;
    if (right_side != champion_right ? right_side : seq_less(champion.serial, ctx.serial)) {
      best = i;
    }
  }
  peer.preferred = best;
  for (Index i = peer.contexts; i != kNone; i = contexts_[i].peer_next) {
    Ctx& ctx = contexts_[i];
    if (ctx.state != Context::State::open) continue;
    const bool draining = i != best;
    if (draining && !ctx.draining)
      ctx.give_up_ns = now_ns_ + config_.timing.drained_context_life_ns;
    if (!draining) ctx.give_up_ns = UINT64_MAX;
    ctx.draining = draining;
    rearm(i);
  }
  if (best != kNone) mark_ready(best);
}

void Core::Impl::announce_peer(Index index, Errc status) noexcept {
  const std::uint32_t capacity = peer_event_capacity();
  if (peer_event_count_ == capacity) {
    // An application that polls no events misses the oldest.
    peer_event_head_ = (peer_event_head_ + 1) % capacity;
    --peer_event_count_;
  }
  peer_events_[(peer_event_head_ + peer_event_count_) % capacity] = {peers_[index].handle, status};
  ++peer_event_count_;
}

void Core::Impl::lose_peer(Index index, Errc why, std::uint64_t now_ns) noexcept {
  Peer& peer = peers_[index];
  fail_queued(index, why);  // first: with nothing queued no context is opened in place of another
  while (peer.contexts != kNone) destroy_context(peer.contexts, why, now_ns);
  fail_queued(index, why);  // rejected messages that came back from the contexts
  const bool was_up = peer.state == Peer::State::up;
  set_peer_state(peer, Peer::State::lost);
  note_recyclable(index);
  if (was_up) counters_.peers_lost.add();
  if (why != Errc::canceled) announce_peer(index, why);
}

void Core::Impl::fail_queued(Index index, Errc why) noexcept {
  Peer& peer = peers_[index];
  while (!peer.queue.empty()) finish_message(peer.queue.pop_front(tx_messages_), why);
  while (!peer.waiting.empty()) finish_message(peer.waiting.pop_front(tx_messages_), why);
  while (!peer.bundles.empty()) {
    const Index bundle = peer.bundles.pop_front(bundles_);
    ++bundles_[bundle].live;  // keeps it while its messages end
    for (Index m = bundles_[bundle].first_message; m != kNone;) {
      const Index next = tx_messages_[m].bundle_next;
      finish_message(m, why);
      m = next;
    }
    --bundles_[bundle].live;
    drop_bundle_if_dead(bundle);
  }
  peer.queued_messages = 0;
  peer.backlog_bytes = 0;
}

// --- contexts ---

/// Index and salt. The salt goes on by one with each life of the slot, so that an id rests for 4094
/// others, from a start that strangers cannot guess. Never 0.
std::uint32_t Core::Impl::make_context_id(Index index) const noexcept {
  std::array<std::byte, 4> text{};
  store_le<std::uint32_t>(text.data(), index);
  const std::uint64_t start = siphash24(cookie_key_, text);
  const std::uint64_t salt =
      1 + (start % kContextSalts + contexts_.generation(index)) % kContextSalts;
  return static_cast<std::uint32_t>(salt) << 20U | index << 6U;
}

Index Core::Impl::new_context(Index peer, bool initiator, std::uint64_t now_ns) noexcept {
  const Index index = contexts_.take();
  if (index == kNone) return kNone;
  Ctx& ctx = contexts_[index];
  ctx.initiator = initiator;
  ctx.life = contexts_.generation(index);
  ctx.peer = peer;
  ctx.peer_next = peers_[peer].contexts;
  peers_[peer].contexts = index;
  keep_peer(peer);
  ctx.local_id = make_context_id(index);
  ctx.next_probe_id = static_cast<std::uint32_t>(prng_.next()) | 1U;
  ctx.last_heard_ns = now_ns;
  ctx.first_psn = ctx.una = ctx.nxt = ctx.cumulative = static_cast<std::uint32_t>(prng_.next());
  ctx.full_check = config_.full_check;
  ctx.chunks.fill(kNone);
  ctx.next_msg_id = static_cast<std::uint32_t>(prng_.next());
  if (initiator && peers_[peer].state != Peer::State::up) {
    peers_[peer].state = Peer::State::connecting;
  }
  return index;
}

/// Ends a context. Messages of which any packet was sent end with `why`; unsent ones stay queued
/// for the next context. Errc::ok: we closed it when nothing was left to do in it.
void Core::Impl::destroy_context(Index index, Errc why, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  const Index peer = ctx.peer;
  const bool never_opened = ctx.state == Context::State::half_open;
  if (never_opened) --half_open_;
  if (ctx.current != kNone) abandon_or_return_current(ctx);
  fail_started(index, why == Errc::ok ? Errc::context_lost : why);
  // Rejected ones were not delivered: with the context goes what the peer kept of them.
  while (!ctx.aborting.empty()) settle_rejected(peer, ctx.aborting.pop_front(tx_messages_));
  for (std::uint32_t psn = ctx.una; psn != ctx.nxt; ++psn) {
    const Sent& record = sent(ctx, psn);
    if (record.kind == Sent::Kind::small && record.message != kNone &&
        record.state != Sent::State::acked) {
      --bundles_[record.message].live;
      drop_bundle_if_dead(record.message);
    }
  }
  for (Index& chunk : ctx.chunks) {
    if (chunk != kNone) chunks_.give(chunk);
    chunk = kNone;
  }
  // Unfinished messages of this context can never complete.
  while (!ctx.unfinished.empty()) free_message(ctx.unfinished.head);
  while (!ctx.tombstones.empty()) free_message(ctx.tombstones.head);
  while (!ctx.rejections.empty()) rejections_.give(ctx.rejections.pop_front(rejections_));
  close_paths(ctx);
  if (ctx.ready) ready_.remove(contexts_, index);
  if (ctx.lazy_at != kNone) {
    lazy_[ctx.lazy_at] = lazy_[--lazy_count_];
    contexts_[lazy_[ctx.lazy_at]].lazy_at = ctx.lazy_at;
  }
  if (ctx.state == Context::State::open) {
    contexts_by_remote_id_.remove(hash_of_remote(ctx.remote_id), index);
  }
  deadlines_.set(index, kNoDeadline);
  Index* link = &peers_[peer].contexts;
  while (*link != index) link = &contexts_[*link].peer_next;
  *link = ctx.peer_next;
  peers_[peer].counters += ctx.counters;
  if (peers_[peer].preferred == index) peers_[peer].preferred = kNone;
  for (Index i = peers_[peer].contexts; i != kNone; i = contexts_[i].peer_next) {
    if (contexts_[i].successor == index) {
      contexts_[i].successor = kNone;
      contexts_[i].doubted = false;
      contexts_[i].doubt_due_ns = UINT64_MAX;
    }
    // It may send now what waited for the end of a doubt, or came back from this one.
    mark_ready(i);
    rearm(i);
  }
  contexts_.give(index);
  if (touched_ == index) touched_ = kNone;
  if (peers_[peer].preferred == kNone && peers_[peer].contexts != kNone) choose_preferred(peer);
  if (peers_[peer].contexts == kNone) {
    if (peers_[peer].state == Peer::State::connecting) peers_[peer].state = Peer::State::idle;
    const bool queued = !peers_[peer].queue.empty() || !peers_[peer].bundles.empty() ||
                        !peers_[peer].waiting.empty();
    // Whoever said HELLO and fell silent is no reason to give up what waits for that address.
    const bool goes_on =
        why == Errc::peer_restarted || why == Errc::context_lost || why == Errc::ok || never_opened;
    if (queued && goes_on && !closing_down_) start_context(now_ns, peer);
    drop_peer_if_unused(peer);
  }
}

void Core::Impl::fail_started(Index index, Errc why) noexcept {
  Ctx& ctx = contexts_[index];
  for (IndexList* list : {&ctx.active, &ctx.parked}) {
    while (!list->empty()) finish_message(list->pop_front(tx_messages_), why);
  }
}

void Core::Impl::close(Instant now) noexcept {
  now_ns_ = now.ns;
  closing_down_ = true;
  for (Index i = 0; i < contexts_.touched(); ++i) {
    if (!contexts_.is_used(i)) continue;
    if (contexts_[i].state == Context::State::open) contexts_[i].close_pending = true;
    mark_ready(i);
  }
}

// --- what can be read ---

namespace {
void fill_counters(const PeerCounters& c, srd_peer_info& out) noexcept {
  out.tx_messages = c.tx_messages;
  out.tx_message_bytes = c.tx_message_bytes;
  out.tx_failed_messages = c.tx_failed_messages;
  out.rx_messages = c.rx_messages;
  out.rx_message_bytes = c.rx_message_bytes;
  out.tx_datagrams = c.tx_datagrams;
  out.tx_bytes = c.tx_bytes;
  out.rx_datagrams = c.rx_datagrams;
  out.rx_bytes = c.rx_bytes;
  out.tx_acks = c.tx_acks;
  out.rx_acks = c.rx_acks;
  out.tx_piggybacks = c.tx_piggybacks;
  out.tx_retransmits = c.tx_retransmits;
  out.tx_spurious = c.tx_spurious;
  out.losses_fifo = c.losses_fifo;
  out.losses_rack = c.losses_rack;
  out.tail_probes = c.tail_probes;
  out.rto_probes = c.rto_probes;
  out.rx_duplicates = c.rx_duplicates;
  out.rx_ce = c.rx_ce;
  out.rx_rejected_messages = c.rx_rejected_messages;
  out.tx_rejected_messages = c.tx_rejected_messages;
  out.path_rerolls = c.path_rerolls;
  out.path_suspects = c.path_suspects;
  out.peer_restarts = c.peer_restarts;
}
}  // namespace

bool Core::Impl::peer_info(PeerId handle, srd_peer_info& out) const noexcept {
  const Index index = live_peer(handle);
  if (index == kNone) return false;
  const Peer& peer = peers_[index];
  out = srd_peer_info{};
  out.address = peers_[static_cast<Index>(handle)].address;
  out.state = static_cast<std::uint32_t>(peer.state);
  out.queued_messages = peer.queued_messages;
  out.hello_tries = peer.hello_tries;
  PeerCounters counters = peer.counters;
  for (Index i = peer.contexts; i != kNone; i = contexts_[i].peer_next) {
    counters += contexts_[i].counters;
  }
  fill_counters(counters, out);
  const Index context = peer.preferred != kNone ? peer.preferred : peer.contexts;
  if (context == kNone) return true;
  const Ctx& ctx = contexts_[context];
  out.paths = ctx.paths.size();
  out.datagram_bytes = ctx.datagram_bytes;
  out.payload_bytes = ctx.payload_bytes;
  out.in_flight_datagrams = ctx.in_flight_datagrams;
  out.in_flight_bytes = ctx.in_flight_bytes;
  out.window_bytes = ctx.congestion.window_bytes();
  out.rate_bytes_per_s = static_cast<std::uint64_t>(ctx.congestion.rate() * 1e9);
  out.rtt_min_ns = ctx.rtt.has_sample() ? ctx.rtt.base_ns() : 0;
  out.rtt_ns = ctx.rtt.srtt_ns();
  out.rtt_var_ns = ctx.rtt.variation_ns();
  return true;
}

std::size_t Core::Impl::path_info(PeerId handle, std::span<srd_path_info> out) const noexcept {
  const Index index = live_peer(handle);
  if (index == kNone) return 0;
  const Peer& peer = peers_[index];
  const Index context = peer.preferred != kNone ? peer.preferred : peer.contexts;
  if (context == kNone) return 0;
  const Ctx& ctx = contexts_[context];
  for (std::uint32_t i = 0; i < ctx.paths.size() && i < out.size(); ++i) {
    const Slot& slot = ctx.paths[i];
    srd_path_info& info = out[i];
    info = srd_path_info{};
    info.slot = i;
    switch (slot.state) {
      case SlotState::closed:
        info.state = SRD_PATH_CLOSED;
        break;
      case SlotState::untried:
        info.state = SRD_PATH_UNTRIED;
        break;
      case SlotState::good:
        info.state = SRD_PATH_GOOD;
        break;
      case SlotState::suspect:
        info.state = SRD_PATH_SUSPECT;
        break;
    }
    info.generation = slot.generation;
    if (slot.path != kNoPath) path_control_.describe_path(slot.path, info.local, info.remote);
    info.tx_datagrams = slot.tx_datagrams;
    info.tx_bytes = slot.tx_bytes;
    info.acked_bytes = slot.acked_bytes;
    info.lost_datagrams = slot.lost_datagrams;
    info.retransmits = slot.retransmits;
    info.ce_datagrams = slot.ce_datagrams;
    info.rerolls = slot.rerolls;
    info.rx_datagrams = slot.rx_datagrams;
    info.rtt_min_ns = slot.rtt.base_ns() == UINT64_MAX ? 0 : slot.rtt.base_ns();
    info.rtt_ns = slot.rtt.srtt_ns();
    info.in_flight_bytes = slot.in_flight_bytes;
    info.rate_bytes_per_s = static_cast<std::uint64_t>(slot.rate_bytes_per_ns * 1e9);
  }
  return ctx.paths.size();
}

}  // namespace srd::core
