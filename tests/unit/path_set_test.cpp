// SPDX-License-Identifier: Apache-2.0
#include "srd/core/path_set.hpp"

#include <set>

#include <gtest/gtest.h>

namespace srd::core {
namespace {

constexpr std::uint64_t kBurst = 4000;

class PathSetTest : public testing::Test {
 protected:
  void SetUp() override {
    paths_.reset(8);
    for (std::uint32_t i = 0; i < 8; ++i) {
      paths_[i].path = PathId{i};
      paths_.set_state(i, SlotState::good);
    }
  }

  PathSet paths_;
};

TEST_F(PathSetTest, SpraysOverAllGoodSlots) {
  std::set<std::uint32_t> used;
  for (int i = 0; i < 8; ++i) used.insert(paths_.choose(1, {1 << 20, 0, kBurst}, 0));
  EXPECT_EQ(used.size(), 8U);
}

TEST_F(PathSetTest, SuspectSlotsCarryNothing) {
  paths_.set_state(3, SlotState::suspect);
  for (int i = 0; i < 100; ++i) EXPECT_NE(paths_.choose(1, {1 << 20, 0, kBurst}, 0), 3U);
}

TEST_F(PathSetTest, NoGoodSlotMeansNoChoice) {
  for (std::uint32_t i = 0; i < 8; ++i) paths_.set_state(i, SlotState::untried);
  EXPECT_EQ(paths_.choose(1, {1 << 20, 0, kBurst}, 0), kSlotsMax);
}

TEST_F(PathSetTest, SlotWithItsShareInFlightWaits) {
  paths_[2].in_flight_bytes = 1 << 20;
  for (int i = 0; i < 100; ++i) EXPECT_NE(paths_.choose(1, {1 << 20, 0, kBurst}, 0), 2U);
}

TEST_F(PathSetTest, AvoidedSlotsAreTakenOnlyIfNothingElseIsLeft) {
  EXPECT_NE(paths_.choose(1, {1 << 20, 0, kBurst}, 0xfe), 1U);
  EXPECT_EQ(paths_.choose(1, {1 << 20, 0, kBurst}, 0xfe), 0U);
  paths_.set_state(0, SlotState::suspect);
  EXPECT_NE(paths_.choose(1, {1 << 20, 0, kBurst}, 0xfe), kSlotsMax);
}

TEST_F(PathSetTest, RefusedSlotRestsUntilItsTime) {
  for (std::uint32_t i = 1; i < 8; ++i) paths_.set_state(i, SlotState::closed);
  paths_[0].blocked_until_ns = 1000;
  EXPECT_EQ(paths_.choose(999, {1 << 20, 0, kBurst}, 0), kSlotsMax);
  EXPECT_EQ(paths_.choose(1000, {1 << 20, 0, kBurst}, 0), 0U);
}

// One slow path must not hold the window: what has the longer queue loses share to what has the
// shorter.
TEST_F(PathSetTest, DelayShiftsShare) {
  std::uint64_t now = 0;
  for (int round = 0; round < 50; ++round, now += 2'000'000) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      paths_[i].queue_delay_ns = i == 0 ? 900'000 : 100'000;
      paths_.rebalance(i, now, 200'000.0, 500'000.0);
    }
  }
  EXPECT_LT(paths_[0].weight * 4, paths_[1].weight);
  EXPECT_GT(paths_[0].weight, 0.0);
}

TEST_F(PathSetTest, EqualDelaysKeepSharesEqual) {
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      paths_[i].queue_delay_ns = 300'000;
      paths_.rebalance(i, static_cast<std::uint64_t>(round) * 2'000'000, 300'000.0, 500'000.0);
    }
  }
  EXPECT_DOUBLE_EQ(paths_[0].weight, paths_[7].weight);
}

// Slots of one path see the same delay, whatever their shares.
TEST_F(PathSetTest, SharesOfSlotsWithOneDelayComeTogetherAgain) {
  std::uint64_t now = 0;
  const auto rounds = [&](int count, std::uint64_t delay_of_first_ns) {
    for (int round = 0; round < count; ++round, now += 2'000'000) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        paths_[i].queue_delay_ns = i == 0 ? delay_of_first_ns : 300'000;
        paths_.rebalance(i, now, 300'000.0, 500'000.0);
      }
    }
  };
  rounds(50, 0);
  ASSERT_GT(paths_[0].weight, 3 * paths_[1].weight);
  rounds(400, 300'000);
  EXPECT_LT(paths_[0].weight, 1.1 * paths_[1].weight);
}

// A path that healed has one slot; a burst on each of the others is all of the window.
TEST_F(PathSetTest, FullWindowGoesByShareNotByTurns) {
  const std::uint64_t window = 8 * kBurst;
  for (std::uint32_t i = 0; i < 8; ++i) paths_[i].queue_delay_ns = i == 0 ? 0 : 300'000;
  for (int round = 0; round < 50; ++round) {
    paths_.rebalance(0, static_cast<std::uint64_t>(round) * 2'000'000, 300'000.0, 500'000.0);
  }
  paths_[0].in_flight_bytes = kBurst;
  EXPECT_EQ(paths_.choose(1, {window, 7 * kBurst, kBurst}, 0), 0U)
      << "the others have nothing in flight, but small shares";
  std::set<std::uint32_t> used;
  for (int i = 0; i < 8; ++i) used.insert(paths_.choose(1, {window, kBurst, kBurst}, 0));
  EXPECT_GT(used.size(), 6U) << "an empty window is shared in turns";
}

TEST_F(PathSetTest, NewcomerStartsBelowTheAverage) {
  paths_.set_state(5, SlotState::suspect);
  paths_.set_state(5, SlotState::good);
  EXPECT_LT(paths_[5].weight, paths_[0].weight);
}

TEST_F(PathSetTest, FreshestPrefersGoodOverRecent) {
  paths_[1].last_heard_ns = 10;
  paths_[2].last_heard_ns = 20;
  EXPECT_EQ(paths_.freshest(0), 2U);
  paths_.set_state(2, SlotState::suspect);
  EXPECT_EQ(paths_.freshest(0), 1U);
  EXPECT_NE(paths_.freshest(2), 1U);
}

}  // namespace
}  // namespace srd::core
