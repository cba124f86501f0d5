// SPDX-License-Identifier: Apache-2.0
// Watches the flow to one peer while a test runs: window, round trip and counters of its paths. The
// library gives current values; extremes and percentiles come from samples taken here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "common/transport.hpp"
#include "srd_perf/results.hpp"

namespace perf {

class FlowMonitor {
 public:
  /// Counts from now on. `transport` must outlive it.
  FlowMonitor(apps::Transport& transport, srd_peer peer);

  /// Every kSamplePeriodNs. O(paths).
  void sample();
  /// The state now, with a fresh sample.
  FlowSample read();

  [[nodiscard]] std::vector<PathResult> path_results();
  /// Window and round-trip extremes since reset_extremes(), into a sender's result.
  void fill_extremes(StreamResult& result) const noexcept;
  void reset_extremes() noexcept;

  [[nodiscard]] std::uint64_t retransmits() const noexcept { return last_.retransmits; }

  /// What the counters of the peer grew by.
  [[nodiscard]] std::map<std::string, std::uint64_t> counters() const;
  /// What those of the whole endpoint grew by; other tests of a server are in them.
  [[nodiscard]] std::map<std::string, std::uint64_t> endpoint_counters() const;

  static constexpr std::uint64_t kSamplePeriodNs = 10'000'000;

 private:
  static constexpr unsigned kRttPrecisionBits = 7;

  struct PathState {
    srd_path_info base{};  ///< counters when the test began
    srd_path_info last{};
    apps::Histogram rtt{kRttPrecisionBits};
    std::uint64_t rtt_min_ns = UINT64_MAX;
  };

  struct Extremes {
    std::uint64_t max_window_bytes = 0, max_peer_window_bytes = 0;
    std::uint64_t max_rtt_us = 0, min_rtt_us = UINT64_MAX, sum_rtt_us = 0, samples = 0;
  };

  static void carry_on(PathState& state);
  PathState& state_of(const srd_path_info& info);

  apps::Transport& transport_;
  srd_peer peer_;
  std::vector<PathState> paths_;  ///< by slot
  FlowSample last_;
  Extremes extremes_;
  srd_stats stats_base_;
  srd_peer_info peer_base_{}, peer_last_{};
};

}  // namespace perf
