// SPDX-License-Identifier: Apache-2.0
// Plain data that a test produces: what each stream, the flow and the host did. One side's results
// go to the other at the end; reports are made from these structures only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "srd/srd.h"

#include "srd_perf/parameters.hpp"

namespace perf {

/// The state of the flow as an interval report shows it.
struct FlowSample {
  std::uint64_t window_bytes = 0;
  std::uint64_t peer_window_bytes = 0;  ///< what the receiver allows to be outstanding
  std::uint64_t rtt_us = 0;
  std::uint64_t rtt_var_us = 0;
  std::uint64_t pmtu_bytes = 0;   ///< IP packet that the flow's datagrams make
  std::uint64_t retransmits = 0;  ///< datagrams sent again since the test began
};

/// What one stream did, seen from one side.
struct StreamResult {
  std::uint32_t stream = 0;    ///< index within the test, as in the channel
  bool sender = false;         ///< this side sent
  std::uint64_t bytes = 0;     ///< in the measured time: acknowledged, or received
  std::uint64_t messages = 0;  ///< in the measured time
  std::uint64_t all_bytes =
      0;  ///< from the first to the last message, omitted time and end included
  std::uint64_t all_messages = 0;
  double seconds = 0;             ///< measured time
  std::uint64_t retransmits = 0;  ///< sender's share of those of the flow
  std::uint64_t max_window_bytes = 0;
  std::uint64_t max_peer_window_bytes = 0;
  std::uint64_t max_rtt_us = 0;
  std::uint64_t min_rtt_us = 0;
  std::uint64_t mean_rtt_us = 0;
};

struct LatencySummary {
  std::uint64_t count = 0;
  std::uint64_t unanswered = 0;
  double min_us = 0, mean_us = 0, max_us = 0;
  double p50_us = 0, p90_us = 0, p99_us = 0, p999_us = 0, p9999_us = 0;
};

struct PathResult {
  std::uint32_t slot = 0;
  std::string state;
  std::string local_host, remote_host;
  std::uint16_t local_port = 0, remote_port = 0;
  std::uint64_t bytes = 0;      ///< sent over this slot
  std::uint64_t datagrams = 0;  ///< sent over this slot
  std::uint64_t received_datagrams = 0;
  std::uint64_t lost = 0, ce = 0, rerolls = 0, retransmits = 0;
  double rtt_min_us = 0, rtt_p50_us = 0, rtt_p99_us = 0;
};

/// Receiver log: bytes per bin. Bin 0 begins at start_monotonic_ns of the receiving host's
/// CLOCK_MONOTONIC.
struct BinLog {
  std::uint32_t bin_ms = 0;
  std::uint64_t start_monotonic_ns = 0;
  std::vector<std::uint64_t> bytes;
};

/// Everything one side knows at the end of a test.
struct SideResults {
  std::vector<StreamResult> streams;
  std::vector<PathResult> paths;
  std::uint64_t retransmitted = 0, spurious = 0, rerolls = 0;
  /// Free-running counters since the test began, by name: those of the peer (srd_peer_info), and
  /// those of the endpoint (srd_stats), which other tests of a server share.
  std::map<std::string, std::uint64_t> counters, endpoint_counters;
  std::vector<std::string> advice;          ///< what went wrong on this host and helps
  std::uint64_t verified_messages = 0;      ///< --verify
  double cpu_user_s = 0, cpu_system_s = 0;  ///< of the process, from start to end of the test
  double wall_s = 0;                        ///< between the two
  std::optional<LatencySummary> latency;
  std::optional<BinLog> bins;
  std::string congestion = "srd";
  std::string error;  ///< "" or what went wrong on this side
};

/// What `side` says of that stream; nullptr if it says nothing.
inline const StreamResult* find_stream(const std::optional<SideResults>& side,
                                       std::uint32_t stream) {
  if (!side) return nullptr;
  const auto found =
      std::find_if(side->streams.begin(), side->streams.end(),
                   [&](const StreamResult& result) { return result.stream == stream; });
  return found == side->streams.end() ? nullptr : &*found;
}

inline double bits_per_second(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds : 0;
}

/// One stream in one interval.
struct StreamInterval {
  std::uint32_t stream = 0;
  bool sender = false;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t retransmits = 0;
  FlowSample flow;  ///< at the end of the interval; senders
};

struct Interval {
  double start_s = 0, end_s = 0;
  bool omitted = false;
  std::vector<StreamInterval> streams;
  std::optional<LatencySummary> latency;

  [[nodiscard]] double seconds() const noexcept { return end_s - start_s; }
};

/// Identity of a test on one side.
struct TestInfo {
  bool is_client = false;
  Parameters parameters;
  std::uint32_t first_stream_id = 1;  ///< number shown for stream 0
  std::string target_host;            ///< client: as given on the command line
  srd_address local{}, remote{};
  std::int64_t wall_clock_s = 0;
  std::uint64_t payload_bytes = 0;  ///< of a message in one datagram
  std::uint64_t receive_pool_bytes = 0;
  std::string title;

  /// Does this side send stream `index`?
  [[nodiscard]] bool sends(std::uint32_t index) const noexcept {
    if (parameters.direction == Direction::bidirectional) {
      return (index < parameters.streams) == is_client;
    }
    return (parameters.direction == Direction::forward) == is_client;
  }

  [[nodiscard]] std::uint32_t stream_count() const noexcept {
    return parameters.direction == Direction::bidirectional ? 2 * parameters.streams
                                                            : parameters.streams;
  }
};

/// All of one test on one side; what reports are made of.
struct TestRecord {
  TestInfo info;
  bool accepted = false;  ///< the two sides agreed on the test
  std::vector<Interval> intervals;
  std::optional<SideResults> local;
  std::optional<SideResults> remote;
  std::string server_output;  ///< client, with --get-server-output
  std::string error;          ///< "" if the test went well
};

}  // namespace perf
