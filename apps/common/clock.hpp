// SPDX-License-Identifier: Apache-2.0
// Monotonic time for the tools. CLOCK_MONOTONIC, so that values can be compared with those of other
// processes on the same host.
#pragma once

#include <time.h>

#include <cstdint>

namespace apps {

inline constexpr std::uint64_t kNsPerUs = 1'000;
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

/// Nanoseconds of CLOCK_MONOTONIC. About 25 ns per call; never fails.
inline std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline double to_seconds(std::uint64_t ns) noexcept {
  return static_cast<double>(ns) / static_cast<double>(kNsPerSecond);
}

}  // namespace apps
