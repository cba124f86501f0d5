// SPDX-License-Identifier: Apache-2.0
// Losses and what only looks like one: found fast when real, and not seen where there are none.
#include "sim/support.hpp"

namespace srd::sim {
namespace {

using SimLossTest = SimTest;

/// 4 % of all datagrams come late; after adaptation few of them are taken for lost.
class SimReorderingTest : public SimTest {
 protected:
  void expect_reordering_settles() {
    start_flow(a, b, 64U << 10);
    world().run_for(300 * kMs);
    const std::uint64_t sent = counters(a).tx_datagrams.value();
    const std::uint64_t spurious = counters(a).tx_spurious.value();
    world().run_for(300 * kMs);
    EXPECT_LT(static_cast<double>(counters(a).tx_spurious.value() - spurious),
              0.01 * static_cast<double>(counters(a).tx_datagrams.value() - sent));
    settle();
  }
};

TEST_F(SimLossTest, SenderThatSleptReadsItsAcksBeforeItJudges) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(20 * kMs);
  for (int i = 0; i < 20; ++i) {
    world().suspend(a, 10 * kMs);
    world().run_for(15 * kMs);
  }
  EXPECT_EQ(counters(a).tx_spurious.value(), 0U);
  EXPECT_LE(counters(a).tx_retransmits.value(), 20U);
  settle();
}

TEST_F(SimLossTest, SkewedPathsCauseNoSpuriousRetransmits) {
  build();
  fabric().change_path(0, [](LinkConfig& link) { link.delay_ns += kMs; });  // 2 ms behind
  start_flow(a, b, 64U << 10);
  world().run_for(200 * kMs);
  EXPECT_LE(counters(a).tx_spurious.value(), 2U);
  EXPECT_LE(counters(a).tx_retransmits.value(), 10U);
  settle();
}

TEST_F(SimReorderingTest, ReorderingAcrossAMillisecondSettles) {
  FabricConfig shaky = quiet_fabric();
  shaky.link.reorder = 0.02;
  shaky.link.reorder_ns = kMs;
  build(shaky);
  expect_reordering_settles();
}

// Probes that replaced what was lost are no excuse for what is sent twice later.
TEST_F(SimReorderingTest, LostTailsDoNotDeferTheAllowanceForReordering) {
  build();
  warm_up();
  for (int i = 0; i < 6000; ++i) {
    world().drop_next({.type = PacketType::data, .from = a}, 1);
    send(a, b, 1400);
    ASSERT_TRUE(world().run_until([this] { return world().checker().all_done(); }, kSecond));
  }
  ASSERT_GE(counters(a).tail_probes.value(), 6000U);
  fabric().change_all([](LinkConfig& link) {
    link.reorder = 0.02;
    link.reorder_ns = kMs;
  });
  expect_reordering_settles();
}

TEST_F(SimLossTest, LostBurstIsFoundWithoutATimeout) {
  HostConfig few = fast_host();
  few.limits.paths = 4;  // so that each slot soon has a later burst
  build(quiet_fabric(), few, few);
  start_flow(a, b, 64U << 10);
  world().run_for(20 * kMs);
  const std::uint64_t probes = counters(a).rto_probes.value() + counters(a).tail_probes.value();
  // All of one burst: the same path and moment.
  std::uint16_t port = 0;
  TimeNs when = 0;
  Match burst{.type = PacketType::data, .from = a};
  burst.where = [&](const PacketView& packet) {
    if (port == 0) {
      port = packet.source.port;
      when = packet.at;
    }
    return packet.source.port == port && packet.at == when;
  };
  const Rule& lost = world().drop_next(burst, UINT64_MAX);
  world().run_for(10 * kMs);
  ASSERT_GT(lost.hits, 0U);
  EXPECT_GE(counters(a).tx_retransmits.value(), lost.hits);
  EXPECT_EQ(counters(a).rto_probes.value() + counters(a).tail_probes.value(), probes);
  EXPECT_LE(counters(a).tx_retransmits.value(), lost.hits + 2);
  // The path lives. Only if its whole share was in flight, no later burst could tell.
  EXPECT_LE(counters(a).path_suspects.value(), 1U);
  settle();
}

TEST_F(SimLossTest, LostTailIsFoundByAProbe) {
  build();
  warm_up();
  world().drop_next({.type = PacketType::data, .from = a}, 1);
  const TimeNs at = world().now();
  const MessageNumber number = send(a, b, 1400);
  ASSERT_TRUE(world().run_until_settled(kSecond));
  EXPECT_LT(message(number).completed_at - at, 10 * kMs);
  EXPECT_EQ(counters(a).tail_probes.value(), 1U);
  settle();
}

TEST_F(SimLossTest, LostAcksAreNoLosses) {
  build();
  Rule lost;
  lost.match = {.type = PacketType::ack, .from = b, .where = [n = 0U](const PacketView&) mutable {
                  return ++n % 3 != 0;
                }};
  lost.drop = true;
  world().add_rule(lost);
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  EXPECT_LE(counters(a).tx_spurious.value(), 10U);
  settle();
}

TEST_F(SimLossTest, DuplicatesCauseNeitherDeliveryNorRetransmits) {
  FabricConfig doubling = quiet_fabric();
  doubling.link.duplicate = 0.3;
  doubling.link.reorder_ns = 100 * kUs;
  build(doubling);
  start_flow(a, b, 20'000);
  world().run_for(100 * kMs);
  EXPECT_GT(counters(b).rx_duplicates.value(), 1000U);
  EXPECT_LT(static_cast<double>(counters(a).tx_retransmits.value()),
            0.01 * static_cast<double>(counters(a).tx_datagrams.value()));
  settle();
}

TEST_F(SimLossTest, ShortOutageOfEverythingIsSurvived) {
  build();
  start_flow(a, b, 20'000);
  world().run_for(20 * kMs);
  fabric().change_all([](LinkConfig& link) { link.dead = true; });
  world().run_for(500 * kMs);
  fabric().change_all([](LinkConfig& link) { link.dead = false; });
  const TimeNs healed = world().now();
  const std::uint64_t before = world().checker().delivered();
  ASSERT_TRUE(
      world().run_until([&] { return world().checker().delivered() > before + 100; }, 2 * kSecond));
  EXPECT_LT(world().now() - healed, 700 * kMs) << "RTO doubles, so about as long as the outage";
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  settle();
}

TEST_F(SimLossTest, DeadPeerIsReportedAfterTheDeadTimer) {
  build();
  warm_up();
  fabric().change_all([](LinkConfig& link) { link.dead = true; });
  world().excuse_outage();
  const TimeNs at = world().now();
  const MessageNumber number = send(a, b, 20'000);
  ASSERT_TRUE(world().run_until([this] { return world().checker().all_done(); }, 6 * kSecond));
  EXPECT_EQ(message(number).status, Errc::peer_unreachable);
  EXPECT_GE(message(number).completed_at - at, 1500 * kMs);
  EXPECT_LE(message(number).completed_at - at, 4 * kSecond);
  fabric().change_all([](LinkConfig& link) { link.dead = false; });
  const MessageNumber next = send(a, b, 20'000);
  settle();
  EXPECT_EQ(message(next).status, Errc::ok);
}

TEST_F(SimLossTest, CorruptedPacketsAreDroppedAndSentAgain) {
  FabricConfig noisy = quiet_fabric();
  noisy.link.corrupt = 0.02;
  build(noisy);
  start_flow(a, b, 20'000);
  send_many(b, a, 100, 500);
  world().run_for(100 * kMs);
  EXPECT_GT(counters(b).rx_bad_check.value() + counters(b).rx_unknown_context.value() +
                counters(b).rx_malformed.value(),
            20U);
  settle();
}

TEST_F(SimLossTest, HostGapCausesNoRetransmitStorm) {
  HostConfig host = fast_host();
  host.gaps = GapConfig::crowded_vm();
  build(quiet_fabric(), host, host);
  start_flow(a, b, 64U << 10);
  world().run_for(500 * kMs);
  const auto sent = static_cast<double>(counters(a).tx_datagrams.value());
  EXPECT_LT(static_cast<double>(counters(a).tx_retransmits.value()), 0.01 * sent);
  EXPECT_LT(counters(a).path_rerolls.value(), 32U);
  settle();
}

// Nothing got through for 10 s, but only because nothing was tried.
TEST_F(SimLossTest, SenderThatSleptForSecondsTriesAgain) {
  build();
  warm_up();
  world().drop_next(
      {.from = a, .where = [](const PacketView& packet) { return packet.bytes.size() > 1000; }}, 1);
  const MessageNumber number = send(a, b, 1000);
  world().run_for(kMs / 20);
  ASSERT_EQ(message(number).completed_at, kNeverNs);
  world().suspend(a, 10 * kSecond);
  world().run_for(11 * kSecond);
  settle();
  EXPECT_EQ(message(number).status, Errc::ok);
}

TEST_F(SimLossTest, ReceiverGapIsNoLoss) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(20 * kMs);
  const std::uint64_t rerolls = counters(a).path_rerolls.value();
  for (int i = 0; i < 20; ++i) {
    world().suspend(b, 8 * kMs);
    world().run_for(12 * kMs);
  }
  EXPECT_LE(counters(a).tx_retransmits.value(), 100U);
  EXPECT_LE(counters(a).path_rerolls.value() - rerolls, 4U);
  EXPECT_GT(goodput_bps(b, 20 * kMs), 3 * kPathBps) << "the window was not cut to nothing";
  settle();
}

}  // namespace
}  // namespace srd::sim
