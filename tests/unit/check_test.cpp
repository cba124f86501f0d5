// SPDX-License-Identifier: Apache-2.0
// The seeded check of packets: what it covers, and what it finds.
#include "srd/wire/check.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "srd/wire/packet.hpp"

#include "unit/vectors.hpp"

namespace srd::wire {
namespace {

using test::make_vectors;
using test::Vector;

std::size_t header_bytes_of(const Vector& vector) {
  CommonHeader common;
  EXPECT_TRUE(decode(vector.bytes, common));
  return fixed_bytes(common.type);
}

bool covers_payload(const Vector& vector) {
  return vector.name != "data_header_check";
}

TEST(WireCheckTest, FindsEveryFlippedBit) {
  for (const Vector& vector : make_vectors()) {
    const std::size_t header_bytes = header_bytes_of(vector);
    ASSERT_TRUE(verify(vector.bytes, header_bytes, vector.seed)) << vector.name;
    std::vector<std::byte> bytes = vector.bytes;
    const std::size_t covered = covers_payload(vector) ? bytes.size() : header_bytes;
    for (std::size_t bit = 0; bit < 8 * covered; ++bit) {
      const auto flip = static_cast<std::byte>(1U << bit % 8);
      bytes[bit / 8] ^= flip;
      // A flip of FULL, or of the type, changes what is covered as well; that must not help either.
      EXPECT_FALSE(verify(bytes, header_bytes, vector.seed)) << vector.name << " bit " << bit;
      bytes[bit / 8] ^= flip;
    }
  }
}

TEST(WireCheckTest, FindsEveryTruncationOfACoveredPacket) {
  for (const Vector& vector : make_vectors()) {
    if (!covers_payload(vector)) continue;
    for (std::size_t bytes = 0; bytes < vector.bytes.size(); ++bytes) {
      const std::vector<std::byte> shorter(
          vector.bytes.begin(), vector.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_FALSE(verify(shorter, header_bytes_of(vector), vector.seed)) << vector.name;
    }
  }
}

TEST(WireCheckTest, HeaderFormIgnoresPayload) {
  for (const Vector& vector : make_vectors()) {
    if (covers_payload(vector)) continue;
    std::vector<std::byte> bytes = vector.bytes;
    bytes.back() ^= std::byte{1};
    EXPECT_TRUE(verify(bytes, kDataBytes, vector.seed));
    bytes.pop_back();
    EXPECT_FALSE(verify(bytes, kDataBytes, vector.seed)) << "a truncated segment";
  }
}

TEST(WireCheckTest, ControlPacketsAreCoveredInAnyForm) {
  std::array<std::byte, 72> bytes{};
  CommonHeader common;
  common.type = PacketType::ack;
  encode(bytes, common);
  constexpr std::array<std::uint64_t, 1> kWords = {0x1234};
  encode(bytes, AckHeader{}, kWords, {});
  const Segment rest{bytes.data() + kAckBytes, 8};
  seal(std::span(bytes).first(kAckBytes), std::span(&rest, 1), 77);
  EXPECT_TRUE(verify(bytes, kAckBytes, 77));
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(verify(bytes, kAckBytes, 77)) << "the bitmap is not covered";
}

TEST(WireCheckTest, RecordsOfSmallAreCoveredInAnyForm) {
  std::array<std::byte, kSmallBytes + 16> bytes{};
  CommonHeader common;
  common.type = PacketType::small;
  encode(bytes, common);
  const Segment rest{bytes.data() + kSmallBytes, 16};
  seal(std::span(bytes).first(kSmallBytes), std::span(&rest, 1), 77);
  EXPECT_TRUE(verify(bytes, kSmallBytes, 77));
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(verify(bytes, kSmallBytes, 77));
}

TEST(WireCheckTest, PayloadInPiecesEqualsPayloadInOne) {
  std::vector<std::byte> bytes(kDataBytes + 1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  CommonHeader common;
  common.type = PacketType::data;
  common.flags = kFlagFullCheck;
  encode(bytes, common);
  for (std::uint32_t split = 0; split <= 1000; split += 125) {
    const std::array<Segment, 2> pieces = {
        Segment{bytes.data() + kDataBytes, split},
        Segment{bytes.data() + kDataBytes + split, 1000 - split}};
    seal(std::span(bytes).first(kDataBytes), pieces, 5);
    EXPECT_TRUE(verify(bytes, kDataBytes, 5)) << split;
  }
}

TEST(WireCheckTest, SealIgnoresWhatWasInTheCheckField) {
  std::array<std::byte, kCloseBytes> bytes{};
  CommonHeader common;
  common.type = PacketType::close;
  encode(bytes, common);
  bytes[kCheckOffset] = std::byte{0xaa};
  seal(bytes, {}, 9);
  EXPECT_TRUE(verify(bytes, kCloseBytes, 9));
}

TEST(WireCheckTest, PacketsShorterThanTheirHeaderFail) {
  const std::array<std::byte, kDataBytes> bytes{};
  EXPECT_FALSE(verify(std::span(bytes).first(0), kCommonBytes, 0));
  EXPECT_FALSE(verify(std::span(bytes).first(kCommonBytes - 1), kCommonBytes, 0));
  EXPECT_FALSE(verify(std::span(bytes).first(kDataBytes - 1), kDataBytes, 0));
}

TEST(WireCheckTest, SeedDependsOnEveryInputAndTheDirection) {
  Nonce a{1}, b{2};
  const std::uint32_t seed = derive_seed({a, 3}, {b, 4});
  EXPECT_EQ(derive_seed({a, 3}, {b, 4}), seed);
  EXPECT_NE(derive_seed({b, 4}, {a, 3}), seed) << "direction";
  EXPECT_NE(derive_seed({a, 5}, {b, 4}), seed);
  EXPECT_NE(derive_seed({a, 3}, {b, 5}), seed);
  for (Nonce* nonce : {&a, &b}) {
    for (std::uint8_t& byte : *nonce) {
      byte ^= 0x80;
      EXPECT_NE(derive_seed({a, 3}, {b, 4}), seed);
      byte ^= 0x80;
    }
  }
}

}  // namespace
}  // namespace srd::wire
