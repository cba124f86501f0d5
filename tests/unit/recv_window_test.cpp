// SPDX-License-Identifier: Apache-2.0
#include "srd/core/recv_window.hpp"

#include <set>

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace srd::core {
namespace {

using Words = std::array<std::uint64_t, wire::kAckWordsMax>;
using Verdict = RecvWindow::Verdict;

struct Ack {
  wire::AckHeader header;
  Words received{}, ce{};
  std::uint32_t cumulative = 0;

  [[nodiscard]] bool has(const Words& words, std::uint32_t psn) const {
    const std::uint32_t base = cumulative + static_cast<std::uint32_t>(header.bitmap_base);
    const std::uint32_t at = psn - base;
    return at < header.words * 64U && (words[at / 64] >> (at % 64) & 1U) != 0;
  }
};

Ack next_ack(RecvWindow& window) {
  Ack ack;
  window.fill_ack(ack.header, ack.received, ack.ce);
  ack.cumulative = window.base();
  return ack;
}

class RecvWindowTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override { window_.reset(GetParam(), 1024); }

  std::uint32_t first() const { return GetParam(); }

  RecvWindow window_;
};

TEST_P(RecvWindowTest, InOrderNeedsNoBitmap) {
  for (std::uint32_t i = 0; i < 300; ++i) window_.accept(first() + i, false);
  EXPECT_EQ(window_.base(), first() + 300);
  EXPECT_FALSE(window_.has_hole());
  EXPECT_EQ(next_ack(window_).header.words, 0);
}

TEST_P(RecvWindowTest, TellsHoleAndWhatLiesBehindIt) {
  window_.accept(first(), false);
  window_.accept(first() + 2, false);
  const Ack ack = next_ack(window_);
  EXPECT_EQ(ack.cumulative, first() + 1);
  EXPECT_FALSE(ack.has(ack.received, first() + 1));
  EXPECT_TRUE(ack.has(ack.received, first() + 2));
}

TEST_P(RecvWindowTest, DuplicateAndBeyondAreRecognised) {
  window_.accept(first() + 5, false);
  EXPECT_EQ(window_.check(first() + 5), Verdict::duplicate);
  EXPECT_EQ(window_.check(first() - 1), Verdict::duplicate);
  EXPECT_EQ(window_.check(first() + 1023), Verdict::fresh);
  EXPECT_EQ(window_.check(first() + 1024), Verdict::beyond);
}

TEST_P(RecvWindowTest, EachChangeRidesInTwoAcks) {
  window_.accept(first() + 70, false);
  EXPECT_TRUE(window_.has_news());
  EXPECT_TRUE(next_ack(window_).has(next_ack(window_).received, first() + 70));
  EXPECT_FALSE(window_.has_news());
}

TEST_P(RecvWindowTest, CeBelowTheCumulativeAckIsTold) {
  window_.accept(first(), true);
  window_.accept(first() + 1, false);
  EXPECT_TRUE(window_.has_ce_news());
  const Ack ack = next_ack(window_);
  EXPECT_NE(ack.header.flags & wire::kAckCeBitmap, 0);
  EXPECT_TRUE(ack.has(ack.ce, first()));
  EXPECT_FALSE(ack.has(ack.ce, first() + 1));
}

// A path that lags puts more PSNs between the slots' packets than one ACK can describe.
TEST_P(RecvWindowTest, WindowWiderThanOneAckIsToldWhole) {
  RecvWindow wide;
  wide.reset(first(), 8192);
  std::set<std::uint32_t> untold;
  for (std::uint32_t i = 1; i < 8000; i += 3) {
    wide.accept(first() + i, false);
    untold.insert(first() + i);
  }
  int acks = 0;
  while (wide.has_news()) {
    const Ack ack = next_ack(wide);
    ASSERT_LE(ack.header.words, wire::kAckWordsMax);
    std::erase_if(untold, [&](std::uint32_t psn) { return ack.has(ack.received, psn); });
    ASSERT_LT(++acks, 100);
  }
  EXPECT_TRUE(untold.empty());
}

TEST_P(RecvWindowTest, RetellCoversEverythingFromTheCumulativeAck) {
  window_.accept(first() + 3, false);
  window_.accept(first() + 900, false);
  while (window_.has_news()) next_ack(window_);
  next_ack(window_);
  window_.retell_all();
  const Ack ack = next_ack(window_);
  EXPECT_TRUE(ack.has(ack.received, first() + 3));
  EXPECT_TRUE(ack.has(ack.received, first() + 900));
}

TEST_P(RecvWindowTest, MatchesAReferenceSetUnderRandomArrivals) {
  Prng prng(first());
  std::set<std::uint32_t> received;
  std::uint32_t base = first();
  for (int step = 0; step < 20000; ++step) {
    const auto psn = static_cast<std::uint32_t>(base + prng.below(1100) - 20);
    const auto ahead = static_cast<std::int32_t>(psn - base);
    const Verdict expected = ahead >= 1024                         ? Verdict::beyond
                             : ahead < 0 || received.contains(psn) ? Verdict::duplicate
                                                                   : Verdict::fresh;
    ASSERT_EQ(window_.check(psn), expected);
    if (expected == Verdict::fresh && prng.chance(0.7)) {
      window_.accept(psn, false);
      received.insert(psn);
      while (received.erase(base) == 1) ++base;
    }
    if (prng.chance(0.3)) {  // fill the oldest hole, as a retransmission does
      if (window_.check(base) == Verdict::fresh) window_.accept(base, false);
      received.insert(base);
      while (received.erase(base) == 1) ++base;
    }
    ASSERT_EQ(window_.base(), base);
    ASSERT_EQ(window_.has_hole(), !received.empty());
    if (prng.chance(0.1)) {
      const Ack ack = next_ack(window_);
      for (std::uint32_t w = 0; w < ack.header.words * 64U; ++w) {
        const std::uint32_t at = base + static_cast<std::uint32_t>(ack.header.bitmap_base) + w;
        if (static_cast<std::int32_t>(at - base) < 0) continue;
        ASSERT_EQ(ack.has(ack.received, at), received.contains(at));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FirstPsn, RecvWindowTest,
                         testing::Values(0U, 1U, 63U, 64U, 12345U, 0xffffff00U, 0xffffffffU));

}  // namespace
}  // namespace srd::core
