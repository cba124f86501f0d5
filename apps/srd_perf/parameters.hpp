// SPDX-License-Identifier: Apache-2.0
// What one test measures: everything that client and server must agree on before it starts.
#pragma once

#include <cstdint>
#include <string>

namespace perf {

/// Who sends: the client, the server (-R), or both (--bidir).
enum class Direction : std::uint8_t { forward, reverse, bidirectional };

/// A throughput test, or request/response with latencies in closed or open loop.
enum class Mode : std::uint8_t { throughput, latency_closed, latency_open };

/// Values are checked by validate_parameters() on both sides.
struct Parameters {
  Mode mode = Mode::throughput;
  Direction direction = Direction::forward;
  std::uint32_t streams = 1;  ///< in each direction
  std::uint64_t message_bytes = 1U << 20;
  std::uint64_t window_bytes = 8U << 20;  ///< outstanding per stream
  double duration_s = 10;                 ///< 0: until `total_bytes`, or until somebody ends it
  double omit_s = 0;
  std::uint64_t total_bytes = 0;      ///< of all streams of one direction; 0: any number
  std::uint64_t rate_bits_per_s = 0;  ///< per stream; 0: no limit
  bool verify = false;
  std::uint64_t request_bytes = 64;   ///< latency modes
  std::uint64_t response_bytes = 64;  ///< latency modes
  std::uint64_t requests_per_s = 0;   ///< latency_open
  std::uint32_t depth = 1;            ///< latency_closed: requests outstanding
  std::uint32_t bins_ms = 0;          ///< receiver log in bins of this width; 0: none
  bool want_server_output = false;
  std::string cookie;  ///< random, names the test on both sides

  [[nodiscard]] bool is_latency() const noexcept { return mode != Mode::throughput; }

  [[nodiscard]] bool client_sends() const noexcept { return direction != Direction::reverse; }

  [[nodiscard]] bool server_sends() const noexcept { return direction != Direction::forward; }
};

inline constexpr std::uint32_t kStreamsMax = 128;
/// Messages of this size and more carry their number, which --verify and --latency need.
inline constexpr std::uint64_t kNumberBytes = 8;

/// For validate_parameters() before there is an endpoint.
inline constexpr std::uint64_t kNoMessageLimit = UINT64_MAX;

/// "" if a test with these values can run on an endpoint that takes messages of
/// `message_bytes_max`; else what is wrong and what to do about it.
std::string validate_parameters(const Parameters& parameters, std::uint64_t message_bytes_max);

}  // namespace perf
