// SPDX-License-Identifier: Apache-2.0
// Set-up of contexts: lost, late, repeated, crossing and forged handshakes.
#include <algorithm>
#include <array>
#include <vector>

#include "srd/wire/check.hpp"

#include "sim/support.hpp"

namespace srd::sim {
namespace {

using SimOpenTest = SimTest;

TEST_F(SimOpenTest, SimultaneousOpenDeliversOnce) {
  build();
  send_many(a, b, 2000, 50);
  send_many(b, a, 2000, 50);
  settle();
  EXPECT_EQ(world().checker().delivered(), 100U);
}

TEST_F(SimOpenTest, SimultaneousOpenWithLateAnswersDeliversOnce) {
  build();
  Rule late;
  late.match = {.type = PacketType::hello_ack};
  late.remaining = 1;
  late.delay_ns = 20 * kMs;
  world().add_rule(late);
  send_many(a, b, 100'000, 20);
  send_many(b, a, 100'000, 20);
  for (TimeNs at = kMs; at < 60 * kMs; at += 3 * kMs) {
    world().after(at, [this] {
      send(a, b, 3000);
      send(b, a, 3000);
    });
  }
  world().run_for(60 * kMs);
  settle();
  EXPECT_EQ(world().checker().succeeded(), 80U);
}

TEST_F(SimOpenTest, LostHelloIsRepeated) {
  build();
  const Rule& lost = world().drop_next({.type = PacketType::hello, .from = a}, 3);
  const MessageNumber number = send(a, b, 100);
  settle();
  EXPECT_EQ(lost.hits, 3U);
  EXPECT_LT(message(number).completed_at, 200 * kMs);
}

TEST_F(SimOpenTest, LostHelloAckIsRepeated) {
  build();
  const Rule& lost = world().drop_next({.type = PacketType::hello_ack, .from = b}, 3);
  const MessageNumber number = send(a, b, 100);
  settle();
  EXPECT_EQ(lost.hits, 3U);
  EXPECT_LT(message(number).completed_at, 200 * kMs);
}

TEST_F(SimOpenTest, ResponderStaysSilentUntilTheThirdLeg) {
  build();
  // Everything from a after its HELLO is lost: b must not send what it has for a.
  world().drop_next(
      {.from = a,
       .to = b,
       .where = [](const PacketView& packet) { return packet.type() != PacketType::hello; }},
      UINT64_MAX);
  const Rule& answers = world().record_next({.from = b, .to = a}, UINT64_MAX);
  const Rule& hellos = world().record_next({.type = PacketType::hello, .from = a}, UINT64_MAX);
  send(a, b, 100);
  world().run_for(500 * kMs);
  EXPECT_LE(answers.hits, hellos.hits);
  for (const RecordedPacket& packet : answers.recorded) {
    EXPECT_EQ(static_cast<unsigned>(packet.bytes[0]) & 15U,
              static_cast<unsigned>(PacketType::hello_ack));
    EXPECT_LE(packet.bytes.size(), hellos.recorded[0].bytes.size()) << "no amplification";
  }
  world().excuse_outage();
}

TEST_F(SimOpenTest, SpoofedHellosGetNoMoreThanTheyPaidFor) {
  build();
  const HostId victim = world().add_host(fast_host());
  const Rule& hello = world().record_next({.type = PacketType::hello, .from = a});
  warm_up();
  ASSERT_EQ(hello.recorded.size(), 1U);
  const Rule& reflected = world().record_next({.from = b, .to = victim}, UINT64_MAX);
  constexpr std::size_t kForged = 1000;
  Prng prng(3);
  for (std::size_t i = 0; i < kForged; ++i) {
    std::vector<std::byte> forged = hello.recorded[0].bytes;
    forged[20] = static_cast<std::byte>(prng.next());  // another context, endpoint and nonce
    for (std::size_t at = 40; at < 56; ++at) forged[at] = static_cast<std::byte>(prng.next());
    for (std::size_t at = 72; at < 88; ++at) forged[at] = static_cast<std::byte>(prng.next());
    wire::seal(forged, {}, wire::kUnseeded);
    Address source = world().host(victim).address();
    source.port = static_cast<std::uint16_t>(50'000 + i % 500);
    world().inject(source, world().host(b).address(), forged, i * 10 * kUs);
  }
  world().run_for(200 * kMs);
  std::uint64_t bytes = 0;
  for (const RecordedPacket& packet : reflected.recorded) bytes += packet.bytes.size();
  EXPECT_LE(reflected.hits, kForged);
  EXPECT_LE(bytes, kForged * hello.recorded[0].bytes.size());
  // The flood fills no table that a living peer needs.
  const HostId late = world().add_host(fast_host());
  const MessageNumber number = send(late, b, 1000);
  send(a, b, 1000);
  world().run_for(3 * kSecond);
  EXPECT_EQ(message(number).status, Errc::ok);
  settle();
}

TEST_F(SimOpenTest, DataBeforeHelloAckIsHarmless) {
  build();
  Rule late;
  late.match = {.type = PacketType::hello_ack, .from = b};
  late.remaining = 2;
  late.delay_ns = 5 * kMs;
  world().add_rule(late);
  send_many(a, b, 5000, 10);
  send_many(b, a, 5000, 10);
  settle();
}

TEST_F(SimOpenTest, LostThirdLegIsRepeated) {
  build();
  const Rule& lost = world().drop_next(
      {.from = a,
       .where = [](const PacketView& packet) { return packet.type() != PacketType::hello; }},
      4);
  const MessageNumber number = send(a, b, 100);
  settle();
  EXPECT_EQ(lost.hits, 4U);
  EXPECT_EQ(message(number).status, Errc::ok);
}

TEST_F(SimOpenTest, BothEndsLearnTheRoundTripFromTheHandshake) {
  FabricConfig far = quiet_fabric();
  far.link.delay_ns = 500 * kUs;
  build(far);
  send(a, b, 100);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  srd_peer_info info{};
  ASSERT_TRUE(core(a).peer_info(world().host(a).app().peer(b), info));
  EXPECT_GT(info.rtt_ns, 1 * kMs);
  EXPECT_LT(info.rtt_ns, 4 * kMs);
  EXPECT_EQ(counters(a).tx_retransmits.value() + counters(a).rto_probes.value(), 0U);
  settle();
}

TEST_F(SimOpenTest, HundredsOfPeersOpenAtOnce) {
  FabricConfig fabric = quiet_fabric();
  HostConfig client = fast_host();
  client.limits.peers = 8;
  client.limits.contexts = 8;
  client.limits.receive_messages = 256;
  client.limits.send_messages = 256;
  client.limits.sent_chunks = 64;
  client.limits.slices = 512;
  client.limits.bundles = 64;
  build(fabric);
  std::vector<HostId> clients;
  for (int i = 0; i < 150; ++i) clients.push_back(world().add_host(client));
  for (const HostId id : clients) {
    send(id, b, 200);
    send(id, b, 5000);
  }
  settle();
  EXPECT_EQ(world().checker().succeeded(), 300U);
}

TEST_F(SimOpenTest, NobodyThereIsToldInTime) {
  build();
  world().crash(b);
  const MessageNumber number = send(a, b, 100);
  world().run_for(5 * kSecond);
  EXPECT_EQ(message(number).status, Errc::timed_out);
  EXPECT_LT(message(number).completed_at, 4 * kSecond);
}

// A firewall lets pass what leaves or enters by the service port only: there is one path, which
// must be found and kept.
TEST_F(SimOpenTest, OnePortFirewallLeavesOnePath) {
  build();
  const std::uint16_t port = world().host(a).address().port;
  world().drop_next(
      {.from = a, .where = [port](const PacketView& packet) { return packet.source.port != port; }},
      UINT64_MAX);
  const MessageNumber first = send(a, b, 100'000);
  const MessageNumber back = world().send(b, SendSpec{.to = a, .bytes = 5000});
  world().run_for(3 * kSecond);
  start_flow(a, b, 20'000);
  world().run_for(100 * kMs);
  std::array<srd_path_info, 32> paths{};
  const std::size_t count = world().host(a).core().path_info(world().host(a).app().peer(b), paths);
  const auto good = std::count_if(paths.begin(), paths.begin() + static_cast<int>(count),
                                  [](const srd_path_info& p) { return p.state == SRD_PATH_GOOD; });
  EXPECT_EQ(good, 1);
  settle();
  EXPECT_EQ(message(first).status, Errc::ok);
  EXPECT_EQ(message(back).status, Errc::ok);
}

}  // namespace
}  // namespace srd::sim
