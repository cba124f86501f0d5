// SPDX-License-Identifier: Apache-2.0
// Receivers that run out of memory: rejections are told reliably, nothing hangs, nothing is lost.
#include <map>
#include <vector>

#include "sim/support.hpp"

namespace srd::sim {
namespace {

// Six senders were each promised the whole pool of b before it knew of the others, so they
// overcommit it.
class SimRejectionTest : public SimTest {
 protected:
  static constexpr std::size_t kSenders = 6;

  void build_crowd(std::uint64_t pool_bytes, std::uint32_t max_message_bytes) {
    HostConfig host = fast_host();
    host.limits.receive_pool_bytes = pool_bytes;
    host.limits.max_message_bytes = max_message_bytes;
    build(quiet_fabric(), host, host);
    crowd_.push_back(a);
    while (crowd_.size() < kSenders) crowd_.push_back(world().add_host(host));
    world().host(b).app().config.releases = false;
  }

  void crowd_sends(std::uint64_t bytes, std::size_t count) {
    for (const HostId from : crowd_) send_many(from, b, bytes, count);
  }

  std::uint64_t rejected() { return counters(b).rx_rejected_messages.value(); }

  std::vector<HostId> crowd_;
};

TEST_F(SimRejectionTest, LostNackDoesNotTurnRejectionIntoSuccess) {
  build_crowd(256U << 10, 64U << 10);
  const Rule& lost = world().drop_next({.type = PacketType::nack, .from = b}, 200);
  crowd_sends(1000, 200);
  world().run_for(50 * kMs);
  ASSERT_GT(rejected(), 0U);
  EXPECT_GT(lost.hits, 0U);
  // What was reported as delivered was delivered: the pool is full, so some cannot be.
  EXPECT_LE(world().checker().succeeded(), world().checker().delivered());
  EXPECT_LT(world().checker().succeeded(), kSenders * 200);
  world().host(b).app().config.releases = true;
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 200);
}

// The list holds 256 rejections of each peer. While none of them is told, what would need another
// is dropped without an acknowledgement: nothing is lost silently.
TEST_F(SimRejectionTest, FullListOfRejectionsAcknowledgesNothingMore) {
  build_crowd(256U << 10, 64U << 10);
  bool silent = true;
  Match nacks{.type = PacketType::nack, .from = b};
  nacks.where = [&silent](const PacketView&) { return silent; };
  world().drop_next(nacks, UINT64_MAX);
  crowd_sends(100, 2000);
  world().run_for(100 * kMs);
  EXPECT_LE(rejected(), kSenders * 256);
  EXPECT_GT(rejected(), kSenders * 200) << "what is left of a list takes no whole datagram";
  EXPECT_LE(counters(b).receive_pool_used_bytes.value(), 256U << 10);
  EXPECT_GT(counters(b).rx_no_memory.value(), 0U);
  EXPECT_LE(world().checker().succeeded(), world().checker().delivered());
  silent = false;
  world().host(b).app().config.releases = true;
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 2000);
}

// Every way back but that of the question swallows NACKs, as behind a NAT that forgot the others.
TEST_F(SimRejectionTest, NacksAskedForComeTheWayOfTheQuestion) {
  build_crowd(256U << 10, 64U << 10);
  std::map<HostId, std::uint16_t> asked_from;
  Match question{.type = PacketType::probe, .to = b};
  question.where = [&](const PacketView& packet) {
    wire::ProbeHeader probe;
    if (wire::decode(packet.bytes, probe) && (probe.flags & wire::kProbeWantNack) != 0) {
      asked_from[packet.from] = packet.source.port;
    }
    return false;
  };
  world().drop_next(question, UINT64_MAX);
  Match other_way{.type = PacketType::nack, .from = b};
  other_way.where = [&](const PacketView& packet) {
    return packet.destination.port != asked_from[packet.to];
  };
  const Rule& lost = world().drop_next(other_way, UINT64_MAX);
  crowd_sends(1000, 200);
  world().run_for(50 * kMs);
  ASSERT_GT(lost.hits, 0U);
  world().host(b).app().config.releases = true;
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 200);
}

// Rejected messages keep the bundles that their payload lies in until they come again, and need
// bundles to come again.
TEST_F(SimRejectionTest, RejectedSmallMessagesThatHoldAllBundlesComeAgain) {
  HostConfig host = fast_host();
  host.limits.bundles = 4;
  host.limits.receive_pool_bytes = 16U << 10;
  host.limits.max_message_bytes = 8U << 10;
  build(quiet_fabric(), host, host);
  crowd_.push_back(a);
  while (crowd_.size() < kSenders) crowd_.push_back(world().add_host(host));
  world().host(b).app().config.releases = false;
  crowd_sends(400, 60);
  world().run_for(100 * kMs);
  ASSERT_GT(rejected(), 0U);
  world().host(b).app().config.releases = true;
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 60);
}

TEST_F(SimRejectionTest, RejectedLargeMessageLeavesNoPartial) {
  build_crowd(512U << 10, 128U << 10);
  crowd_sends(100'000, 6);
  world().run_for(50 * kMs);
  ASSERT_GT(rejected(), 0U);
  EXPECT_LE(counters(b).receive_pool_used_bytes.value(), 512U << 10);
  world().host(b).app().config.releases = true;
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 6);
}

TEST_F(SimRejectionTest, LateSegmentOfARejectedMessageOpensNoPartial) {
  build_crowd(512U << 10, 128U << 10);
  Rule late;
  late.match = {.type = PacketType::data, .to = b, .where = [n = 0U](const PacketView&) mutable {
                  return ++n % 20 == 0;
                }};
  late.delay_ns = 30 * kMs;
  world().add_rule(late);
  crowd_sends(100'000, 6);
  world().run_for(50 * kMs);
  ASSERT_GT(rejected(), 0U);
  world().host(b).app().config.releases = true;
  settle();
}

TEST_F(SimRejectionTest, LostAbortAndVoidAreRepeated) {
  build_crowd(512U << 10, 128U << 10);
  const Rule& aborts = world().drop_next({.type = PacketType::abort, .to = b}, 5);
  const Rule& voids = world().drop_next({.type = PacketType::void_psns, .to = b}, 5);
  crowd_sends(100'000, 6);
  world().run_for(50 * kMs);
  ASSERT_GT(rejected(), 0U);
  EXPECT_GT(aborts.hits + voids.hits, 0U);
  world().host(b).app().config.releases = true;
  settle();
}

TEST_F(SimRejectionTest, LargestMessagesOfAllPeersDoNotDeadlockThePool) {
  build_crowd(2U << 20, 1U << 20);  // two of the largest fit
  world().host(b).app().config.releases = true;
  crowd_sends(1U << 20, 3);
  settle();
  EXPECT_EQ(world().checker().succeeded(), kSenders * 3);
}

TEST_F(SimRejectionTest, MessageLongerThanThePeerTakesFailsAlone) {
  HostConfig small = fast_host();
  small.limits.max_message_bytes = 100'000;
  build(quiet_fabric(), fast_host(), small);
  world().checker().excuse({.status = Errc::message_too_long, .host = b});
  const MessageNumber before = send(a, b, 50'000);
  const MessageNumber too_long = send(a, b, 200'000);
  const MessageNumber after = send(a, b, 100'000);
  settle();
  EXPECT_EQ(message(before).status, Errc::ok);
  EXPECT_EQ(message(too_long).status, Errc::message_too_long);
  EXPECT_EQ(message(too_long).deliveries, 0U);
  EXPECT_EQ(message(after).status, Errc::ok);
}

}  // namespace
}  // namespace srd::sim
