// SPDX-License-Identifier: Apache-2.0
// The client: finds the server, agrees on a test, runs it, collects both sides' results.
#pragma once

#include "srd_perf/options.hpp"
#include "srd_perf/output.hpp"

namespace perf {

/// Runs one test and reports it. Returns the exit code; throws Failure before a test exists.
int run_client(const Options& options, Output& output);

}  // namespace perf
