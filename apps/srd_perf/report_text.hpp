// SPDX-License-Identifier: Apache-2.0
// Reports for people, line by line as iperf3 writes them, and a block about the flow's paths of its
// own.
#pragma once

#include <string>
#include <string_view>

#include "srd_perf/reporter.hpp"

namespace perf {

class TextReporter final : public Reporter {
 public:
  TextReporter(UnitFormat format, bool verbose, Output& output);

  void connecting(const TestRecord& record) override;
  void started(const TestRecord& record) override;
  void interval(const TestRecord& record) override;
  void finished(const TestRecord& record) override;

  [[nodiscard]] std::string transcript() const override { return transcript_; }

 private:
  void line(std::string_view text);
  void interval_header(const TestInfo& info);
  void latency_interval(const TestRecord& record);
  void summary(const TestRecord& record);
  void summary_direction(const TestRecord& record, bool sender_is_local);
  void summary_line(const TestInfo& info, int stream, const StreamResult& result, bool sender_end,
                    bool local_sends);
  void latency(const LatencySummary& summary);
  void paths(const TestRecord& record);
  void advice(const TestRecord& record);
  void paths_of(const SideResults& side, std::string_view whose);
  void details(const TestRecord& record);

  UnitFormat format_;
  bool verbose_;
  Output& output_;
  bool header_written_ = false;
  bool keep_transcript_ = false;
  std::string transcript_;
};

}  // namespace perf
