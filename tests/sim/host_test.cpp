// SPDX-License-Identifier: Apache-2.0
// Trouble inside hosts and drivers: full buffers, refused sends, ICMP, vanished peers, economy of
// ACKs.
#include <vector>

#include "sim/support.hpp"

namespace srd::sim {
namespace {

using SimHostTest = SimTest;

TEST_F(SimHostTest, FewReceiveBuffersDoNotBlockReassembly) {
  HostConfig few = fast_host();
  few.io.rx_buffers = 64;
  few.io.gro = false;
  build(quiet_fabric(), fast_host(), few);
  send_many(a, b, 1U << 20, 8);
  settle();
}

TEST_F(SimHostTest, HeldMessagesDoNotStarveTheDriver) {
  HostConfig few = fast_host();
  few.io.rx_buffers = 64;
  few.app.hold_ns = 50 * kMs;
  build(quiet_fabric(), fast_host(), few);
  for (int i = 0; i < 200; ++i) {
    send(a, b, 700);
    world().run_for(200 * kUs);
  }
  settle();
  EXPECT_EQ(counters(a).tx_retransmits.value(), 0U);
}

TEST_F(SimHostTest, DeadNeighbourDoesNotSlowTheLiving) {
  build();
  const HostId dead = world().add_host(fast_host());
  send(a, dead, 1000);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  const double before = goodput_bps(b, 100 * kMs);
  world().crash(dead);
  fabric().access(dead).config.dead = true;
  send_many(a, dead, 10'000, 100);
  EXPECT_GT(goodput_bps(b, 300 * kMs), 0.95 * before);
  settle();
}

TEST_F(SimHostTest, ForgedIcmpErrorsFailNothing) {
  build();
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  for (std::uint16_t i = 0; i < 100; ++i) {
    world().inject_icmp(a, i % 2 == 0 ? PathEvent::Kind::refused : PathEvent::Kind::unreachable,
                        static_cast<std::uint16_t>(50'000 + i), world().host(b).address(), {});
    world().run_for(100 * kUs);
  }
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  settle();
  EXPECT_EQ(world().checker().failed(), 0U);
}

TEST_F(SimHostTest, PortUnreachableSpeedsUpTheDiscoveryOfARestart) {
  build();
  warm_up();
  world().crash(b);
  send(a, b, 1000);
  world().run_for(20 * kMs);
  world().start(b);
  const TimeNs at = world().now();
  ASSERT_TRUE(world().run_until([&] { return world().checker().all_done(); }, 5 * kSecond));
  EXPECT_LT(world().now() - at, 1500 * kMs);
  settle();
}

TEST_F(SimHostTest, VanishedSenderFreesItsShareOfMemory) {
  HostConfig host = fast_host();
  host.limits.receive_pool_bytes = 4U << 20;
  host.limits.max_message_bytes = 2U << 20;
  build(quiet_fabric(), host, host);
  warm_up();
  for (int i = 0; i < 3; ++i) send(a, b, 1U << 20);
  world().run_for(kMs);
  ASSERT_GT(counters(b).receive_pool_used_bytes.value(), 0U);
  world().crash(a);
  fabric().access(a).config.dead = true;
  world().run_for(6 * kSecond);
  EXPECT_EQ(counters(b).receive_pool_used_bytes.value(), 0U);
  EXPECT_EQ(world().host(b).io().loaned_buffers(), 0U);
  EXPECT_EQ(counters(b).peers_active.value(), 0U);
}

using SimAckTest = SimTest;

TEST_F(SimAckTest, BulkNeedsFewAcks) {
  build();
  start_flow(a, b, 256U << 10);
  world().run_for(200 * kMs);
  const auto received = static_cast<double>(counters(b).rx_bytes.value());
  EXPECT_LT(static_cast<double>(counters(b).tx_acks.value()), received / (16 << 10) + 200);
  settle();
}

TEST_F(SimAckTest, AcksRideOnAnswers) {
  build();
  // b answers every request within its turn.
  world().host(b).app().on_event = [this](const core::Event& event) {
    if (event.kind == core::Event::Kind::message) send(b, a, 64);
  };
  world().host(a).app().on_event = [this, n = 0](const core::Event& event) mutable {
    if (event.kind == core::Event::Kind::message && ++n < 1000) send(a, b, 64);
  };
  send_many(a, b, 64, 10);
  ASSERT_TRUE(world().run_until([this] { return world().checker().delivered() > 1900; }, kSecond));
  const std::uint64_t acks = counters(a).tx_acks.value() + counters(b).tx_acks.value();
  EXPECT_LT(acks, 400U) << "of about 2000 messages";
  settle();
}

TEST_F(SimAckTest, SmallMessagesShareDatagrams) {
  build();
  warm_up();
  const std::uint64_t before = counters(a).tx_datagrams.value();
  send_many(a, b, 64, 1000);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  EXPECT_LT(counters(a).tx_datagrams.value() - before, 150U);
  settle();
}

TEST_F(SimAckTest, AcksNeverAnswerAcks) {
  build();
  warm_up();
  world().run_for(kSecond);
  const std::uint64_t before = counters(a).tx_acks.value() + counters(b).tx_acks.value();
  send(a, b, 100);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  world().run_for(kSecond);
  EXPECT_LE(counters(a).tx_acks.value() + counters(b).tx_acks.value() - before, 2U);
  settle();
}

TEST_F(SimHostTest, SocketOverflowIsNotTakenForPathFailure) {
  HostConfig small = fast_host();
  small.io.rx_queue_datagrams = 130;
  build(quiet_fabric(), fast_host(), small);
  start_flow(a, b, 64U << 10);
  world().run_for(50 * kMs);
  for (int i = 0; i < 20; ++i) {
    world().suspend(b, 3 * kMs);
    world().run_for(10 * kMs);
  }
  EXPECT_GT(world().host(b).io().counters().rx_host_drops, 0U);
  EXPECT_LE(counters(a).path_rerolls.value(), 8U);
  EXPECT_LE(counters(a).path_suspects.value(), 16U);
  settle();
}

TEST_F(SimHostTest, RefusedDatagramsAreNeitherLossesNorAttempts) {
  HostConfig refusing = fast_host();
  refusing.io.refuse = 0.2;
  build(quiet_fabric(), refusing, fast_host());
  start_flow(a, b, 20'000);
  world().run_for(100 * kMs);
  EXPECT_GT(counters(a).tx_refused.value(), 100U);
  EXPECT_LE(counters(a).tx_retransmits.value(), 5U);
  EXPECT_LE(counters(a).path_rerolls.value(), 2U);
  EXPECT_GT(goodput_bps(b, 50 * kMs), 2 * kPathBps);
  settle();
}

}  // namespace
}  // namespace srd::sim
