// SPDX-License-Identifier: Apache-2.0
// What people are told when something goes wrong that they can mend: the endpoint's advice at any
// time, and one warning in the log.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/harness.hpp"

namespace srd::test {

namespace {

struct Logged {
  int level;
  std::string text;
  bool could_read;  ///< an endpoint, from inside the sink
};

class AdviceTest : public PairTest, public ::testing::WithParamInterface<bool> {
 protected:
  AdviceTest() {
    srd_log_set(
        SRD_LOG_WARNING,
        [](void* self, int level, const char* text) {
          auto& test = *static_cast<AdviceTest*>(self);
          const auto info = test.net_.alice.peer_info(test.net_.to_bob);
          test.logged_.push_back({level, text, info.has_value()});
        },
        this);
  }

  ~AdviceTest() override { srd_log_set(SRD_LOG_WARNING, nullptr, nullptr); }

  void poll_often() {
    std::array<Completion, 4> completions;
    for (int i = 0; i < 20; ++i) {
      (void)harvest(net_.poller, completions);
      (void)harvest(net_.poller, completions, std::chrono::milliseconds(0));
    }
  }

  std::vector<Logged> logged_;
  TwoEndpoints net_{{}, {.shared = GetParam()}};
};

TEST_P(AdviceTest, NothingIsSaidWhileAllIsWell) {
  ASSERT_TRUE(net_.connect());
  poll_often();
  EXPECT_EQ(net_.alice.advice(), "");
  EXPECT_TRUE(logged_.empty());
}

TEST_P(AdviceTest, DropsAreLoggedOncePerEndpoint) {
  pair_faults().host_drops = 3;
  poll_often();
  pair_faults().host_drops = 5;
  poll_often();
  ASSERT_EQ(logged_.size(), 2U) << "alice and bob";
  for (const Endpoint* endpoint : {&net_.alice, &net_.bob}) {
    const std::string start = "endpoint " + to_string(endpoint->address()) + ": datagrams were";
    EXPECT_TRUE(logged_[0].text.starts_with(start) || logged_[1].text.starts_with(start))
        << logged_[0].text << "\n"
        << logged_[1].text;
  }
  EXPECT_EQ(logged_[0].level, SRD_LOG_WARNING);
  EXPECT_NE(logged_[0].text.find("(3 so far)"), std::string::npos);
  EXPECT_TRUE(logged_[0].could_read);
}

TEST_P(AdviceTest, AdviceHasTheNumbersOfNow) {
  pair_faults().host_drops = 5;
  poll_often();
  EXPECT_EQ(net_.alice.advice(), "datagrams were dropped (5 so far). Run: x");
  std::string other_thread;
  std::thread([&] { other_thread = net_.bob.advice(); }).join();
  EXPECT_EQ(other_thread, net_.alice.advice());
}

TEST_P(AdviceTest, ShortBufferGetsTheBeginningAndTheLengthOfAll) {
  pair_faults().host_drops = 5;
  poll_often();
  const std::string all = net_.alice.advice();
  char text[10];
  EXPECT_EQ(srd_endpoint_advice(net_.alice.handle(), text, sizeof text),
            static_cast<int>(all.size()));
  EXPECT_EQ(text, all.substr(0, 9));
  EXPECT_EQ(srd_endpoint_advice(net_.alice.handle(), nullptr, 0), static_cast<int>(all.size()));
}

INSTANTIATE_TEST_SUITE_P(Pollers, AdviceTest, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Shared" : "Plain"; });

}  // namespace

}  // namespace srd::test
