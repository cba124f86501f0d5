// SPDX-License-Identifier: Apache-2.0
#include "srd/core/rtt.hpp"

#include <gtest/gtest.h>

namespace srd::core {
namespace {

TEST(RttEstimatorTest, FirstSampleSetsAll) {
  RttEstimator rtt;
  EXPECT_FALSE(rtt.has_sample());
  EXPECT_EQ(rtt.base_ns(), UINT64_MAX);
  rtt.add(80'000, 1);
  EXPECT_EQ(rtt.srtt_ns(), 80'000U);
  EXPECT_EQ(rtt.variation_ns(), 40'000U);
  EXPECT_EQ(rtt.base_ns(), 80'000U);
}

TEST(RttEstimatorTest, ConvergesAndLosesVariation) {
  RttEstimator rtt;
  rtt.add(1'000'000, 1);
  for (std::uint64_t i = 0; i < 100; ++i) rtt.add(100'000, 2 + i);
  EXPECT_NEAR(static_cast<double>(rtt.srtt_ns()), 100'000.0, 1'000.0);
  EXPECT_LT(rtt.variation_ns(), 5'000U);
}

TEST(RttEstimatorTest, BaseForgetsAfterTwentySeconds) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  RttEstimator rtt;
  rtt.add(50'000, 100 * kSecond);
  for (std::uint64_t s = 101; s < 109; ++s) rtt.add(90'000, s * kSecond);
  EXPECT_EQ(rtt.base_ns(), 50'000U);
  for (std::uint64_t s = 109; s < 140; ++s) rtt.add(90'000, s * kSecond);
  EXPECT_EQ(rtt.base_ns(), 90'000U);
}

}  // namespace
}  // namespace srd::core
