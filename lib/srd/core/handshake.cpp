// SPDX-License-Identifier: Apache-2.0
// Opening a context: HELLO, HELLO_ACK, the third leg, RETRY cookies. Source: PROTOCOL.md 4.1 - 4.3.
#include <algorithm>
#include <bit>
#include <cstring>

#include "srd/core/impl.hpp"
#include "srd/wire/check.hpp"

#include "base/seqno.hpp"
#include "base/siphash.hpp"

namespace srd::core {

namespace {

constexpr std::uint64_t kCookieEpochNs = 30'000'000'000;
constexpr std::uint32_t kPayloadReserve = 16;   // room for TLVs beside a full payload
constexpr std::uint32_t kServicePortTry = 3;    // after so many unanswered HELLOs
constexpr std::uint32_t kDatagramFloor = 1232;  // IPv6's minimum MTU
constexpr std::uint64_t kInitialWindowBytes = 64U << 10;

/// What the format allows but no context can live with.
bool is_sane(const wire::HelloHeader& hello) {
  return hello.src_ctx != 0 && hello.datagram_bytes >= kDatagramFloor && hello.partial_limit >= 1;
}

}  // namespace

wire::Nonce Core::Impl::make_nonce() noexcept {
  wire::Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); i += 8) {
    const std::uint64_t word = prng_.next();
    std::memcpy(&nonce[i], &word, 8);
  }
  return nonce;
}

/// A context of our making; `prev_ctx`: the peer's id of the one in doubt, if that is why. kNone:
/// the table is full.
Index Core::Impl::start_context(std::uint64_t now_ns, Index peer, std::uint32_t prev_ctx) noexcept {
  const Index index = new_context(peer, true, now_ns);
  if (index == kNone) return kNone;
  Ctx& ctx = contexts_[index];
  ctx.local_nonce = make_nonce();
  ctx.serial = next_serial_++;
  ctx.hello_pending = true;
  ctx.prev_ctx = prev_ctx;
  ctx.give_up_ns = now_ns + config_.timing.connect_timeout_ns;
  ctx.paths.reset(std::min(config_.limits.paths, kSlotsMax));
  mark_ready(index);
  rearm(index);
  return index;
}

void Core::Impl::fill_hello(const Ctx& ctx, wire::HelloHeader& hello) const noexcept {
  const Limits& limits = config_.limits;
  hello.src_ctx = ctx.local_id;
  hello.ctx_serial = ctx.serial;
  hello.features =
      config_.full_check || ctx.full_check ? std::uint64_t{wire::kFeatureFullCheck} : 0;
  hello.endpoint_id = config_.endpoint_id;
  hello.incarnation = config_.incarnation;
  hello.seen_incarnation = peers_[ctx.peer].incarnation;
  hello.nonce = ctx.local_nonce;
  hello.initial_psn = ctx.first_psn;
  hello.prev_ctx = ctx.prev_ctx;
  hello.prev_state = ctx.prev_state;
  hello.paths = static_cast<std::uint8_t>(ctx.paths.size());
  hello.window_log2 = static_cast<std::uint8_t>(std::countr_zero(limits.window_psns));
  hello.datagram_bytes =
      std::min({config_.driver.datagram_bytes_max, limits.datagram_bytes_max,
                std::max(path_control_.datagram_bytes(peers_[ctx.peer].dest), kDatagramFloor)});
  hello.max_message_bytes = limits.max_message_bytes;
  hello.partial_limit = limits.partial_messages;
  hello.max_ack_delay_us = static_cast<std::uint16_t>(config_.timing.max_ack_delay_ns / 1000);
  hello.reads_ce = config_.driver.ecn ? 1 : 0;
  hello.rx_buffer_bytes = config_.driver.rx_buffer_bytes;
  const std::uint64_t pool_left =
      limits.receive_pool_bytes - std::min(pool_used_bytes_, limits.receive_pool_bytes);
  hello.initial_limit = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(pool_left, kInitialWindowBytes * 4) >> wire::kLimitUnitShift);
}

std::size_t Core::Impl::write_hello(Ctx& ctx, std::uint64_t now_ns, TxDatagram& out,
                                    bool answer) noexcept {
  wire::HelloHeader hello;
  fill_hello(ctx, hello);
  if (answer) {
    hello.echo_nonce = ctx.remote_nonce;
    hello.echo_time = ctx.hello_echo_time;
    hello.hold_time = wire::to_wire_time(now_ns) - wire::to_wire_time(ctx.hello_arrived_ns);
  }
  const std::uint32_t slot = answer ? ctx.ack_slot : ctx.hello_tries % ctx.paths.size();
  if (!answer && ctx.hello_tries == kServicePortTry) use_service_port(ctx, slot);
  if (!answer && ctx.paths[slot].path == kNoPath && !open_slot(ctx, slot, now_ns, 1)) return 0;
  // A HELLO does not fit the inline header; it is sent as a copied payload.
  const std::span<std::byte> packet = scratch(wire::kHelloPaddedBytes);
  if (packet.empty()) return 0;
  wire::CommonHeader common;
  common.type = answer ? wire::PacketType::hello_ack : wire::PacketType::hello;
  common.dst_ctx = answer ? ctx.remote_id : 0;
  common.tx_time = wire::to_wire_time(now_ns);
  common.slot = static_cast<std::uint8_t>(slot);
  if (ctx.has_cookie && !answer) common.flags |= wire::kFlagExtension;
  wire::encode(packet, common);
  wire::encode(packet, hello);
  if (ctx.has_cookie && !answer) {
    wire::Extensions extensions;
    extensions.cookie = ctx.cookie;
    wire::encode_extensions(packet.subspan(wire::kHelloBytes), extensions);
  }
  wire::seal(packet, {}, wire::kUnseeded);
  out = TxDatagram{};
  out.path = ctx.paths[slot].path;
  out.copy = true;
  out.payload[0] = {packet.data(), static_cast<std::uint32_t>(packet.size()), kNoRegion};
  out.payload_count = 1;
  return 1;
}

/// A firewall may let out and in by the service port alone. Such a peer has one path.
void Core::Impl::use_service_port(Ctx& ctx, std::uint32_t slot) noexcept {
  leave_path(ctx.paths[slot]);
  ctx.service_slot = slot;
}

void Core::Impl::adopt_parameters(Ctx& ctx, const wire::HelloHeader& hello) noexcept {
  const Limits& limits = config_.limits;
  ctx.remote_id = hello.src_ctx;
  ctx.remote_endpoint = hello.endpoint_id;
  ctx.remote_incarnation = hello.incarnation;
  ctx.remote_nonce = hello.nonce;
  ctx.full_check = config_.full_check || (hello.features & wire::kFeatureFullCheck) != 0;
  ctx.ecn = config_.driver.ecn && hello.reads_ce != 0;
  const std::uint32_t route = path_control_.datagram_bytes(peers_[ctx.peer].dest);
  ctx.datagram_bytes = std::min({hello.datagram_bytes, config_.driver.datagram_bytes_max,
                                 limits.datagram_bytes_max, std::max(route, kDatagramFloor)});
  ctx.payload_bytes =
      (ctx.datagram_bytes - static_cast<std::uint32_t>(wire::kDataBytes) - kPayloadReserve) / 64 *
      64;
  ctx.remote_max_message = hello.max_message_bytes;
  ctx.tx_window = 1U << hello.window_log2;
  ctx.partial_limit = hello.partial_limit;
  ctx.remote_ack_delay_ns = std::uint64_t{hello.max_ack_delay_us} * 1000;
  ctx.limit_bytes = std::uint64_t{hello.initial_limit} << wire::kLimitUnitShift;
  ctx.rto_min_ns = config_.timing.rto_min_ns;
  ctx.rx.reset(hello.initial_psn, limits.window_psns);
  const wire::SeedSide local{ctx.local_nonce, config_.incarnation};
  const wire::SeedSide remote{ctx.remote_nonce, ctx.remote_incarnation};
  ctx.tx_seed = wire::derive_seed(local, remote);
  ctx.rx_seed = wire::derive_seed(remote, local);
  Congestion::Setup setup;
  setup.mss_bytes = ctx.payload_bytes;
  setup.initial_bytes = std::max<std::uint64_t>(
      std::min<std::uint64_t>(
          std::min<std::uint64_t>(16ULL * ctx.payload_bytes, kInitialWindowBytes),
          std::max<std::uint64_t>(hello.rx_buffer_bytes / 4, 1)),
      ctx.payload_bytes);
  setup.window_limit_bytes = std::uint64_t{ctx.tx_window} * ctx.payload_bytes;
  ctx.congestion.reset(config_.timing, setup);
}

// HELLO goes out at 0, 1, 3 and 7 initial RTOs, then at a steady pace.
std::uint64_t Core::Impl::hello_interval_ns(std::uint32_t tries) const noexcept {
  const Timing& timing = config_.timing;
  if (tries > 2) return timing.hello_retry_ns;
  return std::min((3 * timing.initial_rtt_ns) << tries, timing.hello_retry_ns);
}

// --- responder ---

Core::Impl::KnownHello Core::Impl::look_up_hello(Index peer,
                                                 const wire::HelloHeader& hello) const noexcept {
  KnownHello known;
  if (peer == kNone) return known;
  for (Index i = peers_[peer].contexts; i != kNone; i = contexts_[i].peer_next) {
    const Ctx& old = contexts_[i];
    ++known.contexts_of_peer;
    if (!old.initiator && old.remote_id == hello.src_ctx && old.remote_nonce == hello.nonce &&
        old.remote_incarnation == hello.incarnation) {
      known.context = i;
      return known;
    }
  }
  known.stale = peers_[peer].incarnation == hello.incarnation && peers_[peer].newest_serial != 0 &&
                seq_less_equal(hello.ctx_serial, peers_[peer].newest_serial);
  return known;
}

/// The same HELLO again: the same answer again.
void Core::Impl::answer_again(Index index, Arrival& arrival) noexcept {
  Ctx& ctx = contexts_[index];
  if (arrival.header.slot >= ctx.paths.size()) {  // not the same, then
    counters_.rx_malformed.add();
    return;
  }
  ctx.hello_echo_time = arrival.header.tx_time;
  ctx.hello_arrived_ns = arrival.arrived_ns;
  ctx.hello_ack_pending = true;
  adopt_return_path(index, arrival);
  ctx.ack_slot = arrival.header.slot;
  mark_ready(index);
}

bool Core::Impl::shows_cookie(const Arrival& arrival,
                              const wire::HelloHeader& hello) const noexcept {
  const std::uint64_t epoch = arrival.now_ns / kCookieEpochNs;
  const auto& shown = arrival.extensions.cookie;
  return shown && (*shown == make_cookie(arrival, hello, epoch) ||
                   (epoch > 0 && *shown == make_cookie(arrival, hello, epoch - 1)));
}

void Core::Impl::on_hello(Arrival& arrival) noexcept {
  wire::HelloHeader hello;
  if (closing_down_) {
    counters_.rx_dropped_handshakes.add();
    return;
  }
  // Shorter than its answer could be: an amplifier's packet.
  if (arrival.bytes.size() < wire::kHelloPaddedBytes || !wire::decode(arrival.bytes, hello)) {
    counters_.rx_malformed.add();
    return;
  }
  if (hello.version_min > wire::kVersion || hello.version_max < wire::kVersion) {
    refuse_hello(arrival, hello, wire::RejectCode::version);
    return;
  }
  if (!is_sane(hello) || arrival.header.slot >= hello.paths) {
    counters_.rx_malformed.add();
    return;
  }
  Index peer = find_peer(hello.endpoint_id);
  const KnownHello known = look_up_hello(peer, hello);
  if (known.context != kNone) {
    answer_again(known.context, arrival);
    return;
  }
  if (known.stale) {
    refuse_hello(arrival, hello, wire::RejectCode::stale);
    return;
  }
  // Many contexts, or many of one peer: whoever sends forged HELLOs cannot show the cookie.
  if ((half_open_ >= config_.limits.half_open_free ||
       known.contexts_of_peer >= config_.limits.contexts_per_peer / 4) &&
      !shows_cookie(arrival, hello)) {
    send_retry(arrival, hello);
    return;
  }
  if (half_open_ >= config_.limits.half_open) {
    counters_.rx_dropped_handshakes.add();
    return;
  }
  if (known.contexts_of_peer >= config_.limits.contexts_per_peer) {
    refuse_hello(arrival, hello, wire::RejectCode::no_room);
    return;
  }
  const bool fresh_peer = peer == kNone;
  if (fresh_peer) {
    // What waits to be polled may name a lost peer: not for a stranger, poll_events() makes room.
    if (peers_.free() == 0 && !has_events()) recycle_peer();
    const Result<Index> made = new_peer(*arrival.datagram.source);
    if (!made) {
      refuse_hello(arrival, hello, wire::RejectCode::no_room);
      return;
    }
    peer = *made;
    name_peer(peer, hello.endpoint_id);
  }
  const Index index = new_context(peer, false, arrival.now_ns);
  if (index == kNone) {
    if (fresh_peer) drop_peer_if_unused(peer);
    refuse_hello(arrival, hello, wire::RejectCode::no_room);
    return;
  }
  ++half_open_;
  Ctx& ctx = contexts_[index];
  ctx.state = Context::State::half_open;
  ctx.local_nonce = make_nonce();
  ctx.serial = hello.ctx_serial;
  ctx.paths.reset(hello.paths);
  ctx.give_up_ns = arrival.now_ns + config_.timing.half_open_life_ns;
  adopt_parameters(ctx, hello);
  if (hello.prev_ctx != 0) {
    const Index previous = find_context(hello.prev_ctx);
    const bool alive = previous != kNone && contexts_[previous].state == Context::State::open &&
                       contexts_[previous].remote_endpoint == hello.endpoint_id &&
                       contexts_[previous].remote_incarnation == hello.incarnation;
    ctx.prev_state = alive ? wire::PrevState::alive : wire::PrevState::unknown;
  }
  ctx.hello_echo_time = arrival.header.tx_time;
  ctx.hello_arrived_ns = arrival.arrived_ns;
  ctx.ack_slot = arrival.header.slot < ctx.paths.size() ? arrival.header.slot : std::uint8_t{0};
  arrival.header.slot = ctx.ack_slot;
  adopt_return_path(index, arrival);
  ctx.hello_ack_pending = true;
  mark_ready(index);
  rearm(index);
}

// The third leg: a packet with our id and a valid check proves that the source is no forgery.
void Core::Impl::establish(Index index, std::uint64_t now_ns) noexcept {
  Ctx& ctx = contexts_[index];
  --half_open_;
  ctx.state = Context::State::open;
  contexts_by_remote_id_.insert(hash_of_remote(ctx.remote_id), index);
  ctx.give_up_ns = UINT64_MAX;
  Peer& peer = peers_[ctx.peer];
  const bool same_life = peer.incarnation == ctx.remote_incarnation;
  if (!same_life || seq_less(peer.newest_serial, ctx.serial)) peer.newest_serial = ctx.serial;
  learn_identity(index, now_ns);
}

void Core::Impl::refuse_hello(const Arrival& arrival, const wire::HelloHeader& hello,
                              wire::RejectCode code) noexcept {
  counters_.rx_dropped_handshakes.add();
  if (!hello_answers_.take(arrival.now_ns)) return;
  wire::HelloHeader answer;
  answer.reject = code;
  answer.echo_nonce = hello.nonce;
  answer.endpoint_id = config_.endpoint_id;
  answer.incarnation = config_.incarnation;
  answer.ctx_serial = hello.ctx_serial;
  wire::CommonHeader common;
  common.type = wire::PacketType::hello_ack;
  common.dst_ctx = hello.src_ctx;
  answer_stranger(arrival, common, answer, wire::kHelloBytes);
}

std::array<std::uint8_t, 24> Core::Impl::make_cookie(const Arrival& arrival,
                                                     const wire::HelloHeader& hello,
                                                     std::uint64_t epoch) const noexcept {
  std::array<std::byte, 64> text{};
  std::memcpy(text.data(), arrival.datagram.source->bytes, 16);
  std::memcpy(&text[16], &hello.src_ctx, 4);
  std::memcpy(&text[24], &hello.incarnation, 8);
  std::memcpy(&text[32], hello.nonce.data(), 16);
  std::memcpy(&text[48], &epoch, 8);
  const std::uint64_t mac = siphash24(cookie_key_, text);
  std::array<std::uint8_t, 24> cookie{};
  std::memcpy(cookie.data(), &mac, 8);
  return cookie;
}

void Core::Impl::send_retry(const Arrival& arrival, const wire::HelloHeader& hello) noexcept {
  counters_.rx_dropped_handshakes.add();
  if (!hello_answers_.take(arrival.now_ns)) return;
  wire::RetryHeader retry;
  retry.echo_nonce = hello.nonce;
  retry.cookie = make_cookie(arrival, hello, arrival.now_ns / kCookieEpochNs);
  wire::CommonHeader common;
  common.type = wire::PacketType::retry;
  common.dst_ctx = hello.src_ctx;
  answer_stranger(arrival, common, retry, wire::kRetryBytes);
}

// --- initiator ---

void Core::Impl::on_retry(Arrival& arrival) noexcept {
  const Index index = find_context(arrival.header.dst_ctx);
  wire::RetryHeader retry;
  if (index == kNone || contexts_[index].state != Context::State::hello_sent ||
      !wire::decode(arrival.bytes, retry) || retry.echo_nonce != contexts_[index].local_nonce) {
    counters_.rx_dropped_handshakes.add();
    return;
  }
  Ctx& ctx = contexts_[index];
  ctx.cookie = retry.cookie;
  ctx.has_cookie = true;
  ctx.hello_pending = true;
  mark_ready(index);
}

void Core::Impl::on_hello_ack(Arrival& arrival) noexcept {
  const Index index = find_context(arrival.header.dst_ctx);
  wire::HelloHeader hello;
  if (index == kNone || contexts_[index].state != Context::State::hello_sent ||
      !wire::decode(arrival.bytes, hello) || hello.echo_nonce != contexts_[index].local_nonce) {
    counters_.rx_dropped_handshakes.add();
    return;
  }
  Ctx& ctx = contexts_[index];
  switch (hello.reject) {
    case wire::RejectCode::accepted:
      break;
    case wire::RejectCode::stale:
      // Somebody replayed a later serial of ours, or we lost track: a living initiator draws a new
      // one.
      ctx.serial = next_serial_++;
      ctx.local_nonce = make_nonce();
      ctx.hello_pending = true;
      mark_ready(index);
      return;
    case wire::RejectCode::no_room:
      ctx.refusal = Errc::peer_refused;  // tried again at the usual pace until the connect timeout
      return;
    case wire::RejectCode::version:
    default:
      lose_peer(ctx.peer, Errc::version_mismatch, arrival.now_ns);
      return;
  }
  if (!is_sane(hello) || arrival.bytes.size() < wire::kHelloBytes) {
    counters_.rx_malformed.add();
    return;
  }
  adopt_parameters(ctx, hello);
  ctx.state = Context::State::open;
  contexts_by_remote_id_.insert(hash_of_remote(ctx.remote_id), index);
  ctx.give_up_ns = UINT64_MAX;
  ctx.hello_pending = false;
  ctx.last_heard_ns = arrival.now_ns;
  ctx.third_leg_pending = true;
  ctx.hello_due_ns = arrival.now_ns + rto_ns(ctx);
  const std::uint32_t slot = arrival.header.slot < ctx.paths.size() ? arrival.header.slot : 0U;
  if (ctx.paths[slot].path == kNoPath) open_slot(ctx, slot, arrival.now_ns, 1);
  const std::uint64_t rtt = wire::from_wire_span(wire::to_wire_time(arrival.arrived_ns) -
                                                 hello.echo_time - hello.hold_time);
  if (rtt < kRttMaxNs) note_rtt(ctx, slot, rtt, arrival.now_ns);
  slot_answered(index, slot, arrival.now_ns);
  ctx.ack_slot = static_cast<std::uint8_t>(slot);
  probe_slot(ctx, slot);  // the third leg, unless data goes first
  open_initial_paths(index, arrival.now_ns);
  ctx.prev_state = hello.prev_state;
  learn_identity(index, arrival.now_ns);
  if (!contexts_.is_used(index)) return;
  mark_ready(index);
  rearm(index);
}

}  // namespace srd::core
