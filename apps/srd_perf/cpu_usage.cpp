// SPDX-License-Identifier: Apache-2.0
// CPU time by getrusage(2).
#include "srd_perf/cpu_usage.hpp"

#include <sys/resource.h>

#include "common/clock.hpp"

namespace perf {
namespace {

double seconds(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

CpuUsage::CpuUsage() noexcept : start_(read()) {}

CpuTimes CpuUsage::read() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), apps::to_seconds(apps::monotonic_ns())};
}

CpuTimes CpuUsage::elapsed() const noexcept {
  const CpuTimes now = read();
  return {now.user_s - start_.user_s, now.system_s - start_.system_s, now.wall_s - start_.wall_s};
}

}  // namespace perf
