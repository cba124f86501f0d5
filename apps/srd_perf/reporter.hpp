// SPDX-License-Identifier: Apache-2.0
// How a test is told to people or programs while it runs and at its end.
#pragma once

#include <memory>
#include <string>

#include "srd_perf/options.hpp"
#include "srd_perf/output.hpp"
#include "srd_perf/results.hpp"

namespace perf {

/// Calls come in this order; finished() comes in any case, also after errors, and last.
class Reporter {
 public:
  virtual ~Reporter() = default;
  /// Client: before the first answer.
  virtual void connecting(const TestRecord& record) = 0;
  /// The two sides agreed on the test.
  virtual void started(const TestRecord& record) = 0;
  /// record.intervals.back() is new.
  virtual void interval(const TestRecord& record) = 0;
  virtual void finished(const TestRecord& record) = 0;
  /// All that was reported of this test, for --get-server-output.
  [[nodiscard]] virtual std::string transcript() const = 0;
};

/// Text, or JSON with options.json. `output` must outlive the reporter.
std::unique_ptr<Reporter> make_reporter(const Options& options, Output& output);

}  // namespace perf
