// SPDX-License-Identifier: Apache-2.0
// Paths that die, lose, lag or move: found, left, tried again; living ones are kept.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "srd/wire/packet.hpp"

#include "sim/support.hpp"

namespace srd::sim {
namespace {

class SimPathTest : public SimTest {
 protected:
  void kill_one_way(HostId from, std::uint32_t path, bool dead = true) {
    fabric().set_uplink_dead(fabric().leaf_of(from), path, dead);
  }

  std::uint64_t swallowed(HostId from, std::uint32_t path) {
    return fabric().up(fabric().leaf_of(from), path).counters.swallowed;
  }
};

TEST_F(SimPathTest, EqualPathsAreFilled) {
  std::vector<double> rates;
  for (variant = 0; variant < 5; ++variant) {
    build();
    start_flow(a, b, 256U << 10);
    world().run_for(100 * kMs);
    rates.push_back(goodput_bps(b, 100 * kMs) / kPathBps);
    settle();
    TearDown();
  }
  std::sort(rates.begin(), rates.end());
  EXPECT_GT(rates[0], 3.4);
  EXPECT_GT(rates[2], 3.6);
}

// Slow paths, so that long runs are cheap, and fewer or more slots than paths.
class SimFewSlotsTest : public SimPathTest {
 protected:
  static constexpr std::uint64_t kRateBps = 100'000'000;
  static constexpr double kSlowPathBps = kPathBps * (kRateBps / 1e9);

  void start(std::uint32_t slots) {
    FabricConfig eight = quiet_fabric();
    eight.paths = 8;
    eight.link.rate_bps = kRateBps;
    HostConfig host = fast_host();
    host.limits.paths = slots;
    build(eight, host, host);
    start_flow(a, b, 256U << 10);
    world().run_for(50 * kMs);
  }

  /// How many paths carry at least a tenth of what they could.
  std::size_t paths_in_use() {
    const auto carried = [&](std::uint32_t path) {
      return fabric().up(fabric().leaf_of(a), path).counters.bytes;
    };
    constexpr TimeNs kSpan = 50 * kMs;
    std::array<std::uint64_t, 8> before{};
    for (std::uint32_t p = 0; p < 8; ++p) before[p] = carried(p);
    world().run_for(kSpan);
    std::size_t used = 0;
    for (std::uint32_t p = 0; p < 8; ++p) {
      if (carried(p) - before[p] > kRateBps / 8 * kSpan / kSecond / 10) ++used;
    }
    return used;
  }
};

// By chance several of few slots share a path. The slot with the lowest rate moves until each has a
// path of its own; the search for healed paths then goes on at the price of a few per cent.
TEST_F(SimFewSlotsTest, SlotsThatShareAPathMoveToFreeOnes) {
  std::size_t shared = 0;
  for (variant = 0; variant < 8; ++variant) {
    start(4);
    if (paths_in_use() < 4) ++shared;
    world().run_for(2 * kSecond);
    EXPECT_GT(goodput_bps(b, 3 * kSecond), 0.85 * 4 * kSlowPathBps) << "variant " << variant;
    settle();
    TearDown();
  }
  EXPECT_GT(shared, 0U) << "chance was never against it: other variants are needed";
}

// With twice as many slots as paths a path has none often enough. Exploration goes on until each
// has: it tries a way every half second, and one of eight is the right one.
TEST_F(SimFewSlotsTest, PathWithoutASlotIsFound) {
  std::size_t missed = 0;
  for (variant = 0; variant < 3; ++variant) {
    start(16);
    std::size_t used = paths_in_use();
    if (used < 8) ++missed;
    for (int tries = 0; used < 8 && tries < 60; ++tries) {
      world().run_for(450 * kMs);
      used = paths_in_use();
    }
    EXPECT_EQ(used, 8U) << "variant " << variant;
    world().run_for(500 * kMs);
    EXPECT_GT(goodput_bps(b, 200 * kMs), 0.85 * 8 * kSlowPathBps) << "variant " << variant;
    settle();
    TearDown();
  }
  EXPECT_GT(missed, 0U) << "chance was never against it: other variants are needed";
}

TEST_F(SimPathTest, SilentlyDeadPathIsLeft) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  fabric().set_path_dead(1, true);
  world().run_for(20 * kMs);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 0.9 * 3 * kPathBps);
  const std::uint64_t before = swallowed(a, 1);
  world().run_for(100 * kMs);
  EXPECT_LT(swallowed(a, 1) - before, 200U) << "only probes try it";
  settle();
}

TEST_F(SimPathTest, HealedPathIsUsedAgain) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  fabric().set_path_dead(1, true);
  world().run_for(100 * kMs);
  fabric().set_path_dead(1, false);
  world().run_for(2 * kSecond);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 0.85 * 4 * kPathBps);
  settle();
}

TEST_F(SimPathTest, DeadForwardPathAlone) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  kill_one_way(a, 2);
  world().run_for(20 * kMs);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 0.9 * 3 * kPathBps);
  settle();
}

TEST_F(SimPathTest, DeadReversePathOfPureReceiver) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  kill_one_way(b, 2);  // a quarter of the ACKs would vanish for ever
  world().run_for(50 * kMs);
  const std::uint64_t lost = swallowed(b, 2);
  const std::uint64_t acks = counters(b).tx_acks.value();
  const double rate = goodput_bps(b, 200 * kMs);
  EXPECT_GT(rate, 0.9 * 4 * kPathBps);
  EXPECT_LT(static_cast<double>(swallowed(b, 2) - lost),
            0.1 * static_cast<double>(counters(b).tx_acks.value() - acks));
  EXPECT_LE(counters(a).tx_spurious.value(), 20U);
  settle();
}

TEST_F(SimPathTest, ResponderLeavesADeadReversePath) {
  build();
  warm_up();  // a is the initiator
  start_flow(b, a, 64U << 10);
  world().run_for(100 * kMs);
  kill_one_way(b, 1);
  world().run_for(50 * kMs);
  EXPECT_GT(goodput_bps(a, 100 * kMs), 0.9 * 3 * kPathBps);
  settle();
}

TEST_F(SimPathTest, ResponderFillsAllPaths) {
  build();
  warm_up();
  start_flow(b, a, 256U << 10);
  world().run_for(100 * kMs);
  EXPECT_GT(goodput_bps(a, 100 * kMs), 3.4 * kPathBps);
  settle();
}

TEST_F(SimPathTest, EachPathInTurnDiesAndHeals) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  for (std::uint32_t path = 0; path < 4; ++path) {
    fabric().set_path_dead(path, true);
    world().run_for(10 * kMs);
    EXPECT_GT(goodput_bps(b, 50 * kMs), 0.7 * 3 * kPathBps) << "path " << path;
    fabric().set_path_dead(path, false);
    world().run_for(150 * kMs);
  }
  settle();
}

TEST_F(SimPathTest, RandomLossSuspectsNoPath) {
  FabricConfig lossy = quiet_fabric();
  lossy.link.loss = 0.005;  // 1 % over both hops
  build(lossy);
  start_flow(a, b, 64U << 10);
  world().run_for(300 * kMs);
  EXPECT_LE(counters(a).path_suspects.value(), 10U);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 0.9 * 4 * kPathBps);
  settle();
}

TEST_F(SimPathTest, PathThatLosesAThirdIsLeft) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  fabric().change_path(0, [](LinkConfig& link) { link.loss = 0.33; });
  world().run_for(200 * kMs);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 0.85 * 3 * kPathBps);
  settle();
}

TEST_F(SimPathTest, NatRebindingRecovers) {
  build();
  world().add_nat(a, 10 * kSecond);
  start_flow(a, b, 20'000);
  for (int i = 0; i < 5; ++i) {
    world().run_for(50 * kMs);
    world().rebind_nat(a);
  }
  world().run_for(100 * kMs);
  EXPECT_GT(goodput_bps(b, 50 * kMs), 0.7 * 4 * kPathBps);
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  settle();
}

TEST_F(SimPathTest, ReplayFromTheSameHostFlipsNoSlotBack) {
  build();
  const Rule& old = world().record_next({.type = PacketType::data, .from = a, .to = b}, 300);
  start_flow(a, b, 20'000);
  send_many(b, a, 20'000, 8000);
  world().run_for(30 * kMs);
  for (const RecordedPacket& packet : old.recorded) {
    RecordedPacket moved = packet;
    moved.source.port = 61'000;  // nobody answers there
    world().replay(moved);
  }
  world().run_for(20 * kMs);
  EXPECT_GT(goodput_bps(a, 50 * kMs), 0.5 * kPathBps);
  EXPECT_EQ(counters(b).peers_lost.value(), 0U);
  settle();
}

// A host with more to do than time for it answers late, on every path alike: other paths would not
// be better, and asking on them would be more work for it.
TEST_F(SimPathTest, OverloadedPeerLosesNoPaths) {
  build();
  warm_up();
  const std::uint64_t before = counters(a).path_rerolls.value();
  start_flow(a, b, 64U << 10);
  for (int i = 0; i < 30; ++i) {
    world().run_for(kMs / 4);  // the rest of the slots is opened and asked on
    world().suspend(b, 30 * kMs);
    world().run_for(30 * kMs);
  }
  EXPECT_LE(counters(a).path_rerolls.value() - before, 32U) << "30 gaps and 28 slots to open";
  settle();
}

TEST_F(SimPathTest, OnePathHintKeepsToOnePath) {
  build();
  warm_up();
  const Rule& seen = world().record_next({.type = PacketType::data, .from = a}, UINT64_MAX);
  // The burst that carries the end of the first message runs on into the next.
  world().send(a, SendSpec{.to = b, .bytes = 3000});
  world().send(a, SendSpec{.to = b, .bytes = 200'000, .one_path = true});
  ASSERT_TRUE(world().run_until_settled(kSecond));
  std::map<std::uint32_t, std::set<std::uint16_t>> ports_of;  // by message
  for (const RecordedPacket& packet : seen.recorded) {
    wire::DataHeader data;
    ASSERT_TRUE(wire::decode(packet.bytes, data));
    ports_of[data.msg_id].insert(packet.source.port);
  }
  ASSERT_EQ(ports_of.size(), 2U);
  EXPECT_EQ(std::prev(ports_of.end())->second.size(), 1U);
  settle();
}

TEST_F(SimPathTest, ServerReachesItsClientAfterRebinding) {
  build();
  world().add_nat(a, 10 * kSecond);
  warm_up();  // b knows a by its messages only
  SendSpec answer{.to = a, .bytes = 20'000, .reply = true};
  for (int i = 0; i < 200; ++i) world().send(b, answer);
  world().run_for(5 * kMs);
  world().rebind_nat(a);
  for (int i = 0; i < 200; ++i) world().send(b, answer);
  settle();
  EXPECT_EQ(world().checker().succeeded(), 401U);
}

// Ways that nobody answers any more are asked for while there is something to say, not for ever.
TEST_F(SimPathTest, IdlePeersStopAskingForWaysThatNobodyAnswers) {
  build();
  world().add_nat(a, 10 * kSecond);
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  const Rule& unanswered =
      world().drop_next({.type = PacketType::probe, .from = b, .to = a}, UINT64_MAX);
  world().rebind_nat(a);
  world().run_for(2 * kMs);
  settle();  // ends with a look at what idle hosts send
  EXPECT_GT(unanswered.hits, 0U);
}

// A packet of the past, sent again from elsewhere, passes every check but must redirect nothing.
TEST_F(SimPathTest, ReplayedPacketStealsNoReturnPath) {
  build();
  const HostId victim = world().add_host(fast_host());
  const Rule& old = world().record_next({.type = PacketType::data, .from = a, .to = b}, 300);
  start_flow(a, b, 20'000);
  send_many(b, a, 20'000, 2000);
  world().run_for(50 * kMs);
  ASSERT_GT(old.recorded.size(), 100U);
  const Rule& stolen = world().record_next({.from = b, .to = victim}, UINT64_MAX);
  for (RecordedPacket packet : old.recorded) {
    const std::uint16_t port = packet.source.port;
    packet.source = world().host(victim).address();
    packet.source.port = port;
    world().replay(packet);
  }
  world().run_for(50 * kMs);
  EXPECT_LE(stolen.hits, 16U) << "at most a few probes go to an unproven address";
  for (const RecordedPacket& packet : stolen.recorded) {
    const auto type = static_cast<unsigned>(packet.bytes[0]) & 15U;
    EXPECT_NE(type, static_cast<unsigned>(PacketType::data));
  }
  settle();
}

// The MTU of the way out falls in mid-flow: what was cut for the larger one never fits again.
TEST_F(SimPathTest, ShrunkRouteHangsNothing) {
  build();
  world().checker().excuse({.status = Errc::context_lost, .host = b});
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  world().host(a).io().config().datagram_bytes = 1300;
  world().run_for(20 * kMs);
  const std::uint64_t delivered = world().checker().delivered();
  world().run_for(100 * kMs);
  EXPECT_GT(world().checker().delivered(), delivered + 1000);
  EXPECT_LT(counters(a).tx_refused.value(), 1000U);
  const MessageNumber next = send(a, b, 2000);
  settle();
  EXPECT_EQ(message(next).status, Errc::ok);
}

// The network swallows long datagrams without a word, while probes get through.
TEST_F(SimPathTest, WaysThatSwallowLongDatagramsHangNothing) {
  build();
  warm_up();
  world().checker().excuse({.status = Errc::context_lost, .host = b});
  world().drop_next(
      {.from = a, .where = [](const PacketView& packet) { return packet.bytes.size() > 1300; }},
      UINT64_MAX);
  const MessageNumber lost = send(a, b, 20'000);
  ASSERT_TRUE(world().run_until_settled(20 * kSecond));
  EXPECT_EQ(message(lost).status, Errc::context_lost);
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  const MessageNumber next = send(a, b, 1000);
  settle();
  EXPECT_EQ(message(next).status, Errc::ok);
}

TEST_F(SimPathTest, DeviceThatRefusesEverythingIsAskedLessAndLess) {
  build();
  warm_up();
  world().checker().excuse({.status = Errc::peer_unreachable, .host = b});
  world().host(a).io().config().refuse = 1.0;
  send_many(a, b, 20'000, 100);
  world().run_for(kSecond);
  EXPECT_LT(counters(a).tx_refused.value(), 10'000U);
  ASSERT_TRUE(world().run_until_settled(10 * kSecond));
  world().host(a).io().config().refuse = 0;
  settle();
}

}  // namespace
}  // namespace srd::sim
