// SPDX-License-Identifier: Apache-2.0
// Doubt about a context: RESET hints, lost contexts, restarts, CLOSE. A hint never decides. A
// restart is proven only when another incarnation answered a HELLO of ours (or confirmed its own)
// and the old context kept silent for one RTO after a probe. Source: PROTOCOL.md 4.4, 4.5.
#include <algorithm>

#include "srd/core/impl.hpp"

#include "base/seqno.hpp"

namespace srd::core {

namespace {
constexpr std::uint64_t kDoubtPauseRtos = 10;
constexpr std::uint32_t kRecentProbes = 64;
constexpr std::uint32_t kDoubtProbes = 4;

bool same_host(const Address& a, const Address& b) {
  return a.family == b.family && std::equal(std::begin(a.bytes), std::end(a.bytes), b.bytes);
}
}  // namespace

void Core::Impl::send_reset(const Arrival& arrival) noexcept {
  using wire::PacketType;
  const PacketType type = arrival.header.type;
  const bool answerable =
      type == PacketType::data || type == PacketType::small || type == PacketType::probe;
  if (!answerable || arrival.bytes.size() < wire::kResetBytes || closing_down_) return;
  if (!resets_.take(arrival.now_ns)) return;
  wire::ResetHeader reset;
  reset.echo_dst_ctx = arrival.header.dst_ctx;
  reset.incarnation = config_.incarnation;
  wire::CommonHeader common;
  common.type = PacketType::reset;
  common.psn = arrival.header.psn;
  answer_stranger(arrival, common, reset, wire::kResetBytes);
}

// The sender is not named by a context id: find the context whose remote id is echoed, on a path to
// that source, with the echoed PSN in flight (or a probe out, whose PSN field is its probe id).
void Core::Impl::on_reset(Arrival& arrival) noexcept {
  wire::ResetHeader reset;
  if (!wire::decode(arrival.bytes, reset)) {
    counters_.rx_malformed.add();
    return;
  }
  std::uint32_t candidates = 0;
  for (Index i = contexts_by_remote_id_.first(hash_of_remote(reset.echo_dst_ctx)); i != kNone;
       i = contexts_by_remote_id_.next(i)) {
    Ctx& ctx = contexts_[i];
    if (ctx.remote_id != reset.echo_dst_ctx) continue;
    if (++candidates > kHintCandidates) return;
    if (ctx.doubted || arrival.now_ns < ctx.doubt_again_ns) continue;
    bool asked = ctx.next_probe_id - arrival.header.psn - 1 < kRecentProbes;
    for (std::uint32_t s = 0; s < ctx.paths.size(); ++s) {
      asked |= arrival.header.psn != 0 && ctx.paths[s].probe_id == arrival.header.psn;
    }
    const bool plausible = (ctx.una != ctx.nxt && seq_less_equal(ctx.una, arrival.header.psn) &&
                            seq_less(arrival.header.psn, ctx.nxt)) ||
                           asked;
    if (!plausible || !same_host(*arrival.datagram.source, peers_[ctx.peer].address)) continue;
    ctx.doubt_slot = arrival.header.slot;
    const Index successor = start_context(arrival.now_ns, ctx.peer, ctx.remote_id);
    if (successor != kNone) doubt(i, successor, arrival.now_ns);
    return;
  }
}

void Core::Impl::doubt(Index index, Index successor, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (ctx.doubted) return;
  ctx.doubted = true;
  ctx.doubt_silent = false;
  ctx.successor = successor;
  ctx.successor_proven = false;
  ctx.doubted_since_ns = now_ns;
  ctx.doubt_due_ns = now_ns + rto_ns(ctx);
  // One lost probe must not pass for a restart.
  std::uint64_t asked = 0;
  for (std::uint32_t i = 0; i < kDoubtProbes; ++i) {
    const std::uint32_t slot = ctx.paths.freshest(asked | ctx.unheard_slots);
    if (slot == kSlotsMax || (asked >> slot & 1U) != 0) break;
    asked |= std::uint64_t{1} << slot;
    probe_slot(ctx, slot);
    expect_answer(ctx, now_ns);
  }
  mark_ready(index);
  rearm(index);
}

/// `index` got its HELLO_ACK or third leg: what does that say about contexts in doubt?
void Core::Impl::weigh_successor(Index index, wire::PrevState says, std::uint64_t now_ns) noexcept {
  const Index peer = contexts_[index].peer;
  Index next = kNone;
  for (Index i = peers_[peer].contexts; i != kNone; i = next) {
    next = contexts_[i].peer_next;
    if (i == index) continue;
    Ctx& old = contexts_[i];
    if (old.state != Context::State::open) continue;
    const bool other_life = old.remote_incarnation != contexts_[index].remote_incarnation ||
                            old.remote_endpoint != contexts_[index].remote_endpoint;
    if (other_life && !old.doubted) doubt(i, index, now_ns);
    if (!old.doubted || old.successor != index) continue;
    old.successor_proven = true;
    if (other_life) {
      resolve_doubt(i, now_ns);
    } else if (says == wire::PrevState::unknown) {
      destroy_context(i, Errc::context_lost, now_ns);
    } else {
      end_doubt_alive(i);
      return;
    }
  }
}

/// The old context had its RTO and another life answered: the restart is proven.
void Core::Impl::resolve_doubt(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  if (!ctx.doubted || !ctx.successor_proven || !ctx.doubt_silent) return;
  counters_.peer_restarts.add();
  ++ctx.counters.peer_restarts;
  const Index peer = ctx.peer;
  destroy_context(index, Errc::peer_restarted, now_ns);
  announce_peer(peer, Errc::peer_restarted);
}

/// The old context answered, or the peer says that it lives: nothing fails.
void Core::Impl::end_doubt_alive(Index index) noexcept {
  Ctx& ctx = contexts_[index];
  const Index successor = ctx.successor;
  ctx.doubted = false;
  ctx.successor = kNone;
  ctx.doubt_due_ns = UINT64_MAX;
  ctx.doubt_again_ns = now_ns_ + kDoubtPauseRtos * rto_ns(ctx);
  if (ctx.doubt_slot < ctx.paths.size() && ctx.initiator) reroll(index, ctx.doubt_slot, now_ns_);
  // A successor of the same life may be in use by the peer already: it drains like any other. One
  // of another life (two servers behind one address) must not take over.
  if (successor != kNone && contexts_.is_used(successor) && contexts_[successor].peer == ctx.peer) {
    const Ctx& other = contexts_[successor];
    if (other.state != Context::State::open) {
      destroy_context(successor, Errc::context_lost, now_ns_);
    } else if (other.remote_incarnation != ctx.remote_incarnation ||
               other.remote_endpoint != ctx.remote_endpoint) {
      contexts_[successor].close_pending = true;
      mark_ready(successor);
    }
  }
  peers_[ctx.peer].incarnation = ctx.remote_incarnation;
  choose_preferred(ctx.peer);
}

void Core::Impl::on_close(Index index, Arrival& arrival) noexcept {
  wire::CloseHeader close;
  Ctx& ctx = contexts_[index];
  if (!wire::decode(arrival.bytes, close)) {
    counters_.rx_malformed.add();
    return;
  }
  // The sender's next PSN and the one it expects: what lies below or beyond is a replay or forged.
  const std::uint32_t psn_end = ctx.rx.base() + config_.limits.window_psns;
  if (seq_less(arrival.header.psn, ctx.rx.end()) || seq_less(psn_end, arrival.header.psn) ||
      seq_less(close.next_psn, ctx.cumulative) || seq_less(ctx.nxt, close.next_psn)) {
    counters_.rx_malformed.add();
    return;
  }
  const Index peer = ctx.peer;
  destroy_context(index, Errc::peer_closed, arrival.now_ns);
  if (peers_[peer].contexts == kNone) {
    lose_peer(peer, Errc::peer_closed, arrival.now_ns);
  }
}

}  // namespace srd::core
