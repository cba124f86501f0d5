// SPDX-License-Identifier: Apache-2.0
// Peers that restart, seem to, or forget: a real restart is noticed and nothing is delivered twice;
// a false one fails nothing.
#include <vector>

#include "srd/wire/check.hpp"

#include "sim/support.hpp"

namespace srd::sim {
namespace {

class SimRestartTest : public SimTest {
 protected:
  /// A HELLO like the recorded one, of another incarnation, set-up nonce and context.
  static std::vector<std::byte> other_life(const RecordedPacket& hello) {
    std::vector<std::byte> forged = hello.bytes;
    forged[20] ^= std::byte{0x5a};
    for (std::size_t at = 56; at < 64; ++at) forged[at] ^= std::byte{0xa5};
    for (std::size_t at = 72; at < 88; ++at) forged[at] ^= std::byte{0x3c};
    wire::seal(forged, {}, wire::kUnseeded);
    return forged;
  }

  void expect_nothing_failed() {
    EXPECT_EQ(world().checker().failed(), 0U);
    EXPECT_EQ(counters(a).peer_restarts.value() + counters(b).peer_restarts.value(), 0U);
  }
};

TEST_F(SimRestartTest, ReceiverRestartIsNoticedAndNothingComesTwice) {
  build();
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  world().restart(b);
  world().run_for(200 * kMs);
  EXPECT_EQ(counters(a).peer_restarts.value(), 1U);
  EXPECT_GT(world().checker().failed(), 0U) << "what was on its way has an unknown fate";
  const MessageNumber fresh = send(a, b, 1000);
  settle();
  EXPECT_EQ(message(fresh).status, Errc::ok);
  EXPECT_EQ(message(fresh).deliveries, 1U);
}

TEST_F(SimRestartTest, RestartIsProvenWithinAFewRoundTrips) {
  build();
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  world().restart(b);
  const TimeNs at = world().now();
  ASSERT_TRUE(
      world().run_until([this] { return counters(a).peer_restarts.value() == 1; }, kSecond));
  EXPECT_LT(world().now() - at, 50 * kMs);
  settle();
}

TEST_F(SimRestartTest, RestartOfAnIdlePeerCostsNothing) {
  build();
  warm_up();
  world().restart(b);
  world().run_for(100 * kMs);
  const MessageNumber number = send(a, b, 1000);
  const MessageNumber next = [&] {
    world().run_for(500 * kMs);
    return send(a, b, 1000);
  }();
  settle();
  // The first may have been sent into the old context; the second certainly was not.
  EXPECT_TRUE(message(number).status == Errc::ok || message(number).status == Errc::peer_restarted);
  EXPECT_EQ(message(next).status, Errc::ok);
}

TEST_F(SimRestartTest, SenderRestartDeliversNothingOfItsOldLifeLater) {
  build();
  const Rule& old = world().record_next({.type = PacketType::data, .from = a}, 400);
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  stop_flow();
  world().restart(a);
  send_many(a, b, 20'000, 10);
  world().run_for(100 * kMs);
  const std::uint64_t bad = counters(b).rx_bad_check.value() +
                            counters(b).rx_unknown_context.value() +
                            counters(b).rx_duplicates.value();
  for (const RecordedPacket& packet : old.recorded) world().replay(packet);
  world().run_for(100 * kMs);
  EXPECT_GE(counters(b).rx_bad_check.value() + counters(b).rx_unknown_context.value() +
                counters(b).rx_duplicates.value(),
            bad + old.recorded.size());
  settle();
}

TEST_F(SimRestartTest, BothEndsRestartAgainAndAgain) {
  build();
  start_flow(a, b, 5'000, 16);
  send_many(b, a, 5'000, 16);
  for (int i = 0; i < 6; ++i) {
    world().run_for(30 * kMs);
    world().restart(i % 2 == 0 ? b : a);
    send_many(a, b, 5'000, 16);
    send_many(b, a, 5'000, 16);
  }
  settle();
}

TEST_F(SimRestartTest, ReplayedHelloIsNoRestart) {
  build();
  const Rule& hello = world().record_next({.type = PacketType::hello, .from = a}, 1);
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  ASSERT_EQ(hello.recorded.size(), 1U);
  for (TimeNs at = 0; at < 50; ++at) world().replay(hello.recorded[0], at * 500 * kUs);
  world().run_for(50 * kMs);
  settle();
  expect_nothing_failed();
}

TEST_F(SimRestartTest, HelloOfAPastLifeIsNoRestart) {
  build();
  const Rule& hello = world().record_next({.type = PacketType::hello, .from = a}, 1);
  warm_up();
  world().restart(a);
  const MessageNumber first = send(a, b, 1000);
  world().run_for(100 * kMs);
  EXPECT_EQ(message(first).status, Errc::ok);
  ASSERT_EQ(hello.recorded.size(), 1U);
  start_flow(a, b, 20'000);
  start_flow(b, a, 20'000);
  const std::uint64_t restarts = counters(b).peer_restarts.value();
  for (TimeNs at = 0; at < 50; ++at) world().replay(hello.recorded[0], at * 500 * kUs);
  world().run_for(100 * kMs);
  EXPECT_EQ(counters(b).peer_restarts.value(), restarts);
  settle();
  EXPECT_EQ(world().checker().failed(), 0U);
}

TEST_F(SimRestartTest, ForgedHelloOfAnotherIncarnationFailsNothing) {
  build();
  const Rule& hello = world().record_next({.type = PacketType::hello, .from = a}, 1);
  start_flow(a, b, 20'000);
  send_many(b, a, 20'000, 500);
  world().run_for(20 * kMs);
  ASSERT_EQ(hello.recorded.size(), 1U);
  const std::vector<std::byte> forged = other_life(hello.recorded[0]);
  Address source = hello.recorded[0].source;
  for (std::uint16_t i = 0; i < 20; ++i) {
    source.port = static_cast<std::uint16_t>(40'000 + i);
    world().inject(source, world().host(b).address(), forged, i * kMs);
  }
  world().run_for(50 * kMs);
  settle();
  expect_nothing_failed();
}

TEST_F(SimRestartTest, ForgedResetIsOnlyAHint) {
  build();
  Rule& data = world().record_next({.type = PacketType::data, .from = a, .to = b}, UINT64_MAX);
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  for (int i = 0; i < 20; ++i) {
    world().run_for(kMs);
    const RecordedPacket& last = data.recorded.back();
    wire::CommonHeader seen;
    wire::decode(last.bytes, seen);
    std::vector<std::byte> packet(wire::kResetBytes);
    wire::CommonHeader common;
    common.type = PacketType::reset;
    common.psn = seen.psn;
    wire::encode(packet, common);
    wire::ResetHeader reset;
    reset.echo_dst_ctx = seen.dst_ctx;
    reset.incarnation = 0x1234;
    wire::encode(packet, reset);
    wire::seal(packet, {}, wire::kUnseeded);
    world().inject(last.destination, last.source, packet);
    data.recorded.clear();
    world().run_for(kMs);
  }
  settle();
  expect_nothing_failed();
}

// Some slots reach the old server, some the new one. A switch of servers may fail what was
// outstanding once; it must not go on failing.
TEST_F(SimRestartTest, TwoIncarnationsBehindABalancerFailNothingForLong) {
  FabricConfig fabric = quiet_fabric();
  build(fabric);
  const HostId other = world().add_host(fast_host());
  world().add_balancer({b, other});
  for (const HostId server : {b, other}) {
    for (const Errc status : {Errc::peer_restarted, Errc::context_lost}) {
      world().checker().excuse({.status = status, .host = server});
    }
  }
  // The checker knows one receiver per message; here either may get it.
  std::uint64_t delivered = 0;
  for (const HostId server : {b, other}) {
    world().host(server).app().config.reads = false;
  }
  for (int i = 0; i < 100; ++i) {
    send(a, b, 4'000);
    world().run_for(2 * kMs);
  }
  world().run_for(kSecond);
  delivered = counters(b).rx_messages.value() + counters(other).rx_messages.value();
  EXPECT_EQ(world().checker().outstanding(), 0U);
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  EXPECT_LE(counters(a).peer_restarts.value(), 1U);
  EXPECT_LE(world().checker().failed(), 2U);
  EXPECT_GE(delivered, world().checker().succeeded());
}

using SimContextLossTest = SimTest;

// The receiver drops its context inside one incarnation (its peer handle was given up, CLOSE is
// lost).
TEST_F(SimContextLossTest, ForgottenContextIsNoBlackHole) {
  build();
  warm_up();
  world().host(b).app().config.keeps_events = true;
  send(a, b, 100);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  core::PeerId handle = core::kNoPeer;
  for (const AppEvent& event : world().host(b).app().events()) handle = event.event.peer;
  ASSERT_NE(handle, core::kNoPeer);
  world().drop_next({.type = PacketType::close, .from = b}, UINT64_MAX);
  for (const Errc status : {Errc::context_lost, Errc::peer_closed}) {
    world().checker().excuse({.status = status, .host = b});
  }
  world().after(0, [&] { core(b).remove_peer(world().host(b).local_now(), handle); });
  world().run_for(kMs);
  const TimeNs start = world().now();
  const MessageNumber lost = send(a, b, 2000);
  ASSERT_TRUE(world().run_until_settled(10 * kSecond));
  EXPECT_LT(message(lost).completed_at - start, 500 * kMs) << "long before the dead timer";
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  const MessageNumber next = send(a, b, 2000);
  settle();
  EXPECT_EQ(message(next).status, Errc::ok);
}

TEST_F(SimContextLossTest, ReapedHalfOpenContextIsNoBlackHole) {
  build();
  // b answers, then hears nothing for longer than it keeps a half-open context.
  Rule deaf;
  deaf.match = {.from = a, .to = b, .where = [](const PacketView& packet) {
                  return packet.type() != PacketType::hello;
                }};
  deaf.drop = true;
  Rule& rule = world().add_rule(deaf);
  world().checker().excuse({.status = Errc::context_lost, .host = b});
  send_many(a, b, 2000, 10);
  world().run_for(1'500 * kMs);
  rule.remaining = 0;
  world().run_for(500 * kMs);
  EXPECT_EQ(world().checker().outstanding(), 0U);
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  const MessageNumber next = send(a, b, 2000);
  settle();
  EXPECT_EQ(message(next).status, Errc::ok);
}

using SimCloseTest = SimTest;

TEST_F(SimCloseTest, CloseEndsWhatIsOutstandingAtOnce) {
  build();
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  stop_flow();
  const TimeNs at = world().now();
  world().close(b);
  ASSERT_TRUE(world().run_until([this] { return world().checker().all_done(); }, 2 * kSecond));
  EXPECT_LT(world().now() - at, 100 * kMs);
  EXPECT_EQ(counters(a).peer_restarts.value(), 0U);
}

TEST_F(SimCloseTest, ReplayedCloseOfAPastContextEndsNothing) {
  build();
  const Rule& close = world().record_next({.type = PacketType::close, .from = b}, 10);
  warm_up();
  world().close(b);
  world().run_for(100 * kMs);
  world().start(b);
  warm_up();
  ASSERT_GE(close.recorded.size(), 1U);
  start_flow(a, b, 20'000);
  world().run_for(10 * kMs);
  const std::uint64_t failed = world().checker().failed();
  for (const RecordedPacket& packet : close.recorded) world().replay(packet);
  world().run_for(20 * kMs);
  EXPECT_EQ(world().checker().failed(), failed);
  settle();
  EXPECT_EQ(world().checker().failed(), failed);
}

}  // namespace
}  // namespace srd::sim
