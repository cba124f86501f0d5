// SPDX-License-Identifier: Apache-2.0
// Measured scenarios for people: one flow over several paths, healthy and in trouble. They show
// what the protocol does where no real fabric can be built; tests/sim has the ones that judge.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/event_queue.hpp"

namespace srd::sim {

class World;

struct ScenarioOptions {
  std::uint64_t seed = 1;
  std::uint32_t paths = 4;
  std::uint64_t rate_bps = 1'000'000'000;  ///< of each path
  TimeNs delay_ns = 10 * kUs;              ///< of each link, two to a path
  TimeNs span_ns = 200 * kMs;              ///< the fault comes after a quarter of it
  std::uint64_t message_bytes = 256U << 10;
  bool verbose = false;
  std::string pcap;
};

struct ScenarioResult {
  std::string name;
  double before_bps = 0;        ///< goodput before the fault
  double after_bps = 0;         ///< goodput in the last quarter
  double limit_before_bps = 0;  ///< what all usable paths carry as payload
  double limit_after_bps = 0;
  TimeNs longest_silence_ns = 0;  ///< between two deliveries, from the fault on
  std::uint64_t retransmits = 0, spurious = 0, rerolls = 0, acks = 0, datagrams = 0;
  std::uint64_t messages = 0, failed = 0;
  std::vector<double> path_share;  ///< of the bytes that left the sender's leaf
  std::vector<std::string> failures;
  std::uint64_t trace_hash = 0;
};

struct Scenario {
  const char* name;
  const char* description;
};

/// All scenarios, in the order in which a person would want to see them.
std::span<const Scenario> scenarios() noexcept;

/// Runs one by name. An unknown name gives a result with a failure that says so.
ScenarioResult run_scenario(const std::string& name, const ScenarioOptions& options);

}  // namespace srd::sim
