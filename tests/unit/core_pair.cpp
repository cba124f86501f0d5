// SPDX-License-Identifier: Apache-2.0
#include "unit/core_pair.hpp"

#include <algorithm>

namespace srd::core {

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
  Address address{};
  address.family = 4;
  address.port = &side == &a ? 2 : 1;
  address.bytes[0] = 10;
  side.peer = side.core->add_peer(Instant{now_ns}, address).value();
}

Errc CorePair::send(Side& from, std::span<const std::byte> payload, std::uint64_t user_data) {
  const Segment piece{payload.data(), static_cast<std::uint32_t>(payload.size()), kNoRegion};
  SendRequest request;
  request.peer = from.peer;
  request.payload = std::span(&piece, 1);
  request.user_data = user_data;
  return from.core->send(Instant{now_ns}, request);
}

void CorePair::deliver(Side& to, const Packet& packet) {
  static constexpr Address kSource{4, 0, 9, 0, {10}, 0};
  const BufferId buffer{to.next_buffer++};
  std::vector<std::byte>& memory = to.buffers[buffer] = packet.bytes;
  RxDatagram datagram;
  datagram.data = memory.data();
  datagram.bytes = static_cast<std::uint32_t>(memory.size());
  datagram.buffer = buffer;
  datagram.arrived = Instant{now_ns};
  datagram.flow = memory.size() > 2 ? 1 + std::to_integer<std::uint64_t>(memory[2]) : 0;
  datagram.source = &kSource;
  datagram.ecn = packet.ecn;
  to.core->handle_datagrams(Instant{now_ns}, std::span(&datagram, 1));
}

void CorePair::turn(Side& side, Side& other) {
  while (!side.inbox.empty() && side.inbox.front().at_ns <= now_ns) {
    const Packet packet = std::move(side.inbox.front());
    side.inbox.pop_front();
    deliver(side, packet);
  }
  if (Instant{now_ns} >= side.core->next_deadline()) side.core->handle_timeout(Instant{now_ns});
  std::array<TxDatagram, 64> out;
  for (std::size_t n = side.core->poll_transmit(Instant{now_ns}, out); n > 0;
       n = side.core->poll_transmit(Instant{now_ns}, out)) {
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
      if (!filter || filter(&other == &b, packet)) other.inbox.push_back(std::move(packet));
    }
  }
  std::array<Event, 32> events;
  for (std::size_t n = side.core->poll_events(events); n > 0; n = side.core->poll_events(events)) {
    for (const Event& event : std::span(events).first(n)) {
      if (event.kind != Event::Kind::message) {
        side.events.push_back(event);
        continue;
      }
      std::vector<std::byte> message(event.bytes);
      if (side.core->copy_out(event.message, 0, message).value() != message.size()) std::abort();
      side.messages.push_back(std::move(message));
      if (side.hold) {
        side.loans.push_back(event.message);
      } else if (side.core->release(Instant{now_ns}, event.message) != Errc::ok) {
        std::abort();
      }
    }
  }
  std::array<BufferId, 64> returned;
  for (std::size_t n = side.core->poll_release(returned); n > 0;
       n = side.core->poll_release(returned)) {
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
