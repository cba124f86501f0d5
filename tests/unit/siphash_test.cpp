// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 against values published with the algorithm.
#include "base/siphash.hpp"

#include <array>

#include <gtest/gtest.h>

namespace srd {
namespace {

// Key 00 01 .. 0f, input 00 01 .. (n-1). n = 15 is the example of the paper's appendix A; the
// others are from the reference implementation's test vectors.
TEST(SiphashTest, GivesThePublishedValues) {
  std::array<std::uint8_t, 16> key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  std::array<std::byte, 64> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);

  const auto hash = [&](std::size_t bytes) {
    return siphash24(key, std::span(input).first(bytes));
  };
  EXPECT_EQ(hash(0), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(hash(1), 0x74f839c593dc67fdU);
  EXPECT_EQ(hash(2), 0x0d6c8009d9a94f5aU);
  EXPECT_EQ(hash(3), 0x85676696d7fb7e2dU);
  EXPECT_EQ(hash(7), 0xab0200f58b01d137U);
  EXPECT_EQ(hash(8), 0x93f5f5799a932462U);
  EXPECT_EQ(hash(15), 0xa129ca6149be45e5U);
}

TEST(SiphashTest, DependsOnEveryByteOfKeyAndInput) {
  std::array<std::uint8_t, 16> key{};
  std::array<std::byte, 33> input{};
  const std::uint64_t original = siphash24(key, input);
  for (std::uint8_t& byte : key) {
    byte ^= 1;
    EXPECT_NE(siphash24(key, input), original);
    byte ^= 1;
  }
  for (std::byte& byte : input) {
    byte ^= std::byte{1};
    EXPECT_NE(siphash24(key, input), original);
    byte ^= std::byte{1};
  }
}

}  // namespace
}  // namespace srd
