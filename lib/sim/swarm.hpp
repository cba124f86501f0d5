// SPDX-License-Identifier: Apache-2.0
// Swarm testing: each seed draws a whole world (hosts, links, limits, traffic) and a set of faults,
// runs them, heals everything and demands that the world converges with every promise kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/event_queue.hpp"

namespace srd::sim {

struct SwarmOptions {
  bool verbose = false;  ///< each datagram and event to standard error
  std::string pcap;      ///< file for a packet capture, empty: none
};

struct SwarmResult {
  std::uint64_t seed = 0;
  std::vector<std::string> failures;  ///< empty: all promises kept
  std::uint64_t failure_count = 0;
  std::string description;  ///< the world that was drawn, a few lines
  std::string summary;      ///< what happened in it, one line
  std::uint64_t trace_hash = 0;
  std::uint64_t datagrams = 0;
  std::uint64_t messages = 0;
  TimeNs virtual_ns = 0;
};

/// Same seed and code, same result. A fraction of a second each.
SwarmResult run_swarm(std::uint64_t seed, const SwarmOptions& options = {});

/// Seed number `index` of a series that starts from `base`.
std::uint64_t swarm_seed(std::uint64_t base, std::uint64_t index) noexcept;

/// The command that replays one seed.
std::string swarm_replay_command(std::uint64_t seed);

}  // namespace srd::sim
