// SPDX-License-Identifier: Apache-2.0
#include "srd/core/congestion.hpp"

#include <gtest/gtest.h>

namespace srd::core {
namespace {

constexpr std::uint64_t kMss = 1408;
constexpr std::uint64_t kRtt = 100'000;

class CongestionTest : public testing::Test {
 protected:
  void SetUp() override {
    Congestion::Setup setup;
    setup.mss_bytes = kMss;
    setup.initial_bytes = 16 * kMss;
    setup.window_limit_bytes = 8192 * kMss;
    window_.reset(Timing::kernel(), setup);
  }

  /// A round trip in which the whole window was acknowledged at that queueing delay.
  void round(std::uint64_t delay_ns, double marked = 0.0, bool limited = true) {
    const std::uint64_t bytes = std::max<std::uint64_t>(window_.window_bytes(), kMss);
    for (int part = 0; part < 10; ++part) {
      now_ns_ += (kRtt + delay_ns) / 10;
      window_.add_delay(delay_ns, bytes / 10);
      Congestion::Feedback feedback;
      feedback.now_ns = now_ns_;
      feedback.acked_bytes = bytes / 10;
      feedback.ce_bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) / 10 * marked);
      feedback.delayed_bytes = delay_ns > window_.target_ns() ? bytes / 10 : 0;
      feedback.base_rtt_ns = kRtt;
      feedback.srtt_ns = kRtt + delay_ns;
      feedback.window_limited = limited;
      window_.on_burst_sent();
      window_.on_ack(feedback);
    }
  }

  Congestion window_;
  std::uint64_t now_ns_ = 1'000'000;
};

TEST_F(CongestionTest, GrowsWhileQueuesAreEmpty) {
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 4; ++i) round(0);
  EXPECT_GT(window_.window_bytes(), 8 * before);
}

TEST_F(CongestionTest, DoesNotGrowWhenTheApplicationLimits) {
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 20; ++i) round(0, 0.0, false);
  EXPECT_EQ(window_.window_bytes(), before);
}

TEST_F(CongestionTest, QueueAboveTargetCutsAtMostByHalfPerRoundTrip) {
  for (int i = 0; i < 8; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 3; ++i) round(5'000'000);
  EXPECT_LT(window_.window_bytes(), before * 3 / 4);
  EXPECT_GE(window_.window_bytes(), before / 16);
}

TEST_F(CongestionTest, RandomMarksWithoutQueueDoNotCut) {
  for (int i = 0; i < 4; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 20; ++i) round(50'000, 0.1);
  EXPECT_GE(window_.window_bytes(), before);
}

TEST_F(CongestionTest, MarksOnMostOfAFillingQueueCut) {
  for (int i = 0; i < 8; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 4; ++i) round(window_.target_ns() * 6 / 10, 1.0);
  EXPECT_LE(window_.window_bytes(), before * 85 / 100);
  EXPECT_GE(window_.window_bytes(), before * 30 / 100) << "a fifth at most per round trip";
}

TEST_F(CongestionTest, MarksOnMostStopGrowthThoughTheQueueIsShort) {
  for (int i = 0; i < 4; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 10; ++i) round(0, 1.0);
  EXPECT_EQ(window_.window_bytes(), before);
  for (int i = 0; i < 10; ++i) round(0);
  EXPECT_GT(window_.window_bytes(), before) << "and without them it grows";
}

TEST_F(CongestionTest, FewLossesDoNotCut) {
  for (int i = 0; i < 8; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 100; ++i) {
    round(0);
    if (i % 5 == 0) window_.on_burst_lost(now_ns_);  // 2 % of the bursts
  }
  EXPECT_GE(window_.window_bytes(), before);
}

TEST_F(CongestionTest, ManyLossesCut) {
  for (int i = 0; i < 8; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  for (int i = 0; i < 40; ++i) {
    now_ns_ += 1'000'000;
    window_.on_burst_sent();
    window_.on_burst_lost(now_ns_);
  }
  EXPECT_LT(window_.window_bytes(), before);
}

TEST_F(CongestionTest, IncastGoesBelowOneDatagramAndIsPaced) {
  for (int i = 0; i < 200; ++i) round(20'000'000);
  EXPECT_LT(window_.window_bytes(), kMss);
  EXPECT_GT(window_.window_bytes(), 0U);
  EXPECT_GT(window_.pacing_gap_ns(kRtt), kRtt);
  for (int i = 0; i < 400; ++i) round(0);
  EXPECT_GT(window_.window_bytes(), 8 * kMss);
  EXPECT_EQ(window_.pacing_gap_ns(kRtt), 0U);
}

TEST_F(CongestionTest, OutageStartsOver) {
  for (int i = 0; i < 8; ++i) round(0);
  window_.on_outage();
  EXPECT_EQ(window_.window_bytes(), kMss);
}

TEST_F(CongestionTest, DropsInThePeersHostLimitApartFromTheNetwork) {
  for (int i = 0; i < 8; ++i) round(0);
  const std::uint64_t before = window_.window_bytes();
  now_ns_ += 10'000'000;
  window_.on_host_drops(now_ns_);
  EXPECT_LT(window_.window_bytes(), before);
  for (int i = 0; i < 100; ++i) window_.on_pressure(0, before);
  EXPECT_GE(window_.window_bytes(), before);
}

}  // namespace
}  // namespace srd::core
