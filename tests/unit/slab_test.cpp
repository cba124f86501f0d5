// SPDX-License-Identifier: Apache-2.0
#include "base/slab.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace srd {
namespace {

struct Item {
  Index prev = kNone, next = kNone;
  int value = 7;
};

TEST(SlabTest, GivesEachIndexOnceAndThenNone) {
  Slab<Item> slab;
  ASSERT_TRUE(slab.create(3));
  EXPECT_EQ(slab.take(), 0U);
  EXPECT_EQ(slab.take(), 1U);
  EXPECT_EQ(slab.take(), 2U);
  EXPECT_EQ(slab.take(), kNone);
  EXPECT_EQ(slab.used(), 3U);
}

TEST(SlabTest, ReusesTheMostRecentAndCountsItsLives) {
  Slab<Item> slab;
  ASSERT_TRUE(slab.create(3));
  const Index first = slab.take(), second = slab.take();
  slab[second].value = 9;
  const std::uint32_t life = slab.generation(second);
  slab.give(first);
  slab.give(second);
  EXPECT_EQ(slab.take(), second);
  EXPECT_EQ(slab[second].value, 7);
  EXPECT_NE(slab.generation(second), life);
  EXPECT_TRUE(slab.is_used(second));
  EXPECT_FALSE(slab.is_used(first));
  EXPECT_FALSE(slab.is_used(99));
}

TEST(IndexListTest, KeepsOrderThroughRemovalsAnywhere) {
  Slab<Item> slab;
  ASSERT_TRUE(slab.create(8));
  IndexList list;
  for (int i = 0; i < 5; ++i) list.push_back(slab, slab.take());
  list.push_front(slab, slab.take());
  list.remove(slab, 2);
  list.remove(slab, 5);
  list.remove(slab, 4);
  std::vector<Index> order;
  while (!list.empty()) order.push_back(list.pop_front(slab));
  EXPECT_EQ(order, (std::vector<Index>{0, 1, 3}));
}

}  // namespace
}  // namespace srd
