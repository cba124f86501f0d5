// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios.hpp"

#include <algorithm>
#include <array>

#include "sim/world.hpp"

namespace srd::sim {
namespace {

constexpr std::array<Scenario, 9> kScenarios{{
    {"healthy", "one flow over all paths, nothing wrong"},
    {"dead-path", "one path dies silently, both ways"},
    {"dead-one-way", "one path swallows what the sender sends"},
    {"dead-ack-path", "one path swallows what the receiver answers"},
    {"loss-one", "one path loses 1 % of its datagrams"},
    {"loss-all", "all paths lose 1 % of their datagrams"},
    {"slow-path", "one path falls to a quarter of its rate"},
    {"host-gaps", "both hosts lose their CPU for 2 to 8 ms, 20 times a second"},
    {"restart", "the receiver's process restarts"},
}};

constexpr double kPayloadShare = 1408.0 / (1408 + 40 + 66);  // DATA over Ethernet at MTU 1500
constexpr std::size_t kDepth = 64;

class Flow {
 public:
  Flow(const std::string& name, const ScenarioOptions& options)
      : name_(name), options_(options), world_(options.seed, fabric_config(options)) {
    HostConfig config;
    config.io.nic_rate_bps = config.access.rate_bps = 100'000'000'000;
    config.access.queue_bytes = 8U << 20;
    if (name == "host-gaps") config.gaps = {20, 2 * kMs, 8 * kMs, 0.3};
    sender_ = world_.add_host(config);
    receiver_ = world_.add_host(config);
  }

  ScenarioResult run() {
    world_.set_verbose(options_.verbose);
    if (!options_.pcap.empty() && !world_.write_pcap(options_.pcap)) {
      world_.fail("cannot write " + options_.pcap);
    }
    keep_sending();
    const TimeNs quarter = options_.span_ns / 4;
    world_.run_for(quarter / 4);  // start-up is not measured
    result_.name = name_;
    result_.before_bps = measure(quarter - quarter / 4);
    watch_silence();
    break_something();
    world_.run_for(2 * quarter);
    result_.after_bps = measure(options_.span_ns - 3 * quarter);
    stopping_ = true;
    world_.run_until_settled(20 * kSecond);
    if (options_.span_ns <= kSecond) world_.finish();
    return collect();
  }

 private:
  static FabricConfig fabric_config(const ScenarioOptions& options) {
    FabricConfig fabric;
    fabric.paths = options.paths;
    fabric.link.rate_bps = options.rate_bps;
    fabric.link.delay_ns = options.delay_ns;
    fabric.link.queue_bytes = 512U << 10;
    return fabric;
  }

  void keep_sending() {
    const SendSpec spec{.to = receiver_, .bytes = options_.message_bytes};
    for (std::size_t i = 0; i < kDepth; ++i) world_.send(sender_, spec);
    world_.host(sender_).app().on_event = [this, spec](const core::Event& event) {
      if (event.kind == core::Event::Kind::send_done && !stopping_) world_.send(sender_, spec);
    };
  }

  // Bytes that reach the application per second of virtual time.
  double measure(TimeNs span) {
    const std::uint64_t delivered = world_.checker().delivered_bytes_at(receiver_);
    world_.run_for(span);
    return static_cast<double>(world_.checker().delivered_bytes_at(receiver_) - delivered) * 8e9 /
           static_cast<double>(span);
  }

  void watch_silence() {
    last_delivery_ = world_.now();
    world_.host(receiver_).app().on_event = [this](const core::Event& event) {
      if (event.kind != core::Event::Kind::message) return;
      result_.longest_silence_ns =
          std::max(result_.longest_silence_ns, world_.now() - last_delivery_);
      last_delivery_ = world_.now();
    };
  }

  void break_something() {
    const double path = static_cast<double>(options_.rate_bps) * kPayloadShare;
    result_.limit_before_bps = path * options_.paths;
    double usable = options_.paths;
    Fabric& fabric = world_.fabric();
    if (name_ == "dead-path") {
      fabric.set_path_dead(0, true);
      usable -= 1;
    } else if (name_ == "dead-one-way") {
      fabric.set_uplink_dead(fabric.leaf_of(sender_), 0, true);
      usable -= 1;
    } else if (name_ == "dead-ack-path") {
      fabric.set_uplink_dead(fabric.leaf_of(receiver_), 0, true);
    } else if (name_ == "loss-one") {
      fabric.up(fabric.leaf_of(sender_), 0).config.loss = 0.01;
    } else if (name_ == "loss-all") {
      for (std::uint32_t i = 0; i < options_.paths; ++i) {
        fabric.up(fabric.leaf_of(sender_), i).config.loss = 0.01;
      }
    } else if (name_ == "slow-path") {
      fabric.change_path(0, [](LinkConfig& link) { link.rate_bps /= 4; });
      usable -= 0.75;
    } else if (name_ == "restart") {
      world_.restart(receiver_);
    }
    result_.limit_after_bps = path * usable;
  }

  ScenarioResult collect() {
    const core::Counters& counters = world_.host(sender_).core().counters();
    result_.retransmits = counters.tx_retransmits.value();
    result_.spurious = counters.tx_spurious.value();
    result_.rerolls = counters.path_rerolls.value();
    result_.acks = counters.rx_acks.value();
    result_.datagrams = counters.tx_datagrams.value();
    result_.messages = world_.checker().messages().size();
    result_.failed = world_.checker().failed();
    Fabric& fabric = world_.fabric();
    double total = 0;
    for (std::uint32_t i = 0; i < options_.paths; ++i) {
      const Link& link = fabric.up(fabric.leaf_of(sender_), i);
      result_.path_share.push_back(static_cast<double>(link.counters.bytes));
      total += static_cast<double>(link.counters.bytes);
    }
    for (double& share : result_.path_share) share = total > 0 ? share / total : 0;
    result_.failures = world_.checker().failures();
    result_.trace_hash = world_.trace_hash();
    return result_;
  }

  std::string name_;
  ScenarioOptions options_;
  World world_;
  ScenarioResult result_{};
  HostId sender_ = kNoHost, receiver_ = kNoHost;
  TimeNs last_delivery_ = 0;
  bool stopping_ = false;
};

}  // namespace

std::span<const Scenario> scenarios() noexcept {
  return kScenarios;
}

ScenarioResult run_scenario(const std::string& name, const ScenarioOptions& options) {
  for (const Scenario& scenario : kScenarios) {
    if (name == scenario.name) return Flow(name, options).run();
  }
  ScenarioResult unknown;
  unknown.name = name;
  unknown.failures.push_back("there is no scenario \"" + name + "\"; srd-sim --list names all");
  return unknown;
}

}  // namespace srd::sim
