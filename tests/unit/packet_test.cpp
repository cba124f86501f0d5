// SPDX-License-Identifier: Apache-2.0
// Encoders and decoders against each other and against malformed input. What lies where is pinned
// by vectors_test.cpp.
#include "srd/wire/packet.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/prng.hpp"
#include "support/packet_roundtrip.hpp"
#include "unit/vectors.hpp"

namespace srd::wire {
namespace {

using test::make_vectors;
using test::Vector;

using Words = std::array<std::uint64_t, kAckWordsMax>;

std::array<std::byte, 512> filled(std::uint8_t byte) {
  std::array<std::byte, 512> bytes;
  bytes.fill(static_cast<std::byte>(byte));
  return bytes;
}

// Random bytes where the header lies, decoded; tried again until its ranges are met.
template <class Header>
Header random_header(Prng& prng, std::size_t begin, std::size_t end) {
  std::array<std::byte, 512> bytes = filled(0);
  while (true) {
    for (std::size_t i = begin; i < end; ++i) bytes[i] = static_cast<std::byte>(prng.next());
    // Fields of a few values would hardly ever be met by chance.
    if constexpr (std::is_same_v<Header, DataHeader>) bytes[38] = std::byte{0};
    if constexpr (std::is_same_v<Header, SmallHeader>) bytes[24] &= std::byte{0x3f};
    if constexpr (std::is_same_v<Header, NackHeader>) bytes[20] &= std::byte{7};
    if constexpr (std::is_same_v<Header, ProbeAckHeader>) bytes[42] &= std::byte{1};
    if constexpr (std::is_same_v<Header, AbortHeader>) bytes[30] &= std::byte{1};
    if constexpr (std::is_same_v<Header, VoidHeader>) {
      bytes[20] &= std::byte{0x3f};
      bytes[21] = std::byte{0};
    }
    if constexpr (std::is_same_v<Header, HelloHeader>) {
      bytes[24] &= std::byte{15};
      bytes[25] &= std::byte{15};
      bytes[27] &= std::byte{3};
      bytes[112] &= std::byte{1};
      bytes[113] &= std::byte{0x3f};
      bytes[115] = static_cast<std::byte>(8 + prng.below(6));
      bytes[130] &= std::byte{1};
    }
    Header header;
    if (decode(std::span<const std::byte>(bytes), header)) return header;
  }
}

// What is encoded over any old contents is decoded again, whatever is in the bytes around.
template <class Header>
void round_trip(std::size_t begin, std::size_t end) {
  Prng prng(begin * 1000 + end);
  for (int i = 0; i < 1000; ++i) {
    const Header header = random_header<Header>(prng, begin, end);
    std::array<std::byte, 512> clean = filled(0), dirty = filled(0xff);
    ASSERT_EQ(encode(clean, header), end);
    ASSERT_EQ(encode(dirty, header), end);
    ASSERT_TRUE(std::equal(clean.begin() + static_cast<std::ptrdiff_t>(begin),
                           clean.begin() + static_cast<std::ptrdiff_t>(end),
                           dirty.begin() + static_cast<std::ptrdiff_t>(begin)))
        << "a byte of the header is not written";
    ASSERT_EQ(dirty[begin == 0 ? end : begin - 1], std::byte{0xff}) << "written outside";
    ASSERT_EQ(dirty[end], std::byte{0xff}) << "written beyond the end";
    Header decoded;
    ASSERT_TRUE(decode(std::span<const std::byte>(clean), decoded));
    ASSERT_EQ(decoded, header);
  }
}

TEST(PacketTest, CommonHeaderSurvives) {
  Prng prng(1);
  for (int i = 0; i < 1000; ++i) {
    CommonHeader header;
    header.type = static_cast<PacketType>(1 + prng.below(13));
    header.flags = static_cast<std::uint8_t>(prng.next());
    header.slot = static_cast<std::uint8_t>(prng.next());
    header.generation = static_cast<std::uint8_t>(prng.below(16));
    header.attempt = static_cast<std::uint8_t>(prng.below(16));
    header.dst_ctx = static_cast<std::uint32_t>(prng.next());
    header.psn = static_cast<std::uint32_t>(prng.next());
    header.tx_time = static_cast<std::uint32_t>(prng.next());
    std::array<std::byte, 512> bytes = filled(0xff);
    ASSERT_EQ(encode(bytes, header), kCommonBytes);
    ASSERT_EQ(bytes[kCommonBytes], std::byte{0xff});
    CommonHeader decoded;
    ASSERT_TRUE(decode(std::span<const std::byte>(bytes), decoded));
    ASSERT_EQ(decoded, header);
  }
}

TEST(PacketTest, DataSurvives) {
  round_trip<DataHeader>(20, kDataBytes);
}

TEST(PacketTest, SmallSurvives) {
  round_trip<SmallHeader>(20, kSmallBytes);
}

TEST(PacketTest, NackSurvives) {
  round_trip<NackHeader>(20, kNackBytes);
}

TEST(PacketTest, ProbeSurvives) {
  round_trip<ProbeHeader>(20, kProbeBytes);
}

TEST(PacketTest, ProbeAckSurvives) {
  round_trip<ProbeAckHeader>(20, kProbeAckBytes);
}

TEST(PacketTest, HelloSurvives) {
  round_trip<HelloHeader>(20, kHelloBytes);
}

TEST(PacketTest, RetrySurvives) {
  round_trip<RetryHeader>(20, kRetryBytes);
}

TEST(PacketTest, ResetSurvives) {
  round_trip<ResetHeader>(20, kResetBytes);
}

TEST(PacketTest, CloseSurvives) {
  round_trip<CloseHeader>(20, kCloseBytes);
}

TEST(PacketTest, VoidSurvives) {
  round_trip<VoidHeader>(20, kVoidBytes);
}

TEST(PacketTest, AbortSurvives) {
  round_trip<AbortHeader>(20, kAbortBytes);
}

TEST(PacketTest, AckSurvivesWithAnyNumberOfWords) {
  Prng prng(2);
  Words received, ce;
  for (std::uint64_t& word : received) word = prng.next();
  for (std::uint64_t& word : ce) word = prng.next();
  for (std::uint8_t words = 0; words <= kAckWordsMax; ++words) {
    for (const bool has_ce : {false, true}) {
      AckHeader header;
      header.bitmap_base = static_cast<std::int16_t>(prng.next());
      header.ack_seq = static_cast<std::uint16_t>(prng.next());
      header.flags = kAckDuplicate;
      std::array<std::byte, 512> bytes = filled(0xff);
      const std::size_t length = encode(bytes, header, std::span(received).first(words),
                                        std::span(ce).first(has_ce ? words : 0U));
      ASSERT_EQ(length, kAckBytes + (has_ce ? 16U : 8U) * words);
      ASSERT_EQ(bytes[length], std::byte{0xff});
      AckHeader decoded;
      Words got_received = {}, got_ce;
      got_ce.fill(99);
      ASSERT_TRUE(decode(std::span(bytes).first(length), decoded, got_received, got_ce));
      ASSERT_EQ(decoded.words, words);
      ASSERT_EQ(decoded.bitmap_base, header.bitmap_base);
      ASSERT_EQ(decoded.flags, has_ce && words > 0 ? kAckDuplicate | kAckCeBitmap : kAckDuplicate);
      ASSERT_EQ(ack_bytes(decoded), length);
      for (std::size_t i = 0; i < words; ++i) {
        ASSERT_EQ(got_received[i], received[i]);
        ASSERT_EQ(got_ce[i], has_ce ? ce[i] : 0);
      }
    }
  }
}

TEST(PacketTest, SmallRecordSurvives) {
  SmallRecord record;
  record.chan_seq = 0x01020304;
  record.port = 0x0506;
  record.bytes = 500;
  std::array<std::byte, 512> bytes = filled(0xff);
  ASSERT_EQ(encode(bytes, record), kSmallRecordBytes);
  SmallRecord decoded;
  ASSERT_TRUE(decode(std::span<const std::byte>(bytes), decoded));
  EXPECT_EQ(decoded, record);
}

TEST(PacketTest, RecordWhosePayloadIsNotThereIsRefused) {
  SmallRecord record;
  std::array<std::byte, 512> bytes = filled(0);
  for (const std::uint16_t payload : {std::uint16_t{499}, std::uint16_t{500}}) {
    record.bytes = payload;
    encode(bytes, record);
    SmallRecord decoded;
    EXPECT_TRUE(decode(std::span<const std::byte>(bytes).first(512), decoded));
    EXPECT_FALSE(decode(std::span<const std::byte>(bytes).first(511), decoded))
        << "payload or padding is missing";
  }
}

TEST(PacketTest, StrideOfRecordsIsAMultipleOfFour) {
  EXPECT_EQ(small_record_stride(0), 12U);
  EXPECT_EQ(small_record_stride(1), 16U);
  EXPECT_EQ(small_record_stride(4), 16U);
  EXPECT_EQ(small_record_stride(5), 20U);
}

// ---- malformed packets ------------------------------------------------------------------------

// In memory of exactly the shortened size, so that AddressSanitizer sees a read beyond it.
TEST(PacketTest, EveryTruncatedHeaderIsRefused) {
  for (const Vector& vector : make_vectors()) {
    CommonHeader common;
    ASSERT_TRUE(decode(vector.bytes, common));
    const std::size_t needed = fixed_bytes(common.type);
    for (std::size_t bytes = 0; bytes < needed; ++bytes) {
      const std::vector<std::byte> shorter(
          vector.bytes.begin(), vector.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_FALSE(test::reencode(shorter).has_value()) << vector.name << " cut to " << bytes;
    }
  }
}

TEST(PacketTest, EveryTruncationIsRefusedOrLeavesAPrefix) {
  for (const Vector& vector : make_vectors()) {
    for (std::size_t bytes = 0; bytes < vector.bytes.size(); ++bytes) {
      const std::vector<std::byte> shorter(
          vector.bytes.begin(), vector.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
      const auto again = test::reencode(shorter);
      if (!again) continue;
      ASSERT_GE(again->size(), shorter.size());
      EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), again->begin())) << vector.name;
    }
  }
}

TEST(PacketTest, TruncatedAckBitmapIsRefused) {
  for (const Vector& vector : make_vectors()) {
    if (vector.name != "ack_ce" && vector.name != "ack_holes") continue;
    AckHeader ack;
    Words received, ce;
    ASSERT_TRUE(decode(vector.bytes, ack, received, ce));
    EXPECT_FALSE(decode(std::span(vector.bytes).first(vector.bytes.size() - 1), ack, received, ce));
  }
}

TEST(PacketTest, BodyEndsAfterTheBitmapsOfAnAck) {
  for (const Vector& vector : make_vectors()) {
    CommonHeader common;
    ASSERT_TRUE(decode(vector.bytes, common));
    std::size_t expected = fixed_bytes(common.type);
    if (common.type == PacketType::ack) {
      AckHeader ack;
      Words received, ce;
      ASSERT_TRUE(decode(vector.bytes, ack, received, ce));
      expected = ack_bytes(ack);
    }
    EXPECT_EQ(body_bytes(vector.bytes, common.type), expected) << vector.name;
    EXPECT_EQ(body_bytes(std::span(vector.bytes).first(expected), common.type), expected);
    EXPECT_EQ(body_bytes(std::span(vector.bytes).first(expected - 1), common.type), 0U);
  }
  EXPECT_EQ(body_bytes(filled(0), static_cast<PacketType>(15)), 0U);
}

TEST(PacketTest, OtherVersionsAreRefused) {
  std::array<std::byte, 512> bytes = filled(0);
  CommonHeader common;
  for (unsigned version = 0; version < 16; ++version) {
    bytes[0] = static_cast<std::byte>(version << 4 | 1);
    EXPECT_EQ(decode(std::span<const std::byte>(bytes), common), version == 0) << version;
  }
}

TEST(PacketTest, UnknownTypesAreRefused) {
  std::array<std::byte, 512> bytes = filled(0);
  CommonHeader common;
  for (unsigned type = 0; type < 16; ++type) {
    bytes[0] = static_cast<std::byte>(type);
    EXPECT_EQ(decode(std::span<const std::byte>(bytes), common), type >= 1 && type <= 13) << type;
    EXPECT_EQ(fixed_bytes(static_cast<PacketType>(type)) > 0, type >= 1 && type <= 13) << type;
  }
}

// Which values of the byte at `offset` a decoder accepts when the rest is `header`.
template <class Header>
std::vector<unsigned> accepted_values(const Header& header, std::size_t offset) {
  std::array<std::byte, 512> bytes = filled(0);
  encode(bytes, header);
  std::vector<unsigned> accepted;
  for (unsigned value = 0; value < 256; ++value) {
    bytes[offset] = static_cast<std::byte>(value);
    Header decoded;
    if (decode(std::span<const std::byte>(bytes), decoded)) accepted.push_back(value);
  }
  return accepted;
}

std::vector<unsigned> range(unsigned first, unsigned last) {
  std::vector<unsigned> values;
  for (unsigned value = first; value <= last; ++value) values.push_back(value);
  return values;
}

HelloHeader valid_hello() {
  HelloHeader hello;
  hello.version_max = 15;
  hello.incarnation = 1;
  hello.paths = 1;
  hello.window_log2 = 8;
  return hello;
}

TEST(PacketTest, ValuesOutOfRangeAreRefused) {
  EXPECT_EQ(accepted_values(DataHeader{}, 38), range(0, 0)) << "op of DATA";
  SmallHeader small;
  EXPECT_EQ(accepted_values(small, 24), range(1, 64)) << "count of SMALL";
  EXPECT_EQ(accepted_values(SmallRecord{}, 8), range(0, 0)) << "op of a record";
  EXPECT_EQ(accepted_values(NackHeader{}, 20), range(1, 4)) << "code of NACK";
  EXPECT_EQ(accepted_values(ProbeAckHeader{}, 42), range(0, 1)) << "ce of PROBE_ACK";
  EXPECT_EQ(accepted_values(VoidHeader{}, 20), range(1, 64)) << "count of VOID";
  EXPECT_EQ(accepted_values(AbortHeader{}, 30), range(0, 1)) << "requeue of ABORT";

  const HelloHeader hello = valid_hello();
  EXPECT_EQ(accepted_values(hello, 24), range(0, 15)) << "version_min";
  EXPECT_EQ(accepted_values(hello, 25), range(0, 15)) << "version_max";
  EXPECT_EQ(accepted_values(hello, 27), range(0, 3)) << "reject";
  EXPECT_EQ(accepted_values(hello, 112), range(0, 2)) << "prev_state";
  EXPECT_EQ(accepted_values(hello, 113), range(1, 64)) << "paths";
  EXPECT_EQ(accepted_values(hello, 115), range(8, 13)) << "window_log2";
  EXPECT_EQ(accepted_values(hello, 130), range(0, 1)) << "reads_ce";
}

TEST(PacketTest, AckWithTooManyWordsIsRefused) {
  std::array<std::byte, 512> bytes = filled(0);
  AckHeader ack;
  Words received, ce;
  for (unsigned words = 0; words < 256; ++words) {
    bytes[56] = static_cast<std::byte>(words);
    EXPECT_EQ(decode(std::span<const std::byte>(bytes), ack, received, ce), words <= 16) << words;
  }
}

TEST(PacketTest, VersionRangeUpsideDownIsRefused) {
  HelloHeader hello = valid_hello();
  hello.version_min = 2;
  hello.version_max = 1;
  std::array<std::byte, 512> bytes = filled(0);
  encode(bytes, hello);
  EXPECT_FALSE(decode(std::span<const std::byte>(bytes), hello));
}

TEST(PacketTest, HelloWithoutIncarnationIsRefusedUnlessItRefuses) {
  HelloHeader hello = valid_hello();
  hello.incarnation = 0;
  std::array<std::byte, 512> bytes = filled(0);
  encode(bytes, hello);
  EXPECT_FALSE(decode(std::span<const std::byte>(bytes), hello));
  HelloHeader refusal;
  refusal.reject = RejectCode::version;
  encode(bytes, refusal);
  EXPECT_TRUE(decode(std::span<const std::byte>(bytes), refusal));
}

TEST(PacketTest, SegmentBeginsInsideItsMessage) {
  std::array<std::byte, 512> bytes = filled(0);
  const auto is_accepted = [&](std::uint32_t offset, std::uint32_t length) {
    DataHeader data;
    data.msg_off = offset;
    data.msg_len = length;
    encode(bytes, data);
    return decode(std::span<const std::byte>(bytes), data);
  };
  EXPECT_TRUE(is_accepted(0, 0));
  EXPECT_FALSE(is_accepted(1, 0));
  EXPECT_TRUE(is_accepted(0, 1));
  EXPECT_FALSE(is_accepted(1, 1));
  EXPECT_TRUE(is_accepted(UINT32_MAX - 1, UINT32_MAX));
  EXPECT_FALSE(is_accepted(UINT32_MAX, UINT32_MAX));
}

TEST(PacketTest, ReservedBytesAreIgnored) {
  for (const Vector& vector : make_vectors()) {
    CommonHeader common;
    ASSERT_TRUE(decode(vector.bytes, common));
    std::vector<std::byte> bytes = vector.bytes;
    std::size_t offset = kCommonBytes;
    bool changed = false;
    for (const test::Field& field : test::body_fields(common.type)) {
      if (std::string_view(field.name) == "reserved") {
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), field.bytes,
                    std::byte{0xff});
        changed = true;
      }
      offset += field.bytes;
    }
    if (!changed) continue;
    const auto again = test::reencode(bytes);
    ASSERT_TRUE(again.has_value()) << vector.name;
    EXPECT_EQ(*again, vector.bytes) << vector.name;
  }
}

// ---- extension blocks -------------------------------------------------------------------------

// A block of `tlvs` with a right length and padding.
std::vector<std::byte> block_of(std::initializer_list<unsigned> tlvs) {
  std::vector<std::byte> block(kExtensionHeadBytes);
  for (const unsigned byte : tlvs) block.push_back(static_cast<std::byte>(byte));
  while (block.size() % 4 != 0) block.push_back(std::byte{0});
  store_le<std::uint16_t>(block.data(), static_cast<std::uint16_t>(block.size()));
  return block;
}

bool is_block(const std::vector<std::byte>& block) {
  Extensions extensions;
  std::size_t bytes = 0;
  return decode_extensions(block, extensions, bytes);
}

TEST(ExtensionsTest, EveryCombinationSurvives) {
  for (unsigned mask = 0; mask < 16; ++mask) {
    Extensions extensions;
    if ((mask & 1) != 0) extensions.piggy = Piggy{.cumulative = 5, .hold_time = 6, .pressure = 7};
    if ((mask & 2) != 0) extensions.rev_path = RevPath{.heard_slots = 8, .last_ack_seq = 9};
    if ((mask & 4) != 0) extensions.re_path = RePath{.slot = 63, .generation = 15};
    if ((mask & 8) != 0) extensions.cookie = Cookie{1, 2, 3};
    std::array<std::byte, 512> bytes = filled(0xff);
    const std::size_t length = encode_extensions(bytes, extensions);
    EXPECT_EQ(length, extension_bytes(extensions));
    EXPECT_EQ(length % 4, 0U);
    EXPECT_EQ(bytes[length], std::byte{0xff});
    if (mask == 0) {
      EXPECT_EQ(length, 0U) << "no block without members";
      continue;
    }
    Extensions decoded;
    std::size_t decoded_bytes = 0;
    ASSERT_TRUE(decode_extensions(bytes, decoded, decoded_bytes));
    EXPECT_EQ(decoded_bytes, length);
    EXPECT_EQ(decoded, extensions);
  }
}

TEST(ExtensionsTest, LongestHeaderBeforePayloadFitsADatagramToSend) {
  Extensions all;
  all.piggy.emplace();
  all.rev_path.emplace();
  all.re_path.emplace();
  EXPECT_EQ(kDataBytes + extension_bytes(all), 88U);
  EXPECT_LE(kDataBytes + extension_bytes(all), 96U);
}

TEST(ExtensionsTest, UnknownTlvsAreSkippedUnlessCritical) {
  EXPECT_TRUE(is_block(block_of({})));
  EXPECT_TRUE(is_block(block_of({1, 8, 1, 2, 3, 4, 5, 6, 7, 8})));
  EXPECT_TRUE(is_block(block_of({99, 0, 98, 1, 7})));
  EXPECT_FALSE(is_block(block_of({0x80 | 99, 0})));
  EXPECT_FALSE(is_block(block_of({0x80, 0})));
}

TEST(ExtensionsTest, KnownTlvsAreReadAfterUnknownOnesAndWhenCritical) {
  Extensions extensions;
  std::size_t bytes = 0;
  ASSERT_TRUE(decode_extensions(block_of({99, 1, 7, 0x84, 2, 12, 5}), extensions, bytes));
  ASSERT_TRUE(extensions.re_path.has_value());
  EXPECT_EQ(extensions.re_path->slot, 12);
  EXPECT_EQ(extensions.re_path->generation, 5);
}

TEST(ExtensionsTest, PaddingEndsTheList) {
  Extensions extensions;
  std::size_t bytes = 0;
  ASSERT_TRUE(decode_extensions(block_of({0, 4, 2, 12, 5}), extensions, bytes));
  EXPECT_FALSE(extensions.re_path.has_value());
  EXPECT_EQ(bytes, 12U);
}

TEST(ExtensionsTest, MalformedTlvsAreRefused) {
  EXPECT_FALSE(is_block(block_of({4, 1, 12}))) << "too short a value";
  EXPECT_FALSE(is_block(block_of({4, 3, 12, 5, 0}))) << "too long a value";
  EXPECT_FALSE(is_block(block_of({4, 2, 12, 16}))) << "generation of 5 bits";
  EXPECT_FALSE(is_block(block_of({4, 2, 12, 5, 4, 2, 13, 5}))) << "twice";
  EXPECT_FALSE(is_block(block_of({99, 200}))) << "value beyond the block";
  EXPECT_FALSE(is_block(block_of({99, 1, 7, 99}))) << "type without a length";
}

TEST(ExtensionsTest, MalformedBlockLengthsAreRefused) {
  std::vector<std::byte> block = block_of({99, 2, 7, 7});
  ASSERT_TRUE(is_block(block));
  for (unsigned length = 0; length <= 16; ++length) {
    store_le<std::uint16_t>(block.data(), static_cast<std::uint16_t>(length));
    EXPECT_EQ(is_block(block), length == 4 || length == 8) << length;
  }
  for (std::size_t bytes = 0; bytes < 4; ++bytes) {
    EXPECT_FALSE(is_block(std::vector<std::byte>(bytes))) << bytes;
  }
}

// ---- backlog ----------------------------------------------------------------------------------

TEST(BacklogTest, CodesRiseAndComeBack) {
  EXPECT_EQ(backlog_bytes(0), 0U);
  for (unsigned code = 0; code < 256; ++code) {
    const std::uint64_t bytes = backlog_bytes(static_cast<std::uint8_t>(code));
    EXPECT_EQ(backlog_code(bytes), code);
    if (code > 0) {
      EXPECT_EQ(backlog_code(bytes - 1), code - 1) << "not rounded down";
      EXPECT_GT(bytes, backlog_bytes(static_cast<std::uint8_t>(code - 1)));
    }
  }
}

TEST(BacklogTest, Saturates) {
  EXPECT_EQ(backlog_code(UINT64_MAX), 255);
  EXPECT_EQ(backlog_code(std::uint64_t{1} << 31), 255);
  EXPECT_EQ(backlog_bytes(255), std::uint64_t{31} << 26);
}

// ---- time -------------------------------------------------------------------------------------

TEST(WireTimeTest, CountsUnitsOf64NsAndWraps) {
  EXPECT_EQ(to_wire_time(63), 0U);
  EXPECT_EQ(to_wire_time(64), 1U);
  EXPECT_EQ(to_wire_time((std::uint64_t{1} << 38) + 128), 2U);
  EXPECT_EQ(from_wire_span(3), 192U);
}

// ---- text -------------------------------------------------------------------------------------

TEST(PacketTextTest, NamesTypeAndFields) {
  for (const Vector& vector : make_vectors()) {
    CommonHeader common;
    ASSERT_TRUE(decode(vector.bytes, common));
    const std::string text = to_string(vector.bytes);
    EXPECT_TRUE(text.starts_with(std::string(to_string(common.type)) + " ")) << text;
    EXPECT_NE(text.find(" psn "), text.npos) << text;
    EXPECT_EQ(text.find("MALFORMED"), text.npos) << text;
    EXPECT_EQ(text.find('\n'), text.npos) << text;
    if (vector.name == "data_extensions") {
      EXPECT_EQ(text,
                "DATA @7/2.1 ctx 55667788 psn 2309737967 t 16909060 FIRST|EXT|FULL msg 1000 off "
                "0/1416 port 80 seq 0 PIGGY(cum 2003195204 seq 513 limit 4194304 rej 4) "
                "REVPATH(8000000000000201 seq 514) REPATH(12/5) +64");
    }
  }
}

TEST(PacketTextTest, ToleratesAnything) {
  EXPECT_EQ(to_string(std::span<const std::byte>{}), "not a packet (0 bytes)");
  Prng prng(3);
  std::vector<std::byte> bytes;
  for (int i = 0; i < 20'000; ++i) {
    bytes.resize(prng.below(300));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
    if (!bytes.empty()) bytes[0] &= std::byte{15};  // version 0, else nothing more is looked at
    EXPECT_FALSE(to_string(bytes).empty());
  }
  EXPECT_NE(to_string(std::vector<std::byte>(20, std::byte{1})).find("MALFORMED"),
            std::string::npos);
}

}  // namespace
}  // namespace srd::wire
