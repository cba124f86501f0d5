// SPDX-License-Identifier: Apache-2.0
// The production clock: CLOCK_MONOTONIC, nanoseconds. The time base of the pollers' timers.
#pragma once

#include "srd/driver.hpp"

namespace srd::runtime {

class MonotonicClock final : public Clock {
 public:
  /// Some 20 ns, no system call where the kernel offers a vDSO. Any thread.
  Instant now() noexcept override;
};

}  // namespace srd::runtime
