// SPDX-License-Identifier: Apache-2.0
// CPU time of this process between two instants, for cpu_utilization_percent and seconds per
// gigabyte.
#pragma once

#include <cstdint>

namespace perf {

struct CpuTimes {
  double user_s = 0;
  double system_s = 0;
  double wall_s = 0;
};

class CpuUsage {
 public:
  /// Starts to count.
  CpuUsage() noexcept;
  /// Since the construction; all threads of the process.
  [[nodiscard]] CpuTimes elapsed() const noexcept;

 private:
  static CpuTimes read() noexcept;
  CpuTimes start_;
};

}  // namespace perf
