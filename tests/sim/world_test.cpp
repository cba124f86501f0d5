// SPDX-License-Identifier: Apache-2.0
// The simulator as a whole: it replays, it checks, its taps hit what they aim at.
#include "sim/support.hpp"
#include "sim/swarm.hpp"

namespace srd::sim {
namespace {

using SimWorldTest = SimTest;

TEST(SimDeterminismTest, SameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SwarmResult first = run_swarm(seed);
    const SwarmResult second = run_swarm(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.datagrams, second.datagrams);
    EXPECT_EQ(first.summary, second.summary);
  }
}

TEST(SimDeterminismTest, OtherSeedGivesAnotherTrace) {
  EXPECT_NE(run_swarm(1).trace_hash, run_swarm(2).trace_hash);
}

TEST_F(SimWorldTest, DeliversBothWaysOnAQuietFabric) {
  build();
  for (const std::uint64_t bytes : {0U, 1U, 7U, 8U, 64U, 512U, 513U, 1408U, 1409U, 70'000U}) {
    send(a, b, bytes);
    send(b, a, bytes);
  }
  send(a, b, 16U << 20);
  settle();
  EXPECT_EQ(world().checker().delivered(), 21U);
  // The start may overfill a queue; nothing is sent again without such a loss.
  EXPECT_LE(counters(a).tx_spurious.value() + counters(b).tx_spurious.value(), 2U) << "tails";
  EXPECT_LE(counters(a).rx_duplicates.value() + counters(b).rx_duplicates.value(), 2U);
}

TEST_F(SimWorldTest, HostClocksMayDiffer) {
  HostConfig fast = fast_host(), slow = fast_host();
  fast.clock_ppm = 100;
  slow.clock_ppm = -100;
  build(quiet_fabric(), fast, slow);
  start_flow(a, b, 64U << 10);
  world().run_for(100 * kMs);
  settle();
  EXPECT_EQ(counters(a).tx_retransmits.value(), 0U);
}

TEST_F(SimWorldTest, IdleWorldIsSilent) {
  build();
  warm_up();
  world().run_for(5 * kSecond);
  const std::uint64_t datagrams = world().datagrams();
  const std::uint64_t turns = world().host(a).turns() + world().host(b).turns();
  world().run_for(10 * kSecond);
  EXPECT_EQ(world().datagrams(), datagrams);
  EXPECT_LT(world().host(a).turns() + world().host(b).turns() - turns, 100U);
}

TEST_F(SimWorldTest, RuleHitsExactlyWhatItNames) {
  build();
  warm_up();
  const Rule& drop = world().drop_next({.type = PacketType::data, .from = a, .to = b}, 1);
  const Rule& seen = world().record_next({.type = PacketType::data, .from = a});
  send(a, b, 1400);
  settle();
  EXPECT_EQ(drop.hits, 1U);
  ASSERT_EQ(seen.recorded.size(), 1U);
  EXPECT_EQ(seen.recorded[0].to, b);
  EXPECT_GE(counters(a).tx_retransmits.value() + counters(a).tail_probes.value(), 1U);
}

TEST_F(SimWorldTest, SendsByReferenceUntilTheDeviceIsDone) {
  HostConfig host = fast_host();
  host.io.tx_async = true;
  host.io.nic_rate_bps = 1'000'000'000;  // a queue builds up in the NIC
  FabricConfig lossy = quiet_fabric();
  lossy.link.loss = 0.01;
  build(lossy, host, host);
  send_many(a, b, 100'000, 50);
  send_many(b, a, 3'000, 50);
  settle();
}

}  // namespace
}  // namespace srd::sim
