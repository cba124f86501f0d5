// SPDX-License-Identifier: Apache-2.0
// Reports for programs: one JSON document per test with every key of iperf3's -J report for TCP
// (3.12) and keys of its own under "srd". Written at the end of a test, so that it is whole after
// Ctrl-C and after errors, too.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "srd_perf/reporter.hpp"

namespace perf {

/// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

/// The document of one test.
Json make_report(const TestRecord& record);

/// The document of a run that ended before any test, with the reason.
Json make_error_report(const std::string& error);

std::string to_text(const Json& report);

class JsonReporter final : public Reporter {
 public:
  explicit JsonReporter(Output& output) : output_(output) {}

  void connecting(const TestRecord&) override {}

  void started(const TestRecord&) override {}

  void interval(const TestRecord&) override {}

  void finished(const TestRecord& record) override;

  [[nodiscard]] std::string transcript() const override { return transcript_; }

 private:
  Output& output_;
  std::string transcript_;
};

}  // namespace perf
