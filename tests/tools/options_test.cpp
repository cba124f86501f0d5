// SPDX-License-Identifier: Apache-2.0
// The command line: what it means, and what makes no sense.
#include "srd_perf/options.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/failure.hpp"

namespace perf {
namespace {

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "srd-perf");
  const auto options = parse_options(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(options.has_value());
  return options.value_or(Options{});
}

/// The text of the refusal; "" if the command line was taken.
std::string refusal(const std::vector<const char*>& arguments) {
  try {
    parse(arguments);
  } catch (const apps::Failure& failure) {
    EXPECT_EQ(failure.exit_code(), apps::kExitUsage);
    return failure.what();
  }
  return {};
}

TEST(OptionsTest, ServerWithDefaults) {
  const Options options = parse({"-s"});
  EXPECT_EQ(options.role, Role::server);
  EXPECT_EQ(options.port, kDefaultPort);
  EXPECT_EQ(options.interval_s, 1);
  EXPECT_FALSE(options.one_off);
}

TEST(OptionsTest, ClientWithDefaults) {
  const Options options = parse({"-c", "10.0.0.2"});
  EXPECT_EQ(options.role, Role::client);
  EXPECT_EQ(options.host, "10.0.0.2");
  EXPECT_EQ(options.parameters.duration_s, 10);
  EXPECT_EQ(options.parameters.message_bytes, 1U << 20);
  EXPECT_EQ(options.parameters.direction, Direction::forward);
}

TEST(OptionsTest, AnAddressInTheDeviceIsRefusedAsItWouldBeIgnored) {
  for (const char* device : {"udp:127.0.0.1:7777", "udp:0.0.0.0:7777?paths=4", "udp:[::1]:7777"}) {
    EXPECT_NE(refusal({"-s", "--device", device}).find("-B and -p"), std::string::npos) << device;
    EXPECT_NE(refusal({"-c", "h", "--device", device}).find("-B and -p"), std::string::npos)
        << device;
  }
  for (const char* device : {"udp:", "udp:?paths=4", "udp"}) {
    EXPECT_EQ(refusal({"-s", "--device", device}), "") << device;
  }
}

TEST(OptionsTest, EverythingIperf3UsersType) {
  const Options options =
      parse({"-c", "h",  "-p",        "6000",      "-t",        "2.5",         "-l", "64K",  "-P",
             "4",  "-R", "-i",        "0.5",       "-O",        "1",           "-b", "500M", "-w",
             "1M", "-B", "127.0.0.1", "--cport",   "7000",      "-J",          "-4", "-T",   "x",
             "-V", "-f", "g",         "--logfile", "/dev/null", "--forceflush"});
  EXPECT_EQ(options.port, 6000);
  EXPECT_EQ(options.parameters.duration_s, 2.5);
  EXPECT_EQ(options.parameters.message_bytes, 65536U);
  EXPECT_EQ(options.parameters.streams, 4U);
  EXPECT_EQ(options.parameters.direction, Direction::reverse);
  EXPECT_EQ(options.interval_s, 0.5);
  EXPECT_EQ(options.parameters.omit_s, 1);
  EXPECT_EQ(options.parameters.rate_bits_per_s, 500'000'000U);
  EXPECT_EQ(options.parameters.window_bytes, 1U << 20);
  EXPECT_EQ(options.bind_host, "127.0.0.1");
  EXPECT_EQ(options.client_port, 7000);
  EXPECT_TRUE(options.json && options.verbose && options.force_flush);
  EXPECT_EQ(options.family, apps::Family::v4);
  EXPECT_EQ(options.unit_format, UnitFormat::gbits);
}

TEST(OptionsTest, BytesReplaceTime) {
  const Options options = parse({"-c", "h", "-n", "1G"});
  EXPECT_EQ(options.parameters.total_bytes, 1U << 30);
  EXPECT_EQ(options.parameters.duration_s, 0);
}

TEST(OptionsTest, TimeZeroIsWithoutEnd) {
  const Options options = parse({"-c", "h", "-t", "0"});
  EXPECT_EQ(options.parameters.duration_s, 0);
  EXPECT_EQ(options.parameters.total_bytes, 0U);
}

TEST(OptionsTest, MessageSizeIsJudgedByTheEndpointAlone) {
  EXPECT_EQ(parse({"-c", "h", "-l", "5G"}).parameters.message_bytes, 5ULL << 30);
  EXPECT_NE(refusal({"-c", "h", "-l", "0"}).find("is below 1 bytes"), std::string::npos);
}

TEST(OptionsTest, LatencyIsClosedLoopByDepthAndOpenLoopByRate) {
  const Options closed = parse({"-c", "h", "--latency", "--depth", "8"});
  EXPECT_EQ(closed.parameters.mode, Mode::latency_closed);
  EXPECT_EQ(closed.parameters.depth, 8U);
  EXPECT_EQ(closed.parameters.request_bytes, 64U);
  EXPECT_EQ(closed.parameters.response_bytes, 64U);
  const Options open =
      parse({"-c", "h", "--latency", "--rate", "58K", "--size", "4K", "--response-size", "128"});
  EXPECT_EQ(open.parameters.mode, Mode::latency_open);
  EXPECT_EQ(open.parameters.requests_per_s, 58000U);
  EXPECT_EQ(open.parameters.request_bytes, 4096U);
  EXPECT_EQ(open.parameters.response_bytes, 128U);
  EXPECT_EQ(parse({"-c", "h", "--latency", "-l", "100"}).parameters.request_bytes, 100U);
}

TEST(OptionsTest, EachSenselessCommandLineIsRefusedWithTheOptionInTheText) {
  const struct {
    std::vector<const char*> arguments;
    const char* named;
  } cases[] = {
      {{}, "-c HOST"},
      {{"-s", "-c", "h"}, "both"},
      {{"-c"}, "--client"},
      {{"-c", "h", "--no-such"}, "--no-such"},
      {{"-c", "h", "stray"}, "stray"},
      {{"-c", "h", "-p", "0"}, "-p"},
      {{"-c", "h", "-p", "70000"}, "-p"},
      {{"-c", "h", "-p", "abc"}, "--port"},
      {{"-c", "h", "-4", "-6"}, "-4"},
      {{"-c", "h", "-R", "--bidir"}, "--bidir"},
      {{"-c", "h", "-t", "1", "-n", "1M"}, "-n"},
      {{"-c", "h", "-n", "0"}, "-n"},
      {{"-c", "h", "-n", "x"}, "-n"},
      {{"-c", "h", "-t", "-1"}, "-t"},
      {{"-c", "h", "-l", "0"}, "-l"},
      {{"-c", "h", "-l", "7", "--verify"}, "--verify"},
      {{"-c", "h", "-P", "0"}, "-P"},
      {{"-c", "h", "-P", "129"}, "-P"},
      {{"-c", "h", "-i", "0.01"}, "-i"},
      {{"-c", "h", "-b", "fast"}, "-b"},
      {{"-c", "h", "-O", "601"}, "-O"},
      {{"-c", "h", "-1"}, "-1"},
      {{"-c", "h", "-f", "z"}, "-f"},
      {{"-c", "h", "--paths", "65"}, "--paths"},
      {{"-c", "h", "--bins-ms", "2000"}, "--bins-ms"},
      {{"-c", "h", "--depth", "4"}, "--latency"},
      {{"-c", "h", "--latency", "--depth", "4", "--rate", "5"}, "--rate"},
      {{"-c", "h", "--latency", "--rate", "0"}, "--rate"},
      {{"-c", "h", "--latency", "-P", "2"}, "-P"},
      {{"-c", "h", "--latency", "-R"}, "-R"},
      {{"-c", "h", "--latency", "--size", "7"}, "--size"},
      {{"-c", "h", "--latency", "-b", "1M"}, "-b"},
      {{"-c", "h", "--latency", "-n", "1M"}, "-n"},
      {{"-s", "-t", "5"}, "--time"},
      {{"-s", "-R"}, "--reverse"},
  };

  for (const auto& test : cases) {
    EXPECT_NE(refusal(test.arguments).find(test.named), std::string::npos)
        << test.named << ": " << refusal(test.arguments);
  }
}

}  // namespace
}  // namespace perf
