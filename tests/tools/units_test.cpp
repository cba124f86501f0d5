// SPDX-License-Identifier: Apache-2.0
// Numbers with suffixes, in and out.
#include "srd_perf/units.hpp"

#include <gtest/gtest.h>

namespace perf {
namespace {

TEST(UnitsTest, BytesUsePowersOf1024) {
  EXPECT_EQ(parse_bytes("64"), 64U);
  EXPECT_EQ(parse_bytes("1k"), 1024U);
  EXPECT_EQ(parse_bytes("128K"), 131072U);
  EXPECT_EQ(parse_bytes("1.5M"), 1572864U);
  EXPECT_EQ(parse_bytes("2G"), 2147483648U);
}

TEST(UnitsTest, RatesUsePowersOf1000) {
  EXPECT_EQ(parse_rate("50K"), 50000U);
  EXPECT_EQ(parse_rate("1.9G"), 1900000000U);
}

TEST(UnitsTest, WhatIsNoNumberIsRefused) {
  for (const char* text : {"", "K", "-1", "1KB", "1 K", "1e3", "nan", "inf", "99999999T", "0x10"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
  }
}

TEST(UnitsTest, AmountsHaveThreeDigitsAsInIperf3) {
  EXPECT_EQ(format_bytes(0), "0.00 Bytes");
  EXPECT_EQ(format_bytes(1374389535), "1.28 GBytes");
  EXPECT_EQ(format_bytes(785796), " 767 KBytes");
  EXPECT_EQ(format_bytes(1023.0 * 1024), "1023 KBytes");
  EXPECT_EQ(format_bytes(16.0 * 1024 * 1024), "16.0 MBytes");
}

TEST(UnitsTest, RatesAreAdaptiveOrInTheUnitAskedFor) {
  EXPECT_EQ(format_rate(11.0e9, UnitFormat::adaptive), "11.0 Gbits");
  EXPECT_EQ(format_rate(101e6, UnitFormat::adaptive), " 101 Mbits");
  EXPECT_EQ(format_rate(1.5e9, UnitFormat::mbits), "1500 Mbits");
  EXPECT_EQ(format_rate(8.0 * 1024 * 1024, UnitFormat::mbytes), "1.00 MBytes");
}

TEST(UnitsTest, FormatsAreOneKnownLetter) {
  EXPECT_EQ(parse_unit_format("g"), UnitFormat::gbits);
  EXPECT_EQ(parse_unit_format("G"), UnitFormat::gbytes);
  EXPECT_FALSE(parse_unit_format("x").has_value());
  EXPECT_FALSE(parse_unit_format("gg").has_value());
}

}  // namespace
}  // namespace perf
