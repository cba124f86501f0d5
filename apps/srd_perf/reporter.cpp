// SPDX-License-Identifier: Apache-2.0
// Choice of the reporter.
#include "srd_perf/reporter.hpp"

#include "srd_perf/report_json.hpp"
#include "srd_perf/report_text.hpp"

namespace perf {

std::unique_ptr<Reporter> make_reporter(const Options& options, Output& output) {
  if (options.json) return std::make_unique<JsonReporter>(output);
  return std::make_unique<TextReporter>(options.unit_format, options.verbose, output);
}

}  // namespace perf
