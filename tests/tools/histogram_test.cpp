// SPDX-License-Identifier: Apache-2.0
// The histogram against exact percentiles.
#include "common/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace apps {
namespace {

TEST(HistogramTest, EmptySaysZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min_ns(), 0U);
  EXPECT_EQ(histogram.max_ns(), 0U);
  EXPECT_EQ(histogram.percentile_ns(99), 0U);
  EXPECT_EQ(histogram.mean_ns(), 0.0);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 1000; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile_ns(50), 500U);
  EXPECT_EQ(histogram.percentile_ns(99), 990U);
  EXPECT_EQ(histogram.percentile_ns(99.9), 999U);
  EXPECT_EQ(histogram.percentile_ns(100), 1000U);
  EXPECT_EQ(histogram.percentile_ns(0), 1U);
  EXPECT_DOUBLE_EQ(histogram.mean_ns(), 500.5);
}

TEST(HistogramTest, PercentilesAreWithinThePrecisionOverNineDecades) {
  for (const unsigned bits : {7U, 10U}) {
    Histogram histogram(bits);
    std::mt19937_64 random(42);
    std::uniform_real_distribution<double> exponent(0, 9);
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 20000; ++i) {
      values.push_back(static_cast<std::uint64_t>(std::pow(10, exponent(random))));
      histogram.record(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double percentile : {1.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
      const auto rank = static_cast<std::size_t>(std::ceil(percentile / 100 * 20000 - 1e-9));
      const auto exact = static_cast<double>(values[rank - 1]);
      const auto got = static_cast<double>(histogram.percentile_ns(percentile));
      EXPECT_GE(got, exact) << percentile;
      EXPECT_LE(got, exact * (1 + std::ldexp(1.0, -static_cast<int>(bits))) + 1) << percentile;
    }
    EXPECT_EQ(histogram.max_ns(), values.back());
    EXPECT_EQ(histogram.min_ns(), values.front());
  }
}

TEST(HistogramTest, ValuesBeyondTheRangeKeepTheirMaximum) {
  Histogram histogram;
  histogram.record(UINT64_MAX);
  histogram.record(5);
  EXPECT_EQ(histogram.max_ns(), UINT64_MAX);
  EXPECT_EQ(histogram.percentile_ns(50), 5U);
  EXPECT_EQ(histogram.percentile_ns(100), UINT64_MAX);
}

TEST(HistogramTest, ResetForgets) {
  Histogram histogram;
  histogram.record(700);
  histogram.reset();
  histogram.record(3);
  EXPECT_EQ(histogram.count(), 1U);
  EXPECT_EQ(histogram.max_ns(), 3U);
  EXPECT_EQ(histogram.min_ns(), 3U);
  EXPECT_EQ(histogram.percentile_ns(99), 3U);
}

}  // namespace
}  // namespace apps
