// SPDX-License-Identifier: Apache-2.0
// What the reports of srd-perf say beside numbers: advice for the host that needs it, and whose
// counters are whose.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "srd_perf/report_json.hpp"
#include "srd_perf/report_text.hpp"

namespace perf {
namespace {

TestRecord record_of_client() {
  TestRecord record;
  record.info.is_client = true;
  record.accepted = true;
  record.local.emplace();
  record.remote.emplace();
  return record;
}

/// The text report of a finished test.
std::string text_of(const TestRecord& record) {
  char name[] = "/tmp/srd-report-XXXXXX";
  const int fd = ::mkstemp(name);
  if (fd < 0) return "no temporary file";
  ::close(fd);
  {
    Output output(name, "", false);
    TextReporter(UnitFormat::adaptive, false, output).finished(record);
  }
  std::ifstream file(name);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::remove(name);
  return text;
}

TEST(ReportTest, AdviceStandsUnderTheReportWithItsHost) {
  TestRecord record = record_of_client();
  EXPECT_EQ(text_of(record).find("Advice"), std::string::npos);
  record.remote->advice = {"drops. Run: sysctl"};
  const std::string text = text_of(record);
  EXPECT_NE(text.find("Advice for the server's host:\n  drops. Run: sysctl\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("client's host"), std::string::npos) << text;
  record.local->advice = {"another"};
  EXPECT_NE(text_of(record).find("Advice for the client's host:\n  another\n"), std::string::npos);
}

TEST(ReportTest, AdviceOnAServerIsForTheServer) {
  TestRecord record = record_of_client();
  record.info.is_client = false;
  record.local->advice = {"here"};
  EXPECT_NE(text_of(record).find("Advice for the server's host:\n  here\n"), std::string::npos);
}

TEST(ReportTest, JsonHasAdviceAndBothKindsOfCountersOfEachSide) {
  TestRecord record = record_of_client();
  record.local->advice = {"one", "two"};
  record.remote->counters["tx_datagrams"] = 3;
  record.remote->endpoint_counters["tx_datagrams"] = 5;
  const Json report = make_report(record);
  EXPECT_EQ(report.at("srd").at("advice"), (Json{"one", "two"}));
  EXPECT_EQ(report.at("srd").at("remote").at("advice"), Json::array());
  EXPECT_EQ(report.at("srd").at("remote").at("counters").at("tx_datagrams"), 3);
  EXPECT_EQ(report.at("srd").at("remote").at("endpoint_counters").at("tx_datagrams"), 5);
}

}  // namespace
}  // namespace perf
