// SPDX-License-Identifier: Apache-2.0
// srd-sim: runs the whole protocol in virtual time. Replays a swarm seed, runs a series of seeds,
// or shows what one flow does when the network misbehaves. docs/SIMULATOR.md is its manual.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <getopt.h>

#include "sim/scenarios.hpp"
#include "sim/swarm.hpp"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

constexpr const char* kUsage =
    R"(usage: srd-sim --swarm [--seed N] [--seeds COUNT] [--shard I/N] [--pcap FILE] [--verbose]
       srd-sim --scenario NAME|all [--seed N] [--paths N] [--rate MBIT] [--delay US] [--time MS]
               [--message BYTES] [--json] [--pcap FILE] [--verbose]
       srd-sim --list

  --swarm          draw a world and faults from the seed, run, heal, and check every promise
  --seed N         the seed (decimal or 0x...); default: $SRD_SEED, else random; printed
  --seeds COUNT    so many seeds, derived from --seed; default 1, which is --seed itself
  --shard I/N      only every Nth of them, from the Ith on
  --scenario NAME  one flow over several paths; see --list
  --paths, --rate, --delay, --time, --message
                   4 paths of 1000 Mbit/s, 10 us per link, 200 ms, messages of 262144 bytes
  --json           one JSON object per scenario
  --pcap FILE      every datagram as a packet capture with made-up IP headers
  --verbose        every datagram and application event on standard error
Exit code 0: all promises kept; 1: not; 2: wrong usage.
)";

struct Options {
  bool swarm = false, list = false, json = false, seeded = false;
  std::uint64_t seeds = 1;
  std::uint64_t shard = 1, shards = 1;
  std::string scenario;
  srd::sim::SwarmOptions swarm_options;
  srd::sim::ScenarioOptions scenario_options;
};

int usage_error(const std::string& text) {
  std::fprintf(stderr, "srd-sim: %s\n%s", text.c_str(), kUsage);
  return kExitUsage;
}

bool parse_number(const char* text, std::uint64_t& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtoull(text, &end, 0);
  return errno == 0 && end != text && *end == '\0' && *text != '-';
}

bool parse_shard(const std::string& text, Options& options) {
  const std::size_t slash = text.find('/');
  return slash != std::string::npos && parse_number(text.substr(0, slash).c_str(), options.shard) &&
         parse_number(text.substr(slash + 1).c_str(), options.shards) && options.shard >= 1 &&
         options.shard <= options.shards;
}

enum OptionId {
  kSwarm = 1,
  kScenario,
  kShard,
  kPcap,
  kJson,
  kVerbose,
  kList,
  kHelp,
  kFirstNumber,  // options with a number follow
  kSeed = kFirstNumber,
  kSeeds,
  kPaths,
  kRate,
  kDelay,
  kTime,
  kMessage
};

constexpr option kOptions[] = {{"swarm", no_argument, nullptr, kSwarm},
                               {"scenario", required_argument, nullptr, kScenario},
                               {"shard", required_argument, nullptr, kShard},
                               {"pcap", required_argument, nullptr, kPcap},
                               {"json", no_argument, nullptr, kJson},
                               {"verbose", no_argument, nullptr, kVerbose},
                               {"list", no_argument, nullptr, kList},
                               {"help", no_argument, nullptr, kHelp},
                               {"seed", required_argument, nullptr, kSeed},
                               {"seeds", required_argument, nullptr, kSeeds},
                               {"paths", required_argument, nullptr, kPaths},
                               {"rate", required_argument, nullptr, kRate},
                               {"delay", required_argument, nullptr, kDelay},
                               {"time", required_argument, nullptr, kTime},
                               {"message", required_argument, nullptr, kMessage},
                               {nullptr, 0, nullptr, 0}};

// These return what is wrong, or nothing.
std::string apply_number(int id, const char* text, Options& options) {
  std::uint64_t number = 0;
  if (!parse_number(text, number) || (number == 0 && id != kSeed)) {
    return std::string("a number is needed, not \"").append(text).append("\"");
  }
  srd::sim::ScenarioOptions& scenario = options.scenario_options;
  if (id == kSeed) {
    scenario.seed = number;
    options.seeded = true;
  } else if (id == kSeeds) {
    options.seeds = number;
  } else if (id == kPaths) {
    if (number > 64) return "--paths is at most 64";
    scenario.paths = static_cast<std::uint32_t>(number);
  } else if (id == kRate) {
    if (number > 1'000'000) return "--rate is at most 1000000 Mbit/s";
    scenario.rate_bps = number * 1'000'000;
  } else if (id == kDelay) {
    if (number > 1'000'000) return "--delay is at most 1000000 us";
    scenario.delay_ns = number * srd::sim::kUs;
  } else if (id == kTime) {
    if (number > 3'600'000) return "--time is at most 3600000 ms";
    scenario.span_ns = number * srd::sim::kMs;
  } else {
    if (number > 16U << 20) return "--message is at most 16777216 bytes";
    scenario.message_bytes = number;
  }
  return {};
}

std::string apply(int id, const char* text, Options& options) {
  if (id >= kFirstNumber) return apply_number(id, text, options);
  if (id == kSwarm) options.swarm = true;
  if (id == kScenario) options.scenario = text;
  if (id == kPcap) options.scenario_options.pcap = options.swarm_options.pcap = text;
  if (id == kJson) options.json = true;
  if (id == kVerbose) {
    options.scenario_options.verbose = options.swarm_options.verbose = true;
  }
  if (id == kList) options.list = true;
  if (id == kShard && !parse_shard(text, options)) {
    return std::string("--shard takes I/N with 1 <= I <= N, not \"").append(text).append("\"");
  }
  return {};
}

// 0: go on; otherwise the exit code plus one.
int parse(int argc, char** argv, Options& options) {
  int id = 0;
  // One thread: getopt's state is nobody else's.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  while ((id = getopt_long(argc, argv, "h", kOptions, nullptr)) != -1) {
    if (id == 'h' || id == kHelp) {
      std::fputs(kUsage, stdout);
      return 1;
    }
    if (id == '?') return 1 + usage_error("see the usage");
    const std::string problem = apply(id, optarg, options);
    if (!problem.empty()) return 1 + usage_error(problem);
  }
  if (optind < argc) {
    return 1 + usage_error(std::string("unexpected \"").append(argv[optind]).append("\""));
  }
  if (options.swarm + options.list + !options.scenario.empty() != 1) {
    return 1 + usage_error("one of --swarm, --scenario, --list is needed");
  }
  return 0;
}

int run_swarm_seeds(const Options& options) {
  std::uint64_t failed = 0, ran = 0;
  for (std::uint64_t i = options.shard - 1; i < options.seeds; i += options.shards, ++ran) {
    const std::uint64_t seed = options.seeds == 1
                                   ? options.scenario_options.seed
                                   : srd::sim::swarm_seed(options.scenario_options.seed, i);
    const auto start = std::chrono::steady_clock::now();
    const auto result = srd::sim::run_swarm(seed, options.swarm_options);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (options.seeds == 1 || !result.failures.empty()) {
      std::printf("%s", result.description.c_str());
    }
    std::printf("seed 0x%016" PRIx64 ": %s; %.2f s, trace %016" PRIx64 "\n", seed,
                result.summary.c_str(), seconds, result.trace_hash);
    if (result.failures.empty()) continue;
    ++failed;
    for (const std::string& failure : result.failures)
      std::printf("  FAILED %s\n", failure.c_str());
    if (result.failure_count > result.failures.size()) {
      std::printf("  and %" PRIu64 " more\n", result.failure_count - result.failures.size());
    }
    std::printf("%s\n", srd::sim::swarm_replay_command(seed).c_str());
  }
  if (options.seeds > 1) {
    std::printf("%" PRIu64 " of %" PRIu64 " seeds kept all promises\n", ran - failed, ran);
  }
  return failed == 0 ? 0 : kExitFailure;
}

void print_json(const srd::sim::ScenarioResult& result) {
  std::printf(
      "{\"scenario\":\"%s\",\"before_bps\":%.0f,\"after_bps\":%.0f,"
      "\"limit_before_bps\":%.0f,\"limit_after_bps\":%.0f,\"longest_silence_us\":%" PRIu64
      ",\"datagrams\":%" PRIu64 ",\"retransmits\":%" PRIu64 ",\"spurious\":%" PRIu64
      ",\"rerolls\":%" PRIu64 ",\"acks\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"failed\":%" PRIu64
      ",\"path_share\":[",
      result.name.c_str(), result.before_bps, result.after_bps, result.limit_before_bps,
      result.limit_after_bps, result.longest_silence_ns / srd::sim::kUs, result.datagrams,
      result.retransmits, result.spurious, result.rerolls, result.acks, result.messages,
      result.failed);
  for (std::size_t i = 0; i < result.path_share.size(); ++i) {
    std::printf("%s%.4f", i == 0 ? "" : ",", result.path_share[i]);
  }
  std::printf("],\"promises_kept\":%s}\n", result.failures.empty() ? "true" : "false");
}

void print_row(const srd::sim::ScenarioResult& result) {
  std::printf("%-14s %6.2f Gb/s (%3.0f %%)  %6.2f Gb/s (%3.0f %%)  %8.2f ms  %7" PRIu64
              "  %7" PRIu64 "  %5" PRIu64 "  ",
              result.name.c_str(), result.before_bps / 1e9,
              100 * result.before_bps / result.limit_before_bps, result.after_bps / 1e9,
              100 * result.after_bps / result.limit_after_bps,
              static_cast<double>(result.longest_silence_ns) / 1e6, result.retransmits,
              result.spurious, result.rerolls);
  for (const double share : result.path_share) std::printf(" %2.0f", share * 100);
  std::printf("\n");
}

int run_scenarios(const Options& options) {
  bool kept = true;
  bool headed = options.json;
  for (const auto& scenario : srd::sim::scenarios()) {
    if (options.scenario != "all" && options.scenario != scenario.name) continue;
    const auto result = srd::sim::run_scenario(scenario.name, options.scenario_options);
    if (!headed) {
      std::printf("%-14s %-19s  %-19s  %-11s  %-7s  %-7s  %-5s   %s\n", "scenario",
                  "before the fault", "long after it", "silence", "resent", "needless", "rolls",
                  "share of each path, %");
      headed = true;
    }
    options.json ? print_json(result) : print_row(result);
    for (const std::string& failure : result.failures) {
      std::fprintf(stderr, "FAILED %s\n", failure.c_str());
      kept = false;
    }
    if (!kept) {
      std::fprintf(stderr, "srd-sim --scenario %s --seed 0x%016" PRIx64 "\n", scenario.name,
                   options.scenario_options.seed);
    }
    std::fflush(stdout);
  }
  return kept ? 0 : kExitFailure;
}

bool is_scenario(const std::string& name) {
  if (name == "all") return true;
  for (const auto& scenario : srd::sim::scenarios()) {
    if (name == scenario.name) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const int code = parse(argc, argv, options); code != 0) return code - 1;
  if (options.list) {
    for (const auto& scenario : srd::sim::scenarios()) {
      std::printf("%-14s %s\n", scenario.name, scenario.description);
    }
    return 0;
  }
  if (!options.seeded && options.swarm) {
    const char* text = std::getenv("SRD_SEED");  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr || !parse_number(text, options.scenario_options.seed)) {
      std::random_device device;
      options.scenario_options.seed = std::uint64_t{device()} << 32 | device();
    }
    std::printf("base seed 0x%016" PRIx64 "\n", options.scenario_options.seed);
  }
  if (options.swarm) return run_swarm_seeds(options);
  if (!is_scenario(options.scenario)) {
    return usage_error("there is no scenario \"" + options.scenario + "\"; --list names all");
  }
  return run_scenarios(options);
}
