// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <array>

#include <gtest/gtest.h>

namespace srd {
namespace {

TEST(BytesTest, LeastSignificantByteIsFirst) {
  std::array<std::uint8_t, 8> bytes{};
  store_le<std::uint16_t>(bytes.data(), 0x0102);
  EXPECT_EQ(bytes[0], 2);
  EXPECT_EQ(bytes[1], 1);
  EXPECT_EQ(bytes[2], 0);
  store_le<std::uint32_t>(bytes.data(), 0x01020304);
  EXPECT_EQ(bytes[0], 4);
  EXPECT_EQ(bytes[3], 1);
  store_le<std::uint64_t>(bytes.data(), 0x0102030405060708);
  EXPECT_EQ(bytes[0], 8);
  EXPECT_EQ(bytes[7], 1);
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data()), 0x0102030405060708U);
}

TEST(BytesTest, WorksAtAnyAlignment) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t offset = 0; offset < 8; ++offset) {
    store_le<std::uint64_t>(bytes.data() + offset, 0x1122334455667788);
    EXPECT_EQ(load_le<std::uint64_t>(bytes.data() + offset), 0x1122334455667788U);
    EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + offset), 0x7788U);
  }
}

TEST(BytesTest, KeepsSigns) {
  std::array<std::uint8_t, 2> bytes{};
  store_le<std::int16_t>(bytes.data(), -64);
  EXPECT_EQ(load_le<std::int16_t>(bytes.data()), -64);
}

}  // namespace
}  // namespace srd
