// SPDX-License-Identifier: Apache-2.0
// The window under loss, slow paths, marks and incast: neither hostage nor bully.
#include <algorithm>
#include <vector>

#include "sim/support.hpp"

namespace srd::sim {
namespace {

class SimCongestionTest : public SimTest {
 protected:
  double steady_rate(TimeNs settle_ns = 100 * kMs) {
    world().run_for(settle_ns);
    return goodput_bps(b, 200 * kMs);
  }

  /// Of the queues from a to the spines, over 200 ms.
  std::uint64_t median_depth_bytes() {
    std::vector<std::uint64_t> depths;
    for (int i = 0; i < 200; ++i) {
      world().run_for(kMs);
      for (std::uint32_t path = 0; path < 4; ++path) {
        depths.push_back(fabric().up(fabric().leaf_of(a), path).backlog_bytes(world().now()));
      }
    }
    std::sort(depths.begin(), depths.end());
    return depths[depths.size() / 2];
  }
};

TEST_F(SimCongestionTest, OnePercentLossOnAllPathsKeepsTheRate) {
  FabricConfig lossy = quiet_fabric();
  lossy.link.loss = 0.005;
  build(lossy);
  start_flow(a, b, 64U << 10);
  EXPECT_GT(steady_rate(), 0.9 * 4 * kPathBps);
  settle();
}

/// Round trips beyond those of a data centre: with a flow that loses a datagram now and then.
class SimLongRoundTripTest : public SimCongestionTest {
 protected:
  void check(TimeNs round_trip_ns, double least_share) {
    FabricConfig far = quiet_fabric();
    far.link.delay_ns = round_trip_ns / 4;
    far.link.loss = 0.0001;
    build(far);
    warm_up();
    start_flow(a, b, 256U << 10);
    EXPECT_GT(steady_rate(40 * round_trip_ns), least_share * 4 * kPathBps);
    srd_peer_info info{};
    ASSERT_TRUE(core(a).peer_info(world().host(a).app().peer(b), info));
    EXPECT_GE(info.rtt_min_ns, round_trip_ns);
    EXPECT_LT(info.rtt_ns, 3 * round_trip_ns);
    settle();
    EXPECT_GT(counters(a).tx_retransmits.value(), 0U);
    EXPECT_LT(counters(a).tx_spurious.value(), counters(a).tx_datagrams.value() / 100);
    EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  }
};

TEST_F(SimLongRoundTripTest, FiveMillisecondsCarryHalfTheRate) {
  check(5 * kMs, 0.5);
}

TEST_F(SimLongRoundTripTest, FiftyMillisecondsStillWork) {
  check(50 * kMs, 0.1);
}

TEST_F(SimCongestionTest, LostBurstsAreNotCountedDatagramByDatagram) {
  FabricConfig lossy = quiet_fabric();
  lossy.link.loss = 0.005;
  lossy.link.whole_bursts = true;
  build(lossy);
  start_flow(a, b, 64U << 10);
  EXPECT_GT(steady_rate(), 0.9 * 4 * kPathBps);
  settle();
}

TEST_F(SimCongestionTest, SlowPathDoesNotTakeTheWindowHostage) {
  build();
  fabric().change_path(0, [](LinkConfig& link) { link.rate_bps /= 4; });
  start_flow(a, b, 64U << 10);
  EXPECT_GT(steady_rate(300 * kMs), 0.9 * 3.25 * kPathBps);
  settle();
}

TEST_F(SimCongestionTest, PathThatSlowsDownInTheMiddle) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  fabric().change_path(0, [](LinkConfig& link) { link.rate_bps /= 4; });
  EXPECT_GT(steady_rate(200 * kMs), 0.9 * 3.25 * kPathBps);
  settle();
}

TEST_F(SimCongestionTest, LongerPathIsNotTakenForACongestedOne) {
  build();
  fabric().change_path(0, [](LinkConfig& link) { link.delay_ns += 200 * kUs; });
  start_flow(a, b, 64U << 10);
  EXPECT_GT(steady_rate(), 0.9 * 4 * kPathBps);
  settle();
}

TEST_F(SimCongestionTest, QueuesStayShallow) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  const std::uint64_t overflowed = fabric().total().overflowed;
  EXPECT_LT(median_depth_bytes(), 200'000U) << "1.6 ms of a 1 Gb/s path; the window aims at 1 ms";
  EXPECT_EQ(fabric().total().overflowed, overflowed);
  settle();
}

TEST_F(SimCongestionTest, MarksKeepQueuesShallow) {
  FabricConfig marking = quiet_fabric();
  marking.link.ecn_bytes = 60'000;
  build(marking);
  start_flow(a, b, 64U << 10);
  EXPECT_GT(steady_rate(), 0.85 * 4 * kPathBps);
  EXPECT_GT(counters(b).rx_ce.value(), 0U);
  EXPECT_LT(median_depth_bytes(), 2 * marking.link.ecn_bytes) << "half of what delay alone allows";
  settle();
}

TEST_F(SimCongestionTest, IncastSharesTheReceiverWithoutCollapse) {
  HostConfig narrow = fast_host();
  narrow.access.rate_bps = 1'000'000'000;
  narrow.access.queue_bytes = 256U << 10;
  build(quiet_fabric(), fast_host(), narrow);
  std::vector<HostId> senders{a};
  for (int i = 0; i < 15; ++i) senders.push_back(world().add_host(fast_host()));
  for (const HostId from : senders) send_many(from, b, 100'000, 20);
  const TimeNs ideal = TimeNs{16} * 20 * 100'000 * 8;  // at 1 Gb/s
  ASSERT_TRUE(world().run_until_settled(20 * kSecond));
  EXPECT_LT(world().now(), 2 * ideal);
  settle();
}

TEST_F(SimCongestionTest, ManyFlowsWithLessThanADatagramEachAllEnd) {
  HostConfig narrow = fast_host();
  narrow.access.rate_bps = 20'000'000;
  narrow.access.queue_bytes = 64U << 10;
  build(quiet_fabric(), fast_host(), narrow);
  std::vector<HostId> senders{a};
  for (int i = 0; i < 30; ++i) senders.push_back(world().add_host(fast_host()));
  for (const HostId from : senders) send_many(from, b, 20'000, 2);
  settle(60 * kSecond);
}

TEST_F(SimCongestionTest, DeadPathDoesNotCutTheWindowOfTheOthers) {
  build();
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  fabric().set_path_dead(3, true);
  // From 20 ms on at the full rate of three paths; a slot that explores may meet the dead one.
  world().run_for(25 * kMs);
  for (int i = 0; i < 5; ++i) EXPECT_GT(goodput_bps(b, 20 * kMs), 0.85 * 3 * kPathBps);
  settle();
}

}  // namespace
}  // namespace srd::sim
