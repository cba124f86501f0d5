// SPDX-License-Identifier: Apache-2.0
#include "unit/core_pair.hpp"

#include <algorithm>

#include "srd/wire/check.hpp"

namespace srd::core {

Result<DestId> NumberedPaths::resolve(const Address& to) noexcept {
  std::uint32_t free = static_cast<std::uint32_t>(dests_.size());
  for (std::uint32_t i = 0; i < dests_.size(); ++i) {
    if (dests_[i].references == 0) {
      free = i;
    } else if (same_address(dests_[i].address, to)) {
      ++dests_[i].references;
      return DestId{i};
    }
  }
  if (free == dests_.size()) dests_.emplace_back();
  dests_[free] = {to, 1};
  return DestId{free};
}

void NumberedPaths::forget(DestId dest) noexcept {
  Dest& known = dests_.at(static_cast<std::uint32_t>(dest));
  if (known.references == 0) std::abort();  // forgotten more often than resolved
  --known.references;
}

std::uint32_t NumberedPaths::references(const Address& to) const {
  for (const Dest& dest : dests_) {
    if (dest.references > 0 && same_address(dest.address, to)) return dest.references;
  }
  return 0;
}

Config CorePair::config() {
  Config config;
  config.driver.datagram_bytes_max = 1472;
  config.driver.tx_burst_segments_max = 43;
  config.driver.tx_burst_bytes_max = 60'000;
  config.driver.rx_buffer_bytes = 4 << 20;
  config.driver.ecn = true;
  config.incarnation = 1;
  config.endpoint_id[0] = 1;
  config.seed = 1;
  return config;
}

CorePair::CorePair(const Config& base) {
  start(a, base);
  Config other = base;
  other.incarnation = 2;
  other.endpoint_id[0] = 2;
  other.seed = 2;
  start(b, other);
}

void CorePair::start(Side& side, const Config& config) {
  side.core = std::move(Core::create(config, side.paths)).value();
  side.peer = side.core->add_peer(Instant{now_ns}, address_of(&side == &a ? 2 : 1)).value();
}

Address CorePair::address_of(std::uint16_t port) {
  Address address{};
  address.family = 4;
  address.port = port;
  address.bytes[0] = 10;
  return address;
}

Errc CorePair::send(Side& from, std::span<const std::byte> payload, std::uint64_t user_data) {
  const Segment piece{payload.data(), static_cast<std::uint32_t>(payload.size()), kNoRegion};
  SendRequest request;
  request.peer = from.peer;
  request.payload = std::span(&piece, 1);
  request.user_data = user_data;
  return counted([&] { return from.core->send(Instant{now_ns}, request); });
}

void CorePair::deliver(Side& to, const Packet& packet, const Address& source) {
  const BufferId buffer{to.next_buffer++};
  std::vector<std::byte>& memory = to.buffers[buffer] = packet.bytes;
  RxDatagram datagram;
  datagram.data = memory.data();
  datagram.bytes = static_cast<std::uint32_t>(memory.size());
  datagram.buffer = buffer;
  datagram.arrived = Instant{now_ns};
  datagram.flow = memory.size() > 2 ? 1 + std::to_integer<std::uint64_t>(memory[2]) : 0;
  datagram.source = &source;
  datagram.ecn = packet.ecn;
  counted([&] { to.core->handle_datagrams(Instant{now_ns}, std::span(&datagram, 1)); });
}

void CorePair::note_handshake(bool to_b, const Packet& packet) {
  wire::HelloHeader hello;
  const bool answer = packet.type() == wire::PacketType::hello_ack;
  if (!answer && packet.type() != wire::PacketType::hello) return;
  if (!wire::decode(packet.bytes, hello) || hello.reject != wire::RejectCode::accepted) return;
  if (!answer) {
    hellos_[hello.src_ctx] = hello;
    return;
  }
  wire::CommonHeader common;
  wire::decode(packet.bytes, common);
  const auto found = hellos_.find(common.dst_ctx);
  if (found == hellos_.end()) return;  // the answer to a forged one
  const wire::HelloHeader& asked = found->second;
  const wire::SeedSide initiator{asked.nonce, asked.incarnation};
  const wire::SeedSide responder{hello.nonce, hello.incarnation};
  Handshake done{asked.src_ctx,
                 hello.src_ctx,
                 wire::derive_seed(responder, initiator),
                 wire::derive_seed(initiator, responder),
                 asked.initial_psn,
                 hello.initial_psn};
  if (to_b) {
    std::swap(done.id_at_a, done.id_at_b);
    std::swap(done.seed_to_a, done.seed_to_b);
    std::swap(done.first_psn_of_a, done.first_psn_of_b);
  }
  if (handshakes.empty() || handshakes.back().id_at_a != done.id_at_a ||
      handshakes.back().seed_to_a != done.seed_to_a) {
    handshakes.push_back(done);
  }
}

void CorePair::seal(bool to_b, wire::CommonHeader common, Packet& packet,
                    const std::function<void()>& write_body) {
  using wire::PacketType;
  const bool unseeded = common.type == PacketType::hello || common.type == PacketType::hello_ack ||
                        common.type == PacketType::retry || common.type == PacketType::reset;
  std::uint32_t seed = wire::kUnseeded;
  if (!unseeded) {
    const Handshake& context = handshakes.back();
    common.dst_ctx = to_b ? context.id_at_b : context.id_at_a;
    common.flags |= wire::kFlagFullCheck;
    seed = to_b ? context.seed_to_b : context.seed_to_a;
  }
  if (common.tx_time == 0) common.tx_time = wire::to_wire_time(now_ns);
  wire::encode(packet.bytes, common);
  write_body();
  wire::seal(packet.bytes, {}, seed);
}

CorePair::Packet CorePair::forge_ack(bool to_b, std::uint32_t cumulative, wire::AckHeader ack,
                                     std::span<const std::uint64_t> received) {
  wire::CommonHeader common;
  common.type = wire::PacketType::ack;
  common.psn = cumulative;
  ack.bitmap_base = static_cast<std::int16_t>(-static_cast<std::int32_t>(cumulative % 64));
  Packet packet;
  packet.at_ns = now_ns;
  packet.bytes.resize(wire::kAckBytes + 8 * received.size());
  seal(to_b, common, packet, [&] { wire::encode(packet.bytes, ack, received, {}); });
  return packet;
}

void CorePair::turn(Side& side, Side& other) {
  while (!side.inbox.empty() && side.inbox.front().at_ns <= now_ns) {
    const Packet packet = std::move(side.inbox.front());
    side.inbox.pop_front();
    deliver(side, packet);
  }
  if (Instant{now_ns} >= side.core->next_deadline()) {
    counted([&] { side.core->handle_timeout(Instant{now_ns}); });
  }
  std::array<TxDatagram, 64> out;
  const auto transmit = [&] {
    return counted([&] { return side.core->poll_transmit(Instant{now_ns}, out); });
  };
  for (std::size_t n = transmit(); n > 0; n = transmit()) {
    for (const TxDatagram& datagram : std::span(out).first(n)) {
      Packet packet;
      packet.at_ns = now_ns + kDelayNs;
      packet.ecn = datagram.ecn;
      packet.bytes.assign(datagram.header.begin(), datagram.header.begin() + datagram.header_bytes);
      for (std::size_t i = 0; i < datagram.payload_count; ++i) {
        const Segment& piece = datagram.payload[i];
        packet.bytes.insert(packet.bytes.end(), piece.data, piece.data + piece.bytes);
      }
      transcript.insert(transcript.end(), packet.bytes.begin(), packet.bytes.end());
      note_handshake(&other == &b, packet);
      if (!filter || filter(&other == &b, packet)) other.inbox.push_back(std::move(packet));
    }
  }
  std::array<Event, 32> events;
  const auto take_events = [&] { return counted([&] { return side.core->poll_events(events); }); };
  for (std::size_t n = take_events(); n > 0; n = take_events()) {
    for (const Event& event : std::span(events).first(n)) {
      if (event.kind != Event::Kind::message) {
        side.events.push_back(event);
        continue;
      }
      std::vector<std::byte> message(event.bytes);
      auto copied = counted([&] { return side.core->copy_out(event.message, 0, message); });
      if (copied.value() != message.size()) std::abort();
      side.messages.push_back(std::move(message));
      if (side.hold) {
        side.loans.push_back(event.message);
      } else if (counted([&] { return side.core->release(Instant{now_ns}, event.message); }) !=
                 Errc::ok) {
        std::abort();
      }
    }
  }
  std::array<BufferId, 64> returned;
  const auto take_returned = [&] {
    return counted([&] { return side.core->poll_release(returned); });
  };
  for (std::size_t n = take_returned(); n > 0; n = take_returned()) {
    for (const BufferId buffer : std::span(returned).first(n)) {
      if (side.buffers.erase(buffer) != 1) std::abort();  // returned twice, or never lent
    }
  }
}

bool CorePair::run(std::uint64_t ms, const std::function<bool()>& done) {
  const std::uint64_t end = now_ns + ms * 1'000'000;
  while (now_ns < end) {
    turn(a, b);
    turn(b, a);
    if (done()) return true;
    std::uint64_t next = end;
    for (Side* side : {&a, &b}) {
      if (!side->inbox.empty()) next = std::min(next, side->inbox.front().at_ns);
      next = std::min(next, side->core->next_deadline().ns);
    }
    now_ns = std::max(now_ns + 1'000, next);
  }
  return done();
}

}  // namespace srd::core
