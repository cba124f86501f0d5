// SPDX-License-Identifier: Apache-2.0
// Control messages survive the way, and anything else is ignored.
#include "srd_perf/protocol.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "srd_perf/stream.hpp"

namespace perf {
namespace {

TEST(ProtocolTest, ChannelsCarrySessionAndStreamAndNeverMeetTheControlChannel) {
  for (unsigned tag = 1; tag < 256; ++tag) {
    for (unsigned stream = 0; stream < 256; ++stream) {
      const Channel channel{static_cast<std::uint8_t>(tag), static_cast<std::uint8_t>(stream)};
      const std::uint16_t number = to_channel(channel);
      EXPECT_NE(number, kControlChannel);
      EXPECT_EQ(from_channel(number).tag, tag);
      EXPECT_EQ(from_channel(number).stream, stream);
    }
  }
}

TEST(ProtocolTest, OpenCarriesAllParameters) {
  ControlMessage open;
  open.type = ControlType::open;
  open.parameters = {.mode = Mode::latency_open,
                     .direction = Direction::bidirectional,
                     .streams = 3,
                     .message_bytes = 4,
                     .window_bytes = 5,
                     .duration_s = 6.5,
                     .omit_s = 7,
                     .total_bytes = 8,
                     .rate_bits_per_s = 9,
                     .verify = true,
                     .request_bytes = 10,
                     .response_bytes = 11,
                     .requests_per_s = 12,
                     .depth = 13,
                     .bins_ms = 14,
                     .want_server_output = true,
                     .cookie = "c"};
  const auto decoded = decode_control(encode_control(open));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->type, ControlType::open);
  const Parameters& got = decoded->parameters;
  EXPECT_EQ(got.mode, Mode::latency_open);
  EXPECT_EQ(got.direction, Direction::bidirectional);
  EXPECT_EQ(got.streams, 3U);
  EXPECT_EQ(got.message_bytes, 4U);
  EXPECT_EQ(got.window_bytes, 5U);
  EXPECT_EQ(got.duration_s, 6.5);
  EXPECT_EQ(got.omit_s, 7);
  EXPECT_EQ(got.total_bytes, 8U);
  EXPECT_EQ(got.rate_bits_per_s, 9U);
  EXPECT_TRUE(got.verify);
  EXPECT_EQ(got.request_bytes, 10U);
  EXPECT_EQ(got.response_bytes, 11U);
  EXPECT_EQ(got.requests_per_s, 12U);
  EXPECT_EQ(got.depth, 13U);
  EXPECT_EQ(got.bins_ms, 14U);
  EXPECT_TRUE(got.want_server_output);
  EXPECT_EQ(got.cookie, "c");
}

TEST(ProtocolTest, ResultsComeBackWhole) {
  ControlMessage message;
  message.type = ControlType::results;
  message.tag = 9;
  StreamResult stream;
  stream.stream = 1;
  stream.sender = true;
  stream.all_messages = 1234567890123;
  message.results.streams.push_back(stream);
  PathResult path;
  path.local_host = "fe80::1";
  path.rtt_p99_us = 12.5;
  message.results.paths.push_back(path);
  message.results.bins = BinLog{1, 77, {1, 0, 3}};
  message.results.error = "no";
  message.results.counters["tx_datagrams"] = 5;
  message.results.endpoint_counters["rx_host_drops"] = 6;
  message.results.advice = {"one", "two"};
  message.server_output = "text\nwith \"quotes\" and \xff\n";
  const auto decoded = decode_control(encode_control(message));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->tag, 9);
  ASSERT_EQ(decoded->results.streams.size(), 1U);
  EXPECT_EQ(decoded->results.streams[0].all_messages, 1234567890123U);
  EXPECT_TRUE(decoded->results.streams[0].sender);
  ASSERT_EQ(decoded->results.paths.size(), 1U);
  EXPECT_EQ(decoded->results.paths[0].rtt_p99_us, 12.5);
  ASSERT_TRUE(decoded->results.bins.has_value());
  EXPECT_EQ(decoded->results.bins->bytes, (std::vector<std::uint64_t>{1, 0, 3}));
  EXPECT_EQ(decoded->results.error, "no");
  EXPECT_EQ(decoded->results.counters.at("tx_datagrams"), 5U);
  EXPECT_EQ(decoded->results.endpoint_counters.at("rx_host_drops"), 6U);
  EXPECT_EQ(decoded->results.advice, (std::vector<std::string>{"one", "two"}));
  EXPECT_NE(decoded->server_output.find("\"quotes\""), std::string::npos);
}

TEST(ProtocolTest, WhatIsNoControlMessageIsIgnored) {
  for (const char* text :
       {"", "x", "{}", "[]", "1", "null", R"({"type":1})", R"({"type":"unheard-of"})",
        R"({"type":"open","version":1})", R"({"type":"open","version":1,"parameters":[]})",
        R"({"type":"results","results":{"streams":5}})", R"({"type":"stop","session":"x"})"}) {
    EXPECT_FALSE(decode_control(text).has_value()) << text;
  }
}

TEST(ProtocolTest, AnOpenOfAnotherVersionTellsItsVersion) {
  const auto decoded =
      decode_control(R"({"type":"open","version":99,"cookie":"c","parameters":"other"})");
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->version, 99U);
  EXPECT_EQ(decoded->cookie, "c");
}

TEST(ProtocolTest, SendTokensKeepTheirParts) {
  const SendToken token{.session = 0x7fffffff, .control = true, .stream = 255, .slot = 0xffffff};
  const SendToken decoded = SendToken::decode(token.encode());
  EXPECT_EQ(decoded.session, token.session);
  EXPECT_EQ(decoded.control, token.control);
  EXPECT_EQ(decoded.stream, token.stream);
  EXPECT_EQ(decoded.slot, token.slot);
}

}  // namespace
}  // namespace perf
