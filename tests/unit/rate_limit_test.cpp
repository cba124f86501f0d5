// SPDX-License-Identifier: Apache-2.0
#include "base/rate_limit.hpp"

#include <gtest/gtest.h>

namespace srd {
namespace {

int take_all(RateLimit& limit, std::uint64_t now_ns) {
  int taken = 0;
  while (limit.take(now_ns)) ++taken;
  return taken;
}

TEST(RateLimitTest, LetsABurstThroughAndThenItsRate) {
  RateLimit limit(3, 100);
  EXPECT_EQ(take_all(limit, 1000), 3);
  EXPECT_EQ(take_all(limit, 1099), 0);
  EXPECT_EQ(take_all(limit, 1100), 1);
  EXPECT_EQ(take_all(limit, 1350), 2);
  EXPECT_EQ(take_all(limit, 1400), 1) << "fractions are kept";
}

TEST(RateLimitTest, HoldsNoMoreThanABurst) {
  RateLimit limit(3, 100);
  EXPECT_EQ(take_all(limit, UINT64_MAX / 2), 3);
  EXPECT_EQ(take_all(limit, UINT64_MAX - 1), 3);
}

TEST(RateLimitTest, CountsWhatItRefused) {
  RateLimit limit(1, 100);
  EXPECT_TRUE(limit.take(0));
  EXPECT_FALSE(limit.take(1));
  EXPECT_FALSE(limit.take(2));
  EXPECT_EQ(limit.take_refused(), 2U);
  EXPECT_EQ(limit.take_refused(), 0U);
}

}  // namespace
}  // namespace srd
