// SPDX-License-Identifier: Apache-2.0
// CRC32C against published values, and every implementation against a bitwise one.
#include "base/crc32c.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace srd {
namespace {

std::uint32_t bitwise(std::uint32_t crc, std::span<const std::byte> data) {
  crc = ~crc;
  for (const std::byte byte : data) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
  }
  return ~crc;
}

std::vector<std::byte> noise(std::size_t bytes) {
  Prng prng(0x5eed);
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(prng.next());
  return data;
}

class Crc32cTest : public testing::TestWithParam<Crc32cMethod> {
 protected:
  void SetUp() override {
    if (!crc32c_has(GetParam())) {
      GTEST_SKIP() << "this CPU cannot run the " << to_string(GetParam()) << " implementation";
    }
  }

  static std::uint32_t run(std::uint32_t crc, std::span<const std::byte> data) {
    return crc32c_by(GetParam(), crc, data);
  }
};

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST_P(Crc32cTest, GivesThePublishedValues) {
  std::array<std::byte, 32> data{};
  EXPECT_EQ(run(0, data), 0x8a9136aaU);
  data.fill(std::byte{0xff});
  EXPECT_EQ(run(0, data), 0x62a8ab43U);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  EXPECT_EQ(run(0, data), 0x46dd794eU);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(run(0, data), 0x113fdb5cU);
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(run(0, std::as_bytes(std::span(kDigits))), 0xe3069283U);
  EXPECT_EQ(run(0, {}), 0U);
}

TEST_P(Crc32cTest, EqualsTheBitwiseOneAtEveryLengthAndAlignment) {
  const std::vector<std::byte> data = noise(1100 + 64);
  for (std::size_t offset = 0; offset < 64; ++offset) {
    std::uint32_t expected = bitwise(0x1234abcd, {});
    for (std::size_t bytes = 0; bytes <= 1100; ++bytes) {
      ASSERT_EQ(run(0x1234abcd, std::span(data).subspan(offset, bytes)), expected)
          << bytes << " bytes at offset " << offset;
      if (bytes < 1100) expected = bitwise(expected, std::span(data).subspan(offset + bytes, 1));
    }
  }
}

TEST_P(Crc32cTest, EqualsTheBitwiseOneForLongData) {
  const std::vector<std::byte> data = noise(70'000);
  for (const std::size_t bytes : {1408U, 4096U, 6143U, 6144U, 6145U, 12'300U, 65'507U, 69'999U}) {
    EXPECT_EQ(run(7, std::span(data).first(bytes)), bitwise(7, std::span(data).first(bytes)))
        << bytes;
  }
}

TEST_P(Crc32cTest, ChainsOverAnySplit) {
  const std::vector<std::byte> data = noise(700);
  const std::uint32_t whole = bitwise(0x53524430, data);
  for (std::size_t split = 0; split <= data.size(); ++split) {
    const std::uint32_t first = run(0x53524430, std::span(data).first(split));
    ASSERT_EQ(run(first, std::span(data).subspan(split)), whole) << split;
  }
}

TEST_P(Crc32cTest, DoesNotReadBeyondItsData) {
  // In memory of exactly that size, so that AddressSanitizer sees any read outside.
  for (std::size_t bytes = 1; bytes < 600; bytes += 7) {
    const std::vector<std::byte> data = noise(bytes);
    EXPECT_EQ(run(0, data), bitwise(0, data));
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Crc32cTest, testing::ValuesIn(kCrc32cMethods),
                         [](const auto& tested) { return to_string(tested.param); });

TEST(Crc32cDispatchTest, TheChosenOneEqualsTheBitwiseOne) {
  const std::vector<std::byte> data = noise(3000);
  EXPECT_EQ(crc32c(99, data), bitwise(99, data));
  EXPECT_EQ(crc32c(99, data), bitwise(99, data)) << "after the first call chose";
}

TEST(Crc32cDispatchTest, TheTableIsAlwaysThere) {
  EXPECT_TRUE(crc32c_has(Crc32cMethod::table));
}

}  // namespace
}  // namespace srd
