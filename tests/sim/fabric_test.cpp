// SPDX-License-Identifier: Apache-2.0
// The simulated network itself: links and ECMP do what they say.
#include "sim/fabric.hpp"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace srd::sim {
namespace {

Train make_train(std::size_t datagrams, std::uint32_t bytes, TimeNs at) {
  Train train;
  train.head = train.tail = at;
  for (std::size_t i = 0; i < datagrams; ++i) {
    train.packets.push_back({static_cast<std::uint32_t>(i * bytes), bytes, Ecn::ect0});
  }
  train.memory.resize(datagrams * bytes);
  return train;
}

class SimLinkTest : public ::testing::Test {
 protected:
  std::size_t carried(Link& link, Train train) {
    apart_.clear();
    link.carry(train, 0, prng_, apart_);
    last_ = train;
    return train.packets.size();
  }

  Prng prng_{7};
  std::vector<Straggler> apart_;
  Train last_;
};

TEST_F(SimLinkTest, SerializesAtItsRateAndDelays) {
  Link link({.rate_bps = 1'000'000'000, .delay_ns = 10 * kUs});
  ASSERT_EQ(carried(link, make_train(10, 1250, 0)), 10U);  // 10 us each
  EXPECT_EQ(last_.head, 20 * kUs);
  EXPECT_EQ(last_.tail, 110 * kUs);
  ASSERT_EQ(carried(link, make_train(1, 1250, 50 * kUs)), 1U);  // waits behind the first train
  EXPECT_EQ(last_.tail, 120 * kUs);
}

TEST_F(SimLinkTest, DropsWhatDoesNotFitTheQueue) {
  Link link({.rate_bps = 1'000'000'000, .queue_bytes = 10'000});
  EXPECT_EQ(carried(link, make_train(20, 1000, 0)), 10U);
  EXPECT_EQ(link.counters.overflowed, 10U);
  EXPECT_EQ(carried(link, make_train(1, 1000, kMs)), 1U) << "the queue has drained by then";
}

TEST_F(SimLinkTest, MarksByQueueDepth) {
  Link link({.rate_bps = 1'000'000'000, .ecn_bytes = 4'999});
  ASSERT_EQ(carried(link, make_train(10, 1000, 0)), 10U);
  EXPECT_EQ(last_.packets[4].ecn, Ecn::ect0);
  EXPECT_EQ(last_.packets[5].ecn, Ecn::ce);
  EXPECT_EQ(link.counters.marked, 5U);
}

TEST_F(SimLinkTest, LosesSinglePacketsOrWholeBursts) {
  Link single({.queue_bytes = 1U << 30, .loss = 0.5});
  Link bursts({.queue_bytes = 1U << 30, .loss = 0.5, .whole_bursts = true});
  std::size_t partly = 0, whole = 0;
  for (TimeNs at = 0; at < 100 * kMs; at += kMs) {
    const std::size_t left = carried(single, make_train(40, 1000, at));
    if (left > 0 && left < 40) ++partly;
    const std::size_t left_of_burst = carried(bursts, make_train(40, 1000, at));
    EXPECT_TRUE(left_of_burst == 0 || left_of_burst == 40);
    if (left_of_burst == 0) ++whole;
  }
  EXPECT_EQ(partly, 100U);
  EXPECT_NEAR(static_cast<double>(whole), 50, 20);
}

TEST_F(SimLinkTest, DeadLinkSwallowsSilently) {
  Link link({.dead = true});
  EXPECT_EQ(carried(link, make_train(5, 1000, 0)), 0U);
  EXPECT_EQ(link.counters.swallowed, 5U);
}

TEST_F(SimLinkTest, DuplicatesReordersAndCorrupts) {
  Link link({.queue_bytes = 1U << 30,
             .duplicate = 0.1,
             .corrupt = 0.1,
             .reorder = 0.1,
             .reorder_ns = kMs});
  std::size_t in_order = 0, changed = 0;
  for (TimeNs at = 0; at < 100 * kMs; at += kMs) {
    in_order += carried(link, make_train(10, 1000, at));
    for (const std::byte value : last_.memory) changed += value != std::byte{0} ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(link.counters.duplicated), 100, 40);
  EXPECT_NEAR(static_cast<double>(link.counters.reordered), 100, 40);
  EXPECT_NEAR(static_cast<double>(link.counters.corrupted), 100, 40);
  EXPECT_EQ(in_order, 1000 - link.counters.reordered);
  EXPECT_GE(changed, link.counters.corrupted / 2);
}

class SimEcmpTest : public ::testing::Test {
 protected:
  SimEcmpTest() {
    for (std::uint32_t host = 0; host < 2; ++host) fabric_.add_host(host, {});
    for (std::uint8_t i = 0; i < 2; ++i) {
      address_[i].family = 4;
      address_[i].bytes[3] = i;
      address_[i].port = 7000;
    }
  }

  Prng prng_{11};
  Fabric fabric_{FabricConfig{}, prng_};
  std::array<Address, 2> address_{};
};

TEST_F(SimEcmpTest, OneTupleKeepsOnePathAndPortsSpread) {
  std::set<std::uint32_t> seen;
  for (std::uint16_t port = 50'000; port < 50'200; ++port) {
    address_[0].port = port;
    const std::uint32_t path = fabric_.path_of(HostId{0}, address_[0], address_[1]);
    EXPECT_EQ(path, fabric_.path_of(HostId{0}, address_[0], address_[1]));
    seen.insert(path);
  }
  EXPECT_EQ(seen.size(), 4U);
}

TEST_F(SimEcmpTest, BothDirectionsAreIndependent) {
  std::size_t same = 0;
  for (std::uint16_t port = 50'000; port < 50'400; ++port) {
    address_[0].port = port;
    if (fabric_.path_of(HostId{0}, address_[0], address_[1]) ==
        fabric_.path_of(HostId{1}, address_[1], address_[0])) {
      ++same;
    }
  }
  EXPECT_NEAR(static_cast<double>(same), 100, 40) << "a quarter by chance";
}

}  // namespace
}  // namespace srd::sim
