// SPDX-License-Identifier: Apache-2.0
// The contract in core.hpp, line by line, and what the core promises about its own tables.
#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "unit/core_pair.hpp"

namespace srd::core {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  Prng prng(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(prng.next());
  return out;
}

/// A few messages each way over a lossy wire; returns what was on the wire.
std::vector<std::byte> lossy_run(std::uint64_t seed) {
  CorePair pair;
  Prng prng(seed);
  pair.filter = [&](bool, const CorePair::Packet&) { return !prng.chance(0.05); };
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 20; ++i) payloads.push_back(pattern(1 + i * i * 400, i));
  for (const auto& payload : payloads) {
    EXPECT_EQ(pair.send(pair.a, payload), Errc::ok);
    EXPECT_EQ(pair.send(pair.b, payload), Errc::ok);
  }
  EXPECT_TRUE(pair.run(5000, [&] {
    return pair.a.messages.size() == payloads.size() && pair.b.messages.size() == payloads.size();
  }));
  const auto shorter = [](const auto& x, const auto& y) { return x.size() < y.size(); };
  std::sort(pair.a.messages.begin(), pair.a.messages.end(), shorter);
  std::sort(pair.b.messages.begin(), pair.b.messages.end(), shorter);
  EXPECT_EQ(pair.a.messages, payloads);
  EXPECT_EQ(pair.b.messages, payloads);
  return pair.transcript;
}

TEST(CoreContractTest, SameInputsGiveTheSameBytesOnTheWire) {
  const auto first = lossy_run(7);
  EXPECT_EQ(first, lossy_run(7));
  EXPECT_NE(first, lossy_run(8));
}

TEST(CoreContractTest, CallsMayShareOneInstant) {
  CorePair pair;
  const auto payload = pattern(100'000, 1);
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  std::array<TxDatagram, 8> out;
  const Instant now{pair.now_ns};
  EXPECT_GT(pair.a.core->poll_transmit(now, out), 0U);
  pair.a.core->handle_timeout(now);
  pair.a.core->handle_timeout(now);
  EXPECT_EQ(pair.a.core->poll_transmit(now, out), 0U);
}

TEST(CoreContractTest, IdleCoreHasNoDeadlineAndNothingToSend) {
  CorePair pair;
  EXPECT_EQ(pair.a.core->next_deadline(), kNever);
  const auto payload = pattern(5000, 1);
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  pair.run(200);
  ASSERT_EQ(pair.b.messages.size(), 1U);
  EXPECT_FALSE(pair.a.core->has_transmit());
  EXPECT_EQ(pair.a.core->next_deadline(), kNever);
  EXPECT_EQ(pair.b.core->next_deadline(), kNever);
}

TEST(CoreContractTest, WhatWasPolledDoesNotComeAgain) {
  CorePair pair;
  const auto payload = pattern(5000, 1);
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  ASSERT_TRUE(pair.run(50, [&] { return !pair.b.messages.empty(); }));
  pair.run(50);
  std::array<TxDatagram, 8> datagrams;
  std::array<Event, 8> events;
  std::array<BufferId, 8> buffers;
  for (CorePair::Side* side : {&pair.a, &pair.b}) {
    EXPECT_EQ(side->core->poll_transmit(Instant{pair.now_ns}, datagrams), 0U);
    EXPECT_EQ(side->core->poll_release(buffers), 0U);
    EXPECT_EQ(side->core->poll_events(events), 0U);
    EXPECT_TRUE(side->buffers.empty()) << "each buffer came back";
  }
}

TEST(CoreContractTest, NothingIsAllocatedAfterCreation) {
  Config config = CorePair::config();
  config.limits.receive_pool_bytes = 1 << 20;
  config.limits.max_message_bytes = 256 << 10;
  CorePair pair(config);
  Prng prng(5);
  pair.filter = [&](bool, const CorePair::Packet&) { return !prng.chance(0.02); };
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 60; ++i) payloads.push_back(pattern(10 + i * i * 60, i));
  pair.b.hold = true;  // the pool fills: flow control has its part, too
  for (const auto& payload : payloads) {
    ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
    ASSERT_EQ(pair.send(pair.b, payload), Errc::ok);
  }
  pair.run(200);
  pair.b.hold = false;
  for (const MessageId loan : pair.b.loans) {
    ASSERT_EQ(pair.b.core->release(Instant{pair.now_ns}, loan), Errc::ok);
  }
  ASSERT_TRUE(pair.run(5000, [&] {
    return pair.a.messages.size() == payloads.size() && pair.b.messages.size() == payloads.size();
  }));
  ASSERT_GT(pair.a.core->counters().tx_retransmits.value(), 0U);
  pair.run(200);
  EXPECT_EQ(pair.core_allocations, 0U);
  EXPECT_GT(test::allocation_count(), 0U) << "the counter itself works";
}

TEST(CoreContractTest, TimersServeABoundedNumberOfContextsPerCall) {
  constexpr std::size_t kPeers = 300;
  NumberedPaths paths;
  auto core = Core::create(CorePair::config(), paths).value();
  const auto payload = pattern(10, 1);
  const Segment piece{payload.data(), 10, kNoRegion};
  Instant now{1'000'000};
  for (std::size_t i = 0; i < kPeers; ++i) {
    Address address{};
    address.family = 4;
    address.port = static_cast<std::uint16_t>(1000 + i);
    address.bytes[0] = 10;
    SendRequest request;
    request.peer = core->add_peer(now, address).value();
    request.payload = std::span(&piece, 1);
    ASSERT_EQ(core->send(now, request), Errc::ok);
  }
  std::array<TxDatagram, 64> out;
  const auto transmit_all = [&] {
    std::size_t sent = 0;
    while (const std::size_t n = core->poll_transmit(now, out)) sent += n;
    return sent;
  };
  ASSERT_EQ(transmit_all(), kPeers) << "a HELLO to each";
  now.ns += 5'000'000;  // nobody answered
  std::size_t again = 0, calls = 0;
  while (core->next_deadline() <= now) {
    ++calls;
    core->handle_timeout(now);
    const std::size_t sent = transmit_all();
    EXPECT_LE(sent, kPeers / 2) << "call " << calls;
    again += sent;
    ASSERT_LE(calls, kPeers) << "each call makes progress";
  }
  EXPECT_EQ(again, kPeers);
  EXPECT_GT(calls, 1U);
}

TEST(CoreContractTest, FullQueueSaysSoAndQueuesNothing) {
  Config config = CorePair::config();
  config.limits.send_messages = 4;
  CorePair pair(config);
  const auto payload = pattern(3000, 1);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  EXPECT_EQ(pair.send(pair.a, payload), Errc::would_block);
  EXPECT_EQ(pair.send(pair.a, pattern(10, 1)), Errc::would_block);
  ASSERT_TRUE(pair.run(1000, [&] { return pair.a.events.size() >= 5; }));  // 4 sends, 1 peer up
  EXPECT_EQ(pair.b.messages.size(), 4U);
  EXPECT_EQ(pair.send(pair.a, payload), Errc::ok);
}

TEST(CoreContractTest, PayloadIsReferencedUntilSendDoneAndNotAfter) {
  CorePair pair;
  auto payload = pattern(200'000, 3);
  const auto original = payload;
  ASSERT_EQ(pair.send(pair.a, payload, 42), Errc::ok);
  const auto done = [&] {
    return std::any_of(pair.a.events.begin(), pair.a.events.end(),
                       [](const Event& e) { return e.kind == Event::Kind::send_done; });
  };
  ASSERT_TRUE(pair.run(1000, done));
  std::fill(payload.begin(), payload.end(), std::byte{0});
  pair.run(100);
  ASSERT_EQ(pair.b.messages.size(), 1U);
  EXPECT_EQ(pair.b.messages[0], original);
}

TEST(CoreContractTest, AsynchronousDeviceDelaysTheCompletion) {
  Config config = CorePair::config();
  config.driver.tx_async = true;
  CorePair pair(config);
  const auto payload = pattern(3000, 3);
  ASSERT_EQ(pair.send(pair.a, payload, 1), Errc::ok);
  pair.run(50);
  ASSERT_EQ(pair.b.messages.size(), 1U);
  for (const Event& event : pair.a.events) EXPECT_NE(event.kind, Event::Kind::send_done);
}

TEST(CoreContractTest, UnreadMessagesHoldTheSenderBack) {
  Config config = CorePair::config();
  config.limits.receive_pool_bytes = 1 << 20;
  config.limits.max_message_bytes = 256 << 10;
  CorePair pair(config);
  pair.b.hold = true;
  const auto payload = pattern(64 << 10, 3);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  pair.run(300);
  EXPECT_LE(pair.b.core->counters().receive_pool_used_bytes.value(), 1U << 20);
  EXPECT_LT(pair.b.messages.size(), 64U);
  EXPECT_EQ(pair.b.core->counters().rx_rejected_messages.value(), 0U);  // flow control, no refusals
  pair.b.hold = false;
  for (const MessageId loan : pair.b.loans) {
    ASSERT_EQ(pair.b.core->release(Instant{pair.now_ns}, loan), Errc::ok);
  }
  EXPECT_TRUE(pair.run(3000, [&] { return pair.b.messages.size() == 64U; }));
}

TEST(CoreContractTest, ReleasingTwiceIsAnError) {
  CorePair pair;
  pair.b.hold = true;
  const auto payload = pattern(100, 3);
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  ASSERT_TRUE(pair.run(100, [&] { return !pair.b.loans.empty(); }));
  const Instant now{pair.now_ns};
  EXPECT_EQ(pair.b.core->release(now, pair.b.loans[0]), Errc::ok);
  EXPECT_EQ(pair.b.core->release(now, pair.b.loans[0]), Errc::invalid_argument);
  EXPECT_EQ(pair.b.core->release(now, MessageId{0}), Errc::invalid_argument);
  EXPECT_EQ(pair.b.core->release(now, MessageId{UINT64_MAX}), Errc::invalid_argument);
}

TEST(CoreContractTest, RandomBytesAreCountedDrops) {
  CorePair pair;
  ASSERT_EQ(pair.send(pair.a, pattern(10, 1)), Errc::ok);
  pair.run(50);
  Prng prng(11);
  for (int i = 0; i < 20000; ++i) {
    CorePair::Packet packet;
    packet.bytes = pattern(prng.below(1500), prng.next());
    // Make the common header plausible now and then, so that deeper checks are reached.
    if (packet.bytes.size() > 20 && prng.chance(0.8)) {
      packet.bytes[0] = static_cast<std::byte>(prng.below(16));
      packet.bytes[2] = static_cast<std::byte>(prng.below(64));
    }
    pair.deliver(pair.b, packet);
    std::array<BufferId, 64> returned;
    while (pair.b.core->poll_release(returned) > 0) {
    }
  }
  const Counters& counters = pair.b.core->counters();
  EXPECT_GT(counters.rx_malformed.value() + counters.rx_unknown_context.value() +
                counters.rx_bad_check.value(),
            19'000U);
  EXPECT_EQ(counters.rx_messages.value(), 1U);
}

TEST(CoreContractTest, SmallMessagesShareDatagramsAndAcksRide) {
  CorePair pair;
  const auto payload = pattern(64, 1);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  ASSERT_TRUE(pair.run(1000, [&] { return pair.b.messages.size() == 500; }));
  EXPECT_LT(pair.a.core->counters().tx_datagrams.value(), 100U);
  // Ping-pong: the answers carry the acknowledgements.
  pair.run(100);
  const std::uint64_t acks = pair.b.core->counters().tx_acks.value();
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t at_b = pair.b.messages.size(), at_a = pair.a.messages.size();
    ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
    ASSERT_TRUE(pair.run(10, [&] { return pair.b.messages.size() > at_b; }));
    ASSERT_EQ(pair.send(pair.b, payload), Errc::ok);
    ASSERT_TRUE(pair.run(10, [&] { return pair.a.messages.size() > at_a; }));
  }
  EXPECT_LT(pair.b.core->counters().tx_acks.value() - acks, 10U);
}

TEST(CoreContractTest, RefusedDatagramIsNeitherLostNorRetransmitted) {
  CorePair pair;
  const auto payload = pattern(100'000, 1);
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  ASSERT_TRUE(pair.run(100, [&] { return pair.b.messages.size() == 1; }));
  ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
  std::array<TxDatagram, 8> out;
  const Instant now{pair.now_ns};
  const std::size_t n = pair.a.core->poll_transmit(now, out);
  ASSERT_GT(n, 0U);
  for (std::size_t i = 0; i < n; ++i) {
    const TxDone refusal{out[i].cookie, Errc::would_block};
    pair.a.core->handle_tx_done(now, std::span(&refusal, 1));
  }
  ASSERT_TRUE(pair.run(1000, [&] { return pair.b.messages.size() == 2; }));
  EXPECT_EQ(pair.b.messages[1], payload);
  EXPECT_EQ(pair.a.core->counters().tx_refused.value(), n);
  EXPECT_EQ(pair.a.core->counters().tx_retransmits.value(), 0U);
}

TEST(CoreContractTest, ForgottenHandleNamesNoMessageOfItsNextOwner) {
  CorePair pair;
  const auto payload = pattern(100, 1);
  ASSERT_EQ(pair.send(pair.b, payload), Errc::ok);
  pair.run(20);
  ASSERT_EQ(pair.a.messages.size(), 1U);
  // One more message arrives at a but is not polled before the handle goes to another address.
  ASSERT_EQ(pair.a.events.size(), 1U);  // the peer that came by itself
  const PeerId old = pair.a.events[0].peer;
  ASSERT_EQ(pair.send(pair.b, payload), Errc::ok);
  std::array<TxDatagram, 64> out;
  std::vector<CorePair::Packet> packets;
  const std::size_t n = pair.b.core->poll_transmit(Instant{pair.now_ns}, out);
  for (const TxDatagram& datagram : std::span(out).first(n)) {
    CorePair::Packet packet;
    packet.bytes.assign(datagram.header.begin(), datagram.header.begin() + datagram.header_bytes);
    for (std::size_t i = 0; i < datagram.payload_count; ++i) {
      const Segment& piece = datagram.payload[i];
      packet.bytes.insert(packet.bytes.end(), piece.data, piece.data + piece.bytes);
    }
    pair.deliver(pair.a, packet);
  }
  ASSERT_TRUE(pair.a.core->has_events());
  ASSERT_EQ(pair.a.core->remove_peer(Instant{pair.now_ns}, old), Errc::ok);
  Address other{};
  other.family = 4;
  other.port = 99;
  other.bytes[0] = 11;
  const PeerId reused = pair.a.core->add_peer(Instant{pair.now_ns}, other).value();
  std::array<Event, 16> events;
  const std::size_t polled = pair.a.core->poll_events(events);
  bool found = false;
  for (const Event& event : std::span(events).first(polled)) {
    if (event.kind != Event::Kind::message) continue;
    found = true;
    EXPECT_NE(event.peer, reused);
    EXPECT_EQ(event.peer, kNoPeer);
  }
  EXPECT_TRUE(found);
}

TEST(CoreContractTest, ClosingTellsEachOfManyPeers) {
  constexpr std::uint32_t kPeers = 100;
  NumberedPaths paths;
  Config config = CorePair::config();
  auto core = std::move(Core::create(config, paths)).value();
  // Peers of which each has sent something, so that CLOSE comes with a last ACK: three datagrams
  // each.
  std::vector<std::unique_ptr<CorePair::Side>> sides;
  Instant now{1'000'000};
  std::array<TxDatagram, 128> out;
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    auto side = std::make_unique<CorePair::Side>();
    Config peer_config = CorePair::config();
    peer_config.incarnation = 100 + i;
    peer_config.endpoint_id[0] = 7;
    peer_config.endpoint_id[1] = static_cast<std::uint8_t>(i);
    peer_config.seed = 100 + i;
    side->core = std::move(Core::create(peer_config, side->paths)).value();
    sides.push_back(std::move(side));
  }
  const auto to_bytes = [](const TxDatagram& datagram) {
    std::vector<std::byte> bytes(datagram.header.begin(),
                                 datagram.header.begin() + datagram.header_bytes);
    for (std::size_t i = 0; i < datagram.payload_count; ++i) {
      const Segment& piece = datagram.payload[i];
      bytes.insert(bytes.end(), piece.data, piece.data + piece.bytes);
    }
    return bytes;
  };
  const auto give = [&](Core& to, std::vector<std::byte> bytes, std::uint32_t from) {
    Address source{4, 0, static_cast<std::uint16_t>(1000 + from), 0, {10}, 0};
    RxDatagram datagram;
    datagram.data = bytes.data();
    datagram.bytes = static_cast<std::uint32_t>(bytes.size());
    datagram.buffer = BufferId{0};
    datagram.flow = 1000 + from * 64U + std::to_integer<std::uint32_t>(bytes[2]);
    datagram.source = &source;
    to.handle_datagrams(now, std::span(&datagram, 1));
    std::array<BufferId, 8> returned;
    while (to.poll_release(returned) > 0) {
    }
  };
  // One peer after the other, so that answers have one addressee.
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    Core& peer = *sides[i]->core;
    Address server{};
    server.family = 4;
    server.port = 1;
    server.bytes[0] = 10;
    const PeerId handle = peer.add_peer(now, server).value();
    const auto payload = pattern(10, i);
    const Segment piece{payload.data(), 10, kNoRegion};
    SendRequest request;
    request.peer = handle;
    request.payload = std::span(&piece, 1);
    ASSERT_EQ(peer.send(now, request), Errc::ok);
    for (int round = 0; round < 6; ++round) {
      std::size_t n = peer.poll_transmit(now, out);
      std::vector<std::vector<std::byte>> flying;
      for (std::size_t k = 0; k < n; ++k) flying.push_back(to_bytes(out[k]));
      for (auto& bytes : flying) give(*core, bytes, i);
      n = core->poll_transmit(now, out);
      flying.clear();
      for (std::size_t k = 0; k < n; ++k) flying.push_back(to_bytes(out[k]));
      for (auto& bytes : flying) give(peer, bytes, i);
      now.ns += 10'000;
    }
  }
  ASSERT_EQ(core->counters().rx_messages.value(), kPeers);
  core->close(now);
  std::size_t closes = 0;
  std::set<std::uint32_t> told;
  for (std::size_t n = core->poll_transmit(now, out); n > 0; n = core->poll_transmit(now, out)) {
    for (std::size_t k = 0; k < n; ++k) {
      wire::CommonHeader header;
      const auto bytes = to_bytes(out[k]);
      if (!wire::decode(bytes, header) || header.type != wire::PacketType::close) continue;
      ++closes;
      told.insert(header.dst_ctx);
    }
  }
  EXPECT_GE(closes, kPeers);
  EXPECT_GE(told.size(), kPeers - 1);  // two ids of unrelated peers may coincide
}

TEST(CoreContractTest, LimitsOutOfRangeAreRefusedAtCreation) {
  NumberedPaths paths;
  for (const auto& spoil : std::vector<std::function<void(Config&)>>{
           [](Config& c) { c.incarnation = 0; }, [](Config& c) { c.limits.paths = 0; },
           [](Config& c) { c.limits.paths = 65; }, [](Config& c) { c.limits.window_psns = 1000; },
           [](Config& c) { c.limits.window_psns = 16384; },
           [](Config& c) { c.limits.rejections_per_peer = 63; },
           [](Config& c) { c.limits.rejections_per_peer = 257; },
           [](Config& c) { c.limits.rejections = 255; },
           [](Config& c) { c.limits.max_message_bytes = 64U << 20; },
           [](Config& c) { c.driver.datagram_bytes_max = 500; }}) {
    Config config = CorePair::config();
    spoil(config);
    EXPECT_EQ(Core::create(config, paths).errc(), Errc::invalid_argument);
  }
}

}  // namespace
}  // namespace srd::core
