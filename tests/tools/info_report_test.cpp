// SPDX-License-Identifier: Apache-2.0
// What srd-info makes of devices: usable ones, refused ones, advice line by line.
#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "srd_info/report.hpp"

namespace info {
namespace {

srd_device_info device(const char* name, const char* capabilities, const char* advice) {
  srd_device_info out{};
  std::strcpy(out.driver, "udp");
  std::strcpy(out.device, name);
  std::strcpy(out.description, "UDP sockets");
  std::strcpy(out.capabilities, capabilities);
  std::strcpy(out.advice, advice);
  out.usable = name[0] != '\0' ? 1 : 0;
  out.datagram_bytes_max = 65507;
  out.paths_max = 64;
  out.rx_buffer_bytes = 425984;
  return out;
}

TEST(InfoReportTest, JsonSplitsCapabilitiesFromWhatIsMissing) {
  const std::array devices{device("udp:", "gso no-gro ecn", "one\ntwo")};
  const auto report = json_report(devices);
  const auto& entry = report.at("devices").at(0);
  EXPECT_EQ(entry.at("capabilities"), (nlohmann::ordered_json{"gso", "ecn"}));
  EXPECT_EQ(entry.at("missing"), (nlohmann::ordered_json{"gro"}));
  EXPECT_EQ(entry.at("advice"), (nlohmann::ordered_json{"one", "two"}));
  EXPECT_EQ(entry.at("limits").at("paths_max"), 64);
  EXPECT_TRUE(entry.at("usable").get<bool>());
}

TEST(InfoReportTest, TextShowsLimitsLacksAndAdvice) {
  const std::array devices{device("udp:", "gso no-gro", "sysctl -w net.core.rmem_max=8388608")};
  const std::string text = text_report(devices);
  for (const char* expected :
       {"udp:", "65507", "425984", "has:   gso", "lacks: gro", "advice: sysctl -w net.core"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(InfoReportTest, AnUnusableDeviceIsNoSuccess) {
  const std::array refused{device("", "", "load the module")};
  EXPECT_FALSE(any_usable(refused));
  EXPECT_NE(text_report(refused).find("no"), std::string::npos);
  const std::array both{device("", "", ""), device("udp:", "", "")};
  EXPECT_TRUE(any_usable(both));
}

}  // namespace
}  // namespace info
