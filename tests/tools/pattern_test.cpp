// SPDX-License-Identifier: Apache-2.0
// What --verify rests on: any wrong byte shows, any repeated message shows.
#include "srd_perf/pattern.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace perf {
namespace {

std::vector<std::byte> make(std::uint64_t key, std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  fill_pattern(key, number, out);
  return out;
}

TEST(PatternTest, CarriesItsNumber) {
  EXPECT_EQ(read_number(make(7, 0x1234567890, 64)), 0x1234567890U);
}

TEST(PatternTest, IsAcceptedInPiecesOfAnyCut) {
  for (std::size_t bytes = 8; bytes < 40; ++bytes) {
    const auto message = make(7, 99, bytes);
    for (std::size_t cut = 0; cut <= bytes; ++cut) {
      PatternCheck check(7, 99);
      const std::span<const std::byte> all(message);
      EXPECT_TRUE(check.accept(all.first(cut)) && check.accept(all.subspan(cut)));
    }
  }
}

TEST(PatternTest, EverySingleWrongByteIsFound) {
  auto message = make(7, 99, 100);
  for (std::size_t at = 0; at < message.size(); ++at) {
    message[at] ^= std::byte{0x40};
    PatternCheck check(7, 99);
    EXPECT_FALSE(check.accept(message)) << at;
    EXPECT_EQ(check.wrong_at() / 8, at / 8);
    message[at] ^= std::byte{0x40};
  }
}

TEST(PatternTest, DiffersByStreamAndNumber) {
  const std::uint64_t key = pattern_key("cookie", 0);
  EXPECT_NE(key, pattern_key("cookie", 1));
  EXPECT_NE(key, pattern_key("cookid", 0));
  PatternCheck wrong_number(key, 2);
  EXPECT_FALSE(wrong_number.accept(make(key, 1, 64)));
  PatternCheck wrong_stream(pattern_key("cookie", 1), 1);
  EXPECT_FALSE(wrong_stream.accept(make(key, 1, 64)));
}

TEST(SequenceSetTest, EachNumberIsFreshOnceInAnyOrder) {
  SequenceSet set;
  for (const std::uint64_t number : {5U, 0U, 1U, 200U, 4U}) {
    EXPECT_EQ(set.insert(number), SequenceSet::Insert::fresh);
    EXPECT_EQ(set.insert(number), SequenceSet::Insert::duplicate);
  }
  EXPECT_EQ(set.count(), 5U);
  EXPECT_EQ(set.complete_below(), 2U);
}

TEST(SequenceSetTest, RemembersNumbersWhoseMemoryIsGone) {
  SequenceSet set;
  constexpr std::uint64_t kMany = 2'000'000;
  for (std::uint64_t number = 0; number < kMany; ++number) {
    ASSERT_EQ(set.insert(number), SequenceSet::Insert::fresh);
  }
  EXPECT_EQ(set.complete_below(), kMany);
  for (const std::uint64_t number : {std::uint64_t{0}, kMany / 2, kMany - 1}) {
    EXPECT_EQ(set.insert(number), SequenceSet::Insert::duplicate);
  }
}

TEST(SequenceSetTest, ANumberFromNowhereTakesNoMemory) {
  SequenceSet set;
  EXPECT_EQ(set.insert(UINT64_MAX / 2), SequenceSet::Insert::implausible);
  EXPECT_EQ(set.count(), 0U);
}

}  // namespace
}  // namespace perf
