// SPDX-License-Identifier: Apache-2.0
// Applications that read slowly or not at all: senders stop instead of sending in vain, and start
// again.
#include "sim/support.hpp"

namespace srd::sim {
namespace {

class SimFlowControlTest : public SimTest {
 protected:
  static constexpr std::uint64_t kPool = 1U << 20;

  void build_small_pool() {
    HostConfig host = fast_host();
    host.limits.receive_pool_bytes = kPool;
    host.limits.max_message_bytes = 256U << 10;
    build(quiet_fabric(), host, host);
  }
};

TEST_F(SimFlowControlTest, LostRaiseOfTheLimitHeals) {
  build_small_pool();
  world().host(b).app().config.releases = false;
  start_flow(a, b, 20'000);
  world().run_for(100 * kMs);
  // The raise, and its repetition, are lost.
  const Rule& lost = world().drop_next({.type = PacketType::ack, .from = b}, 4);
  world().host(b).app().config.releases = true;
  world().host(b).wake(world().now());
  const std::uint64_t before = world().checker().delivered();
  world().run_for(300 * kMs);
  EXPECT_GE(lost.hits, 1U);
  EXPECT_GT(world().checker().delivered(), before + 100);
  settle();
}

TEST_F(SimFlowControlTest, OldAckDoesNotLowerTheLimit) {
  build_small_pool();
  Rule late;
  late.match = {.type = PacketType::ack, .from = b, .where = [n = 0U](const PacketView&) mutable {
                  return ++n % 5 == 0;
                }};
  late.delay_ns = 3 * kMs;
  world().add_rule(late);
  world().host(b).app().config.hold_ns = kMs;
  start_flow(a, b, 20'000);
  world().run_for(10 * kMs);
  EXPECT_GT(goodput_bps(b, 100 * kMs), 1.5e9);
  EXPECT_EQ(counters(b).rx_rejected_messages.value(), 0U);
  settle();
}

TEST_F(SimFlowControlTest, AbortedMessagesLeakNoCredit) {
  // Rejections and their VOIDs count against the limit with their bytes; otherwise the flow would
  // dry up.
  HostConfig host = fast_host();
  host.limits.receive_pool_bytes = 256U << 10;
  host.limits.max_message_bytes = 128U << 10;
  build(quiet_fabric(), host, host);
  std::vector<HostId> crowd{a};
  for (int i = 0; i < 5; ++i) crowd.push_back(world().add_host(host));
  world().host(b).app().config.hold_ns = 2 * kMs;
  for (int round = 0; round < 10; ++round) {
    for (const HostId from : crowd) send_many(from, b, 100'000, 2);
    world().run_for(20 * kMs);
  }
  settle(60 * kSecond);
  EXPECT_EQ(world().checker().succeeded(), 120U);
}

TEST_F(SimFlowControlTest, BulkBothWaysDoesNotDeadlock) {
  build_small_pool();
  send_many(a, b, 200'000, 100);
  send_many(b, a, 200'000, 100);
  settle();
}

TEST_F(SimFlowControlTest, StoppedReaderStopsItsSender) {
  build_small_pool();
  world().host(b).app().config.releases = false;
  start_flow(a, b, 20'000);
  world().run_for(100 * kMs);
  EXPECT_LE(counters(b).receive_pool_used_bytes.value(), kPool);
  const std::uint64_t sent = counters(a).tx_bytes.value();
  EXPECT_LT(sent, 2 * kPool) << "payload is not sent again and again";
  EXPECT_LE(counters(b).rx_rejected_messages.value(), 20U) << "tried with growing pauses only";
  world().run_for(500 * kMs);
  EXPECT_LT(counters(a).tx_bytes.value() - sent, 100'000U) << "only probes while blocked";
  EXPECT_EQ(counters(a).peers_lost.value(), 0U);
  world().host(b).app().config.releases = true;
  world().host(b).wake(world().now());
  settle();
}

TEST_F(SimFlowControlTest, UnpolledReceiverStopsItsSender) {
  build_small_pool();
  world().host(b).app().config.reads = false;
  start_flow(a, b, 20'000);
  world().run_for(300 * kMs);
  EXPECT_LE(counters(b).receive_pool_used_bytes.value(), kPool);
  EXPECT_LT(counters(a).tx_bytes.value(), 2 * kPool);
  world().host(b).app().config.reads = true;
  world().host(b).wake(world().now());
  settle();
}

TEST_F(SimFlowControlTest, HalfSpeedConsumerWastesNoBandwidth) {
  build_small_pool();
  world().host(b).app().config.hold_ns = 4 * kMs;  // 1 MiB per 4 ms at most: 2.1 Gb/s
  start_flow(a, b, 20'000);
  world().run_for(10 * kMs);
  const double rate = goodput_bps(b, 100 * kMs);
  EXPECT_GT(rate, 0.6e9) << "the sender aims at half of the pool";
  EXPECT_LT(static_cast<double>(counters(a).tx_retransmits.value()),
            0.01 * static_cast<double>(counters(a).tx_datagrams.value()));
  settle();
}

}  // namespace
}  // namespace srd::sim
