// SPDX-License-Identifier: Apache-2.0
// Encoders, decoders and docs/PROTOCOL.md against the golden packets in vectors/.
#include "unit/vectors.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "srd/wire/check.hpp"

#include "support/packet_roundtrip.hpp"

namespace srd::test {
namespace {

using namespace wire;

const std::filesystem::path kFolder = std::filesystem::path(SRD_SOURCE_DIR) / "tests/unit/vectors";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

constexpr const char* kRemedy =
    "; if the change of the wire format is meant, run scripts/regenerate-vectors.sh";

TEST(VectorsTest, FilesAndVectorsAreTheSameSet) {
  std::set<std::string> files, names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    files.insert(entry.path().stem());
  }
  for (const Vector& vector : make_vectors()) names.insert(vector.name);
  EXPECT_EQ(files, names) << kRemedy;
}

TEST(VectorsTest, EncodersGiveTheFiles) {
  for (const Vector& vector : make_vectors()) {
    const std::string text = read_file(kFolder / (vector.name + ".hex"));
    EXPECT_EQ(to_hex_file(vector), text) << vector.name << kRemedy;
    EXPECT_EQ(vector.bytes, parse_hex_file(text)) << vector.name << kRemedy;
  }
}

TEST(VectorsTest, DecodersReadEveryFieldOfTheFiles) {
  for (const Vector& vector : make_vectors()) {
    const std::vector<std::byte> bytes =
        parse_hex_file(read_file(kFolder / (vector.name + ".hex")));
    const auto again = reencode(bytes);
    ASSERT_TRUE(again.has_value()) << vector.name << ": " << to_string(bytes);
    EXPECT_EQ(*again, bytes) << vector.name;
  }
}

TEST(VectorsTest, ChecksOfTheFilesHold) {
  for (const Vector& vector : make_vectors()) {
    const std::vector<std::byte> bytes =
        parse_hex_file(read_file(kFolder / (vector.name + ".hex")));
    CommonHeader common;
    ASSERT_TRUE(decode(bytes, common));
    EXPECT_TRUE(verify(bytes, fixed_bytes(common.type), vector.seed)) << vector.name;
    EXPECT_FALSE(verify(bytes, fixed_bytes(common.type), vector.seed + 1)) << vector.name;
  }
}

TEST(VectorsTest, EveryPacketTypeAndTlvHasOne) {
  std::set<PacketType> types;
  std::set<TlvType> tlvs;
  for (const Vector& vector : make_vectors()) {
    CommonHeader common;
    ASSERT_TRUE(decode(vector.bytes, common));
    types.insert(common.type);
    if ((common.flags & kFlagExtension) == 0 || common.type == PacketType::ack) continue;
    Extensions extensions;
    std::size_t bytes = 0;
    ASSERT_TRUE(decode_extensions(std::span(vector.bytes).subspan(fixed_bytes(common.type)),
                                  extensions, bytes));
    if (extensions.piggy) tlvs.insert(TlvType::piggy);
    if (extensions.rev_path) tlvs.insert(TlvType::rev_path);
    if (extensions.re_path) tlvs.insert(TlvType::re_path);
    if (extensions.cookie) tlvs.insert(TlvType::cookie);
  }
  EXPECT_EQ(types.size(), 13U);
  EXPECT_EQ(tlvs.size(), 4U);
}

// ---- docs/PROTOCOL.md -------------------------------------------------------------------------

struct Row {
  std::size_t offset, bytes;
  std::string name;
  bool operator==(const Row&) const = default;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.offset << " " << row.bytes << " " << row.name;
}

// Rows "| offset | bytes | `name` | ..." below each heading "#### TITLE".
std::map<std::string, std::vector<Row>> tables_of_protocol() {
  std::map<std::string, std::vector<Row>> tables;
  std::istringstream text(read_file(std::filesystem::path(SRD_SOURCE_DIR) / "docs/PROTOCOL.md"));
  std::string heading;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) heading = line.substr(line.find_first_not_of("# "));
    std::istringstream cells(line);
    std::string bar1, bar2, bar3, name;
    Row row;
    if (!(cells >> bar1 >> row.offset >> bar2 >> row.bytes >> bar3 >> name)) continue;
    if (bar1 != "|" || bar2 != "|" || bar3 != "|" || !name.starts_with('`')) continue;
    row.name = name.substr(1, name.find('`', 1) - 1);
    tables[heading].push_back(row);
  }
  return tables;
}

std::vector<Row> rows_of(const std::vector<Field>& fields, std::size_t offset) {
  std::vector<Row> rows;
  for (const Field& field : fields) {
    rows.push_back({offset, field.bytes, field.name});
    offset += field.bytes;
  }
  return rows;
}

TEST(ProtocolTablesTest, OfPacketsAgreeWithTheVectors) {
  auto tables = tables_of_protocol();
  EXPECT_EQ(tables["3.1 Common header"], rows_of(common_fields(), 0));
  for (std::uint8_t type = 1; type <= 13; ++type) {
    const auto packet = static_cast<PacketType>(type);
    std::string heading = to_string(packet);
    if (packet == PacketType::hello || packet == PacketType::hello_ack) {
      heading = "HELLO and HELLO_ACK";
    }
    EXPECT_EQ(tables[heading], rows_of(body_fields(packet), kCommonBytes)) << heading;
  }
  EXPECT_EQ(tables["SMALL record"], rows_of(record_fields(), 0));
}

TEST(ProtocolTablesTest, OfTlvsAgreeWithTheVectors) {
  auto tables = tables_of_protocol();
  EXPECT_EQ(tables["PIGGY"], rows_of(tlv_fields(TlvType::piggy), 0));
  EXPECT_EQ(tables["REVPATH"], rows_of(tlv_fields(TlvType::rev_path), 0));
  EXPECT_EQ(tables["REPATH"], rows_of(tlv_fields(TlvType::re_path), 0));
  EXPECT_EQ(tables["COOKIE"], rows_of(tlv_fields(TlvType::cookie), 0));
}

TEST(ProtocolTablesTest, SeedsInTheTextAreThoseOfTheVectors) {
  // 3.2 quotes them as an example.
  const std::string text = read_file(std::filesystem::path(SRD_SOURCE_DIR) / "docs/PROTOCOL.md");
  for (const std::uint32_t seed : {forward_seed(), reverse_seed()}) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "0x%08x", seed);
    EXPECT_NE(text.find(hex), text.npos) << hex;
  }
}

}  // namespace
}  // namespace srd::test
