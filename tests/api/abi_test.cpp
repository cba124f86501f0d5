// SPDX-License-Identifier: Apache-2.0
// Programs built with an older or a newer srd.h than the library: structs of other sizes are read
// and filled as far as both know them.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "srd/srd.h"

#include "api/harness.hpp"

namespace srd::test {

namespace {

constexpr unsigned char kUntouched = 0xa5;

/// A struct as a newer header has it, after which one more byte must stay as it is.
template <class Struct>
struct Newer {
  Newer() noexcept {
    std::memset(static_cast<void*>(this), kUntouched, sizeof *this);
    known = Struct{};
  }

  [[nodiscard]] bool has_zeros() const noexcept {
    for (const unsigned char byte : more) {
      if (byte != 0) return false;
    }
    return true;
  }

  Struct known;
  unsigned char more[24];
  unsigned char guard;
};

template <class Struct>
constexpr std::size_t kNewerBytes = offsetof(Newer<Struct>, guard);

class AbiTest : public PairTest {
 protected:
  AbiTest() { EXPECT_TRUE(net_.connect()); }

  [[nodiscard]] srd_endpoint* alice() const { return net_.alice.handle(); }

  TwoEndpoints net_;
};

TEST_F(AbiTest, StatsOfAnOlderCallerAreFilledUpToItsEnd) {
  constexpr std::size_t kOld = offsetof(srd_stats, tx_piggybacks);
  srd_stats stats;
  std::memset(&stats, kUntouched, sizeof stats);
  stats.struct_bytes = kOld;
  ASSERT_EQ(srd_endpoint_stats(alice(), &stats), 0) << srd_last_error();
  EXPECT_EQ(stats.struct_bytes, kOld);
  EXPECT_EQ(stats.tx_messages, 1U);
  EXPECT_EQ(stats.peers_active, 1U);
  unsigned char rest[sizeof stats - kOld];
  std::memcpy(rest, reinterpret_cast<const unsigned char*>(&stats) + kOld, sizeof rest);
  for (const unsigned char byte : rest) EXPECT_EQ(byte, kUntouched);
}

TEST_F(AbiTest, StatsOfANewerCallerEndInZeros) {
  Newer<srd_stats> stats;
  stats.known.struct_bytes = kNewerBytes<srd_stats>;
  ASSERT_EQ(srd_endpoint_stats(alice(), &stats.known), 0) << srd_last_error();
  EXPECT_EQ(stats.known.struct_bytes, kNewerBytes<srd_stats>);
  EXPECT_EQ(stats.known.tx_messages, 1U);
  EXPECT_TRUE(stats.has_zeros());
  EXPECT_EQ(stats.guard, kUntouched);
}

TEST_F(AbiTest, LimitsAndPeersOfANewerCallerEndInZeros) {
  Newer<srd_limits> limits;
  limits.known.struct_bytes = kNewerBytes<srd_limits>;
  ASSERT_EQ(srd_endpoint_limits(alice(), &limits.known), 0) << srd_last_error();
  EXPECT_GT(limits.known.max_sends, 0U);
  EXPECT_TRUE(limits.has_zeros());
  EXPECT_EQ(limits.guard, kUntouched);
  Newer<srd_peer_info> info;
  info.known.struct_bytes = kNewerBytes<srd_peer_info>;
  ASSERT_EQ(srd_peer_query(alice(), net_.to_bob, &info.known), 0) << srd_last_error();
  EXPECT_EQ(info.known.state, std::uint32_t{SRD_PEER_UP});
  EXPECT_TRUE(info.has_zeros());
  EXPECT_EQ(info.guard, kUntouched);
}

TEST_F(AbiTest, PathsOfANewerCallerStandAtItsDistances) {
  std::array<srd_path_info, 64> ours;
  const int count =
      srd_peer_paths(alice(), net_.to_bob, ours.data(), ours.size(), sizeof(srd_path_info));
  ASSERT_GE(count, 2) << srd_last_error();
  std::array<Newer<srd_path_info>, 64> newer;
  ASSERT_EQ(srd_peer_paths(alice(), net_.to_bob, &newer[0].known, 2, sizeof newer[0]), count);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(newer[i].known.slot, i);
    EXPECT_EQ(newer[i].known.local.port, ours[i].local.port);
    EXPECT_TRUE(newer[i].has_zeros());
  }
  EXPECT_EQ(newer[2].guard, kUntouched);
}

TEST_F(AbiTest, DevicesOfANewerCallerStandAtItsDistances) {
  const int count = srd_devices(nullptr, 0, sizeof(srd_device_info));
  ASSERT_GE(count, 2) << "udp and pair";
  std::array<Newer<srd_device_info>, 2> newer;
  ASSERT_EQ(srd_devices(&newer[0].known, 2, sizeof newer[0]), count);
  EXPECT_STREQ(newer[0].known.driver, "udp");
  EXPECT_STREQ(newer[1].known.driver, "pair");
  EXPECT_TRUE(newer[0].has_zeros() && newer[1].has_zeros());
}

TEST_F(AbiTest, ConfigurationOfANewerCallerIsTakenIfItsNewFieldsAreZero) {
  Newer<srd_poller_config> config;
  config.known = SRD_POLLER_CONFIG_INIT;
  config.known.struct_bytes = kNewerBytes<srd_poller_config>;
  std::memset(config.more, 0, sizeof config.more);
  srd_poller* out = nullptr;
  EXPECT_EQ(srd_poller_create(net_.context.handle(), &config.known, &out), 0);
  EXPECT_EQ(srd_poller_destroy(out), 0);
  config.more[0] = 1;
  EXPECT_EQ(srd_poller_create(net_.context.handle(), &config.known, &out), -EINVAL);
  EXPECT_TRUE(error_says("the rest is not zero"));
  config.known.struct_bytes = SIZE_MAX;
  EXPECT_EQ(srd_poller_create(net_.context.handle(), &config.known, &out), -EINVAL);
  EXPECT_TRUE(error_says("struct_bytes"));
}

}  // namespace

}  // namespace srd::test
