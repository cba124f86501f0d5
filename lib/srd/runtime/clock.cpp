// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/clock.hpp"

#include <time.h>

namespace srd::runtime {

Instant MonotonicClock::now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Instant{static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
                 static_cast<std::uint64_t>(time.tv_nsec)};
}

}  // namespace srd::runtime
