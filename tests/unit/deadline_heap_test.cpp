// SPDX-License-Identifier: Apache-2.0
#include "base/deadline_heap.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace srd {
namespace {

TEST(DeadlineHeapTest, EmptyIsNever) {
  DeadlineHeap heap;
  ASSERT_TRUE(heap.create(4));
  EXPECT_EQ(heap.earliest(), kNoDeadline);
  EXPECT_EQ(heap.earliest_id(), kNone);
  heap.set(2, kNoDeadline);
  EXPECT_EQ(heap.earliest(), kNoDeadline);
}

TEST(DeadlineHeapTest, MatchesASearchUnderRandomChanges) {
  constexpr std::uint32_t kIds = 50;
  DeadlineHeap heap;
  ASSERT_TRUE(heap.create(kIds));
  std::vector<std::uint64_t> reference(kIds, kNoDeadline);
  Prng prng(5);
  for (int step = 0; step < 20000; ++step) {
    const auto id = static_cast<Index>(prng.below(kIds));
    const std::uint64_t at = prng.chance(0.3) ? kNoDeadline : prng.below(1000);
    heap.set(id, at);
    reference[id] = at;
    const std::uint64_t least = *std::min_element(reference.begin(), reference.end());
    ASSERT_EQ(heap.earliest(), least);
    if (least != kNoDeadline) {
      ASSERT_EQ(reference[heap.earliest_id()], least);
    }
  }
}

}  // namespace
}  // namespace srd
