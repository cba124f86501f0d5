// SPDX-License-Identifier: Apache-2.0
// The server: runs the tests that clients ask for, several at once, until a signal or, with -1,
// until the first client is through.
#pragma once

#include "srd_perf/options.hpp"
#include "srd_perf/output.hpp"

namespace perf {

/// Serves. Returns the exit code; throws Failure if it cannot listen.
int run_server(const Options& options, Output& output);

}  // namespace perf
