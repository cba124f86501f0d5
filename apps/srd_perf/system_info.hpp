// SPDX-License-Identifier: Apache-2.0
// What reports say about this host and the time of day.
#pragma once

#include <cstdint>
#include <string>

namespace perf {

/// "Linux host 6.1.0 #1 SMP x86_64", as iperf3 says it.
std::string system_info();

/// Seconds since 1970.
std::int64_t wall_clock_s();

/// "Mon, 30 Nov 2026 16:00:10 GMT"
std::string gmt_text(std::int64_t wall_clock_s);

/// 36 random letters and digits that name a test.
std::string make_cookie();

}  // namespace perf
