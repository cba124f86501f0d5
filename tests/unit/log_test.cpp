// SPDX-License-Identifier: Apache-2.0
// Where the library's messages go, and which.
#include "base/log.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace srd {
namespace {

struct Message {
  int level;
  std::string text;
  bool operator==(const Message&) const = default;
};

void collect(void* user, int level, const char* text) {
  static_cast<std::vector<Message>*>(user)->push_back({level, text});
}

// Each level has its own rate limit, so that a test that exhausts one leaves the others alone.
class LogTest : public testing::Test {
 protected:
  void TearDown() override { srd_log_set(SRD_LOG_WARNING, nullptr, nullptr); }

  std::vector<Message> messages_;
};

TEST_F(LogTest, FormatsAndPassesOn) {
  srd_log_set(SRD_LOG_WARNING, collect, &messages_);
  log(LogLevel::warning, "path %d lost after %s", 3, "2 ms");
  EXPECT_EQ(messages_, (std::vector<Message>{{SRD_LOG_WARNING, "path 3 lost after 2 ms"}}));
}

TEST_F(LogTest, DropsWhatIsAboveTheLevel) {
  srd_log_set(SRD_LOG_WARNING, collect, &messages_);
  EXPECT_TRUE(is_logged(LogLevel::error));
  EXPECT_TRUE(is_logged(LogLevel::warning));
  EXPECT_FALSE(is_logged(LogLevel::info));
  log(LogLevel::info, "not wanted");
  log(LogLevel::error, "wanted");
  EXPECT_EQ(messages_, (std::vector<Message>{{SRD_LOG_ERROR, "wanted"}}));
}

TEST_F(LogTest, WithoutASinkMessagesGoNowhere) {
  srd_log_set(SRD_LOG_DEBUG, nullptr, nullptr);
  log(LogLevel::error, "nobody reads this");
  EXPECT_TRUE(messages_.empty());
}

TEST_F(LogTest, CutsLongMessages) {
  srd_log_set(SRD_LOG_WARNING, collect, &messages_);
  log(LogLevel::warning, "%s", std::string(5000, 'x').c_str());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].text, std::string(1023, 'x'));
}

TEST_F(LogTest, LimitsEachLevelByItself) {
  srd_log_set(SRD_LOG_INFO, collect, &messages_);
  for (int i = 0; i < 5000; ++i) log(LogLevel::info, "again");
  EXPECT_GE(messages_.size(), 50U);
  EXPECT_LT(messages_.size(), 1000U) << "5000 messages took minutes, or there is no limit";
  messages_.clear();
  log(LogLevel::error, "another level");
  EXPECT_EQ(messages_, (std::vector<Message>{{SRD_LOG_ERROR, "another level"}}));
}

TEST_F(LogTest, ASinkMayReplaceItselfAndLog) {
  srd_log_set(
      SRD_LOG_WARNING,
      [](void* user, int level, const char* text) {
        log(LogLevel::error, "from within: dropped");
        srd_log_set(SRD_LOG_WARNING, nullptr, nullptr);
        collect(user, level, text);
      },
      &messages_);
  log(LogLevel::warning, "first");
  log(LogLevel::warning, "second");
  EXPECT_EQ(messages_, (std::vector<Message>{{SRD_LOG_WARNING, "first"}}));
}

// In a process of its own, because the environment is read once.
TEST(LogDeathTest, WarnsOfAnUnknownLevelInTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SRD_LOG", "loud", 1);
        is_logged(LogLevel::error);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "SRD_LOG must be error, warning, info or debug");
}

TEST(LogDeathTest, ReadsTheLevelFromTheEnvironmentAndWritesToStandardError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SRD_LOG", "debug", 1);
        log(LogLevel::debug, "detail %d", 7);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "srd: debug: detail 7");
}

}  // namespace
}  // namespace srd
