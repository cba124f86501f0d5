// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <utility>

#include "sim/world.hpp"

namespace srd::sim {
namespace {

constexpr TimeNs kHealedSpanMax = 40 * kSecond;  // everything is over so long after the faults
constexpr std::uint64_t kBytesMax = 40U << 20;   // per run, so that a seed stays cheap
constexpr std::uint32_t kGiantBytes = 16U << 20;

// One run: draws, then acts. All choices come from `prng_`, in program order.
class SwarmRun {
 public:
  SwarmRun(std::uint64_t seed, const SwarmOptions& options)
      : prng_(seed), world_(prng_.next(), draw_fabric()), options_(options) {
    result_.seed = seed;
  }

  SwarmResult run() {
    world_.set_verbose(options_.verbose);
    if (!options_.pcap.empty() && !world_.write_pcap(options_.pcap)) {
      world_.fail("cannot write " + options_.pcap);
    }
    draw_hosts();
    draw_traffic();
    draw_faults();
    world_.run_for(span_);
    heal();
    if (!world_.run_until_settled(kHealedSpanMax)) {
      note("not settled %" PRIu64 " ms after the faults: %" PRIu64 " messages outstanding",
           kHealedSpanMax / kMs, world_.checker().outstanding());
    }
    world_.finish();
    check_economy();
    note_counters();
    return collect();
  }

 private:
  // --- drawing helpers ---
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + prng_.below(high - low + 1);
  }

  std::uint64_t log_between(std::uint64_t low, std::uint64_t high) {
    const double share = static_cast<double>(prng_.below(1'000'001)) / 1e6;
    const double ratio = static_cast<double>(high) / static_cast<double>(low);
    return std::min(high,
                    static_cast<std::uint64_t>(static_cast<double>(low) * std::pow(ratio, share)));
  }

  template <class T, std::size_t N>
  T pick(const std::array<T, N>& choices) {
    return choices[prng_.below(N)];
  }

  double up_to(double limit) { return limit * static_cast<double>(prng_.below(1001)) / 1000.0; }

  TimeNs moment() { return prng_.below(span_); }

  HostId any_host() { return HostId{static_cast<std::uint32_t>(prng_.below(world_.host_count()))}; }

  template <class... Values>
  void note(const char* format, Values... values) {
    std::array<char, 256> line;
    std::snprintf(line.data(), line.size(), format, values...);
    result_.description.append(line.data()).append("\n");
  }

  FabricConfig draw_fabric();
  void draw_hosts();
  HostConfig draw_host();
  void draw_limits(core::Limits& limits);
  void draw_traffic();
  std::uint64_t draw_size();
  void draw_faults();
  void draw_path_fault();
  void draw_host_fault();
  void draw_interference();
  void heal();
  void check_economy();
  void note_counters();
  void note_peer(Host& host, std::uint32_t to, core::PeerId peer);
  SwarmResult collect();

  Prng prng_;
  SwarmResult result_{};
  FabricConfig fabric_{};
  bool bypass_ = false, tiny_ = false, full_check_ = true, natted_ = false;
  std::uint8_t family_ = 4;
  TimeNs span_ = 0;
  std::uint64_t size_max_ = 1U << 20;
  World world_;
  SwarmOptions options_;
};

FabricConfig SwarmRun::draw_fabric() {
  static constexpr std::array<std::uint64_t, 6> kRates{
      100'000'000, 250'000'000, 1'000'000'000, 1'000'000'000, 10'000'000'000, 25'000'000'000};
  fabric_.leaves = static_cast<std::uint32_t>(between(2, 4));
  fabric_.paths = static_cast<std::uint32_t>(between(1, 8));
  LinkConfig& link = fabric_.link;
  link.rate_bps = pick(kRates);
  link.delay_ns = log_between(2 * kUs, 500 * kUs);
  link.queue_bytes = log_between(64U << 10, 4U << 20);
  if (prng_.chance(0.5)) link.ecn_bytes = link.queue_bytes / between(2, 8);
  link.whole_bursts = prng_.chance(0.5);
  if (prng_.chance(0.5)) link.loss = up_to(0.025);  // two such links in a row
  if (prng_.chance(0.3)) link.duplicate = up_to(0.02);
  if (prng_.chance(0.3)) link.corrupt = up_to(0.01);
  if (prng_.chance(0.3)) link.reorder = up_to(0.1);
  link.reorder_ns = log_between(kUs, kMs);
  fabric_.icmp = prng_.chance(0.7);
  span_ = between(30, 250) * kMs;
  full_check_ = link.corrupt > 0 || prng_.chance(0.8);
  note("%u paths x %" PRIu64 " Mb/s, %u leaves, %" PRIu64 " us and %" PRIu64
       " KB queue per link, ECN above %" PRIu64 " KB, faults for %" PRIu64 " ms",
       fabric_.paths, link.rate_bps / 1'000'000, fabric_.leaves, link.delay_ns / kUs,
       link.queue_bytes >> 10, link.ecn_bytes >> 10, span_ / kMs);
  note("loss %.2f %%, duplication %.2f %%, corruption %.2f %%, reordering %.1f %% by %" PRIu64
       " us, %s, full check %d",
       link.loss * 100, link.duplicate * 100, link.corrupt * 100, link.reorder * 100,
       link.reorder_ns / kUs, link.whole_bursts ? "whole bursts" : "single packets", full_check_);
  return fabric_;
}

void SwarmRun::draw_limits(core::Limits& limits) {
  limits.peers = 16;
  limits.contexts = 64;
  limits.half_open = 32;
  limits.half_open_free = static_cast<std::uint32_t>(prng_.chance(0.2) ? 0 : 16);
  limits.send_messages = 2048;
  limits.receive_messages = 4096;
  limits.sent_chunks = 512;
  limits.slices = 32'768;
  limits.bundles = 1024;
  limits.paths = static_cast<std::uint32_t>(pick(std::array{1, 2, 4, 8, 16, 32, 32, 64}));
  limits.copy_pool_bytes = 4U << 20;
  if (!tiny_) return;
  limits.send_messages = static_cast<std::uint32_t>(between(8, 64));
  limits.receive_messages = static_cast<std::uint32_t>(between(64, 512));
  limits.sent_chunks = static_cast<std::uint32_t>(between(16, 64));
  limits.slices = static_cast<std::uint32_t>(between(1024, 4096));
  limits.bundles = static_cast<std::uint32_t>(between(8, 64));
  limits.rejections = 128;
  limits.rejections_per_peer = static_cast<std::uint32_t>(between(64, 96));
  limits.window_psns = static_cast<std::uint32_t>(pick(std::array{256, 512, 1024}));
  limits.max_message_bytes = static_cast<std::uint32_t>(size_max_);
  limits.partial_messages = static_cast<std::uint16_t>(between(1, 8));
  limits.receive_pool_bytes = size_max_ * between(2, 4);
  limits.copy_pool_bytes = 256U << 10;
}

HostConfig SwarmRun::draw_host() {
  HostConfig config;
  draw_limits(config.limits);
  config.family = family_;
  config.full_check = full_check_;
  config.kernel_path = !bypass_;
  config.timing = bypass_ ? core::Timing::bypass() : core::Timing::kernel();
  config.stable_id = prng_.chance(0.8);
  if (prng_.chance(0.5)) config.clock_ppm = static_cast<std::int32_t>(between(0, 200)) - 100;
  const std::uint32_t headers = family_ == 6 ? 48 : 28;
  config.io.datagram_bytes = (prng_.chance(0.1) ? 9000 : prng_.chance(0.1) ? 1400 : 1500) - headers;
  if (prng_.chance(0.3)) {
    config.io.rx_queue_datagrams = static_cast<std::uint32_t>(between(100, 250));
  }
  if (prng_.chance(0.15)) config.io.rx_buffers = static_cast<std::uint32_t>(between(64, 256));
  config.io.gro = prng_.chance(0.8);
  config.io.tx_async = prng_.chance(0.3);
  config.io.ecn = prng_.chance(0.8);
  config.io.timestamps = prng_.chance(0.8);
  config.io.burst_segments_max = bypass_ ? 8 : 43;
  if (prng_.chance(0.2)) config.io.refuse = up_to(0.05);
  if (prng_.chance(0.2)) config.io.ports = 96;
  config.io.nic_rate_bps = std::max<std::uint64_t>(fabric_.link.rate_bps, 10'000'000'000);
  config.access = fabric_.link;
  config.access.loss = config.access.duplicate = config.access.corrupt = config.access.reorder = 0;
  config.access.rate_bps = config.io.nic_rate_bps;
  if (!bypass_ && prng_.chance(0.3)) {
    config.gaps = {static_cast<double>(between(4, 80)), 2 * kMs, 16 * kMs, 0.3};
  }
  if (prng_.chance(0.2)) config.app.hold_ns = log_between(kUs, 5 * kMs);
  return config;
}

void SwarmRun::draw_hosts() {
  bypass_ = prng_.chance(0.2);
  tiny_ = prng_.chance(0.25);
  family_ = prng_.chance(0.2) ? 6 : 4;
  if (tiny_) size_max_ = log_between(2U << 10, 128U << 10);
  const std::uint64_t hosts = prng_.chance(0.5) ? 2 : between(2, 8);
  for (std::uint64_t i = 0; i < hosts; ++i) world_.add_host(draw_host());
  natted_ = hosts > 2 && prng_.chance(0.15);
  if (natted_) world_.add_nat(HostId{0}, between(20, 200) * kMs);
  note("%" PRIu64 " hosts%s, %s timing, %s limits, IPv%d", hosts,
       natted_ ? " (h0 behind a NAT)" : "", bypass_ ? "bypass" : "kernel", tiny_ ? "tiny" : "ample",
       family_);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    HostConfig& config = world_.host(HostId{static_cast<std::uint32_t>(i)}).config();
    note("  h%" PRIu64
         ": %u slots, %u B datagrams, socket queue %u, %u buffers%s%s, %.0f gaps/s, "
         "refusals %.1f %%, hold %" PRIu64 " us, %d ppm",
         i, config.limits.paths, config.io.datagram_bytes, config.io.rx_queue_datagrams,
         config.io.rx_buffers, config.io.gro ? " gro" : "", config.io.tx_async ? " async" : "",
         config.gaps.per_second, config.io.refuse * 100, config.app.hold_ns / kUs,
         config.clock_ppm);
  }
}

std::uint64_t SwarmRun::draw_size() {
  const std::uint64_t kind = prng_.below(100);
  if (kind < 3) return 0;
  if (kind < 45) return std::min(size_max_, between(1, 64));
  if (kind < 65) return std::min(size_max_, between(65, 1500));
  if (kind < 92) return std::min(size_max_, log_between(1500, 64U << 10));
  return std::min(size_max_, log_between(64U << 10, 1U << 20));
}

void SwarmRun::draw_traffic() {
  const std::uint64_t messages = log_between(10, 4000);
  const bool at_once = prng_.chance(0.2);
  const bool giant = !tiny_ && fabric_.link.rate_bps >= 1'000'000'000 && prng_.chance(0.03);
  std::uint64_t budget = std::min(kBytesMax, fabric_.link.rate_bps / 8 / 4);
  std::uint64_t planned = 0, bytes = 0;
  for (; planned < messages; ++planned) {
    SendSpec spec;
    const HostId from = any_host();
    do spec.to = any_host();
    while (spec.to == from || (natted_ && spec.to == HostId{0}));
    if (natted_ && world_.host_count() == 1) break;
    spec.bytes = giant && planned == 0 ? kGiantBytes : draw_size();
    if (spec.bytes > budget && !(giant && planned == 0)) continue;
    budget -= std::min(budget, spec.bytes);
    bytes += spec.bytes;
    spec.channel = static_cast<std::uint16_t>(prng_.below(4));
    spec.copy = spec.bytes <= 2048 && prng_.chance(0.3);
    spec.unsignaled = prng_.chance(0.1);
    spec.one_path = prng_.chance(0.1);
    spec.pieces = static_cast<std::uint8_t>(between(1, prng_.chance(0.3) ? 8 : 1));
    const TimeNs at = at_once ? 0 : moment();
    world_.at(at, [this, from, spec] {
      if (world_.host(from).alive()) world_.send(from, spec);
    });
  }
  note("%" PRIu64 " messages, %" PRIu64 " KB%s", planned, bytes >> 10,
       at_once ? ", all at once" : "");
}

void SwarmRun::draw_faults() {
  for (std::uint64_t n = prng_.below(5); n > 0; --n) draw_path_fault();
  for (std::uint64_t n = prng_.below(4); n > 0; --n) draw_host_fault();
  if (prng_.chance(0.4)) draw_interference();
  if (natted_) {
    const TimeNs at = moment();
    note("  at %" PRIu64 " us: NAT forgets its mappings", at / kUs);
    world_.at(at, [this] { world_.rebind_nat(HostId{0}); });
  }
}

void SwarmRun::draw_path_fault() {
  const TimeNs start = moment();
  const TimeNs end = start + log_between(kMs, 150 * kMs);
  const auto path = static_cast<std::uint32_t>(prng_.below(fabric_.paths));
  const auto leaf = static_cast<std::uint32_t>(prng_.below(fabric_.leaves));
  const LinkConfig base = fabric_.link;
  const auto change = [this, path](TimeNs at, auto edit) {
    world_.at(at, [this, path, edit] { world_.fabric().change_path(path, edit); });
  };
  const char* what = "";
  switch (prng_.below(6)) {
    case 0:
      what = "dead both ways";
      world_.at(start, [this, path] { world_.fabric().set_path_dead(path, true); });
      world_.at(end, [this, path] { world_.fabric().set_path_dead(path, false); });
      break;
    case 1:
      what = "dead one way";
      world_.at(start, [=, this] { world_.fabric().set_uplink_dead(leaf, path, true); });
      world_.at(end, [=, this] { world_.fabric().set_uplink_dead(leaf, path, false); });
      break;
    case 2:
      what = "loses a third";
      change(start, [](LinkConfig& link) { link.loss = 0.33; });
      change(end, [base](LinkConfig& link) { link.loss = base.loss; });
      break;
    case 3:
      what = "at a tenth of its rate";
      change(start, [base](LinkConfig& link) { link.rate_bps = base.rate_bps / 10; });
      change(end, [base](LinkConfig& link) { link.rate_bps = base.rate_bps; });
      break;
    case 4:
      what = "longer by 2 ms";
      change(start, [base](LinkConfig& link) { link.delay_ns = base.delay_ns + kMs; });
      change(end, [base](LinkConfig& link) { link.delay_ns = base.delay_ns; });
      break;
    default: {
      what = "and all others dead";
      world_.at(start,
                [this] { world_.fabric().change_all([](LinkConfig& link) { link.dead = true; }); });
      world_.at(
          end, [this] { world_.fabric().change_all([](LinkConfig& link) { link.dead = false; }); });
      break;
    }
  }
  note("  at %" PRIu64 " us for %" PRIu64 " us: path %u %s (leaf %u)", start / kUs,
       (end - start) / kUs, path, what, leaf);
}

void SwarmRun::draw_host_fault() {
  const TimeNs start = moment();
  const TimeNs length = log_between(kMs, 150 * kMs);
  const HostId id = any_host();
  const char* what = "";
  switch (prng_.below(6)) {
    case 0:
      what = "stopped";
      world_.at(start, [=, this] { world_.suspend(id, length); });
      break;
    case 1:
      what = "does not read";
      world_.at(start, [=, this] { world_.host(id).app().config.reads = false; });
      world_.at(start + length, [=, this] {
        world_.host(id).app().config.reads = true;
        world_.host(id).wake(world_.now());
      });
      break;
    case 2:
      what = "does not release";
      world_.at(start, [=, this] { world_.host(id).app().config.releases = false; });
      world_.at(start + length, [=, this] {
        world_.host(id).app().config.releases = true;
        world_.host(id).wake(world_.now());
      });
      break;
    case 3:
      what = "restarts";
      world_.at(start, [=, this] { world_.restart(id); });
      break;
    case 4:
      what = "crashes and comes back";
      world_.at(start, [=, this] { world_.crash(id); });
      world_.at(start + length, [=, this] {
        if (!world_.host(id).alive()) world_.start(id);
      });
      break;
    default:
      what = "closes and comes back";
      world_.at(start, [=, this] { world_.close(id); });
      world_.at(start + length, [=, this] {
        if (!world_.host(id).alive()) world_.start(id);
      });
      break;
  }
  note("  at %" PRIu64 " us for %" PRIu64 " us: h%u %s", start / kUs, length / kUs, index_of(id),
       what);
}

// Old packets come again, garbage comes in, ICMP errors lie.
void SwarmRun::draw_interference() {
  const std::uint64_t count = between(5, 60);
  Rule rule;
  rule.record = true;
  const std::uint64_t every = between(1, 20);
  rule.match.where = [every, seen = std::uint64_t{0}](const PacketView&) mutable {
    return seen++ % every == 0;
  };
  rule.remaining = 500;
  Rule& recorder = world_.add_rule(std::move(rule));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t draw = prng_.next();
    world_.at(moment(), [this, draw, &recorder] {
      if (recorder.recorded.empty()) return;
      Prng local(draw);
      RecordedPacket packet = recorder.recorded[local.below(recorder.recorded.size())];
      const std::uint64_t kind = local.below(4);
      if (kind == 1) {
        for (auto& byte : packet.bytes) byte = static_cast<std::byte>(local.next());
      } else if (kind == 2 && world_.host(packet.from).alive()) {
        world_.inject_icmp(
            packet.from,
            local.chance(0.5) ? PathEvent::Kind::refused : PathEvent::Kind::unreachable,
            packet.source.port, packet.destination,
            std::span(packet.bytes).first(std::min<std::size_t>(32, packet.bytes.size())));
        return;
      } else if (kind == 3 && packet.bytes.size() > 8) {
        packet.bytes.resize(local.below(packet.bytes.size()));
      }
      world_.replay(packet);
    });
  }
  note("  %" PRIu64 " replays, forgeries and ICMP errors", count);
}

void SwarmRun::heal() {
  for (Link& link : world_.fabric().links()) {
    link.config.dead = false;
    link.config.loss = link.config.duplicate = link.config.corrupt = link.config.reorder = 0;
  }
  world_.fabric().change_all([this](LinkConfig& link) {
    link.rate_bps = fabric_.link.rate_bps;
    link.delay_ns = fabric_.link.delay_ns;
  });
  for (std::uint32_t i = 0; i < world_.host_count(); ++i) {
    Host& host = world_.host(HostId{i});
    host.config().gaps.per_second = 0;
    if (host.alive()) host.io().config().refuse = 0;
    host.config().io.refuse = 0;
  }
}

// Acknowledgements and retransmissions stay in proportion to what was received and lost.
void SwarmRun::check_economy() {
  for (std::uint32_t i = 0; i < world_.host_count(); ++i) {
    Host& host = world_.host(HostId{i});
    if (!host.alive()) continue;
    const core::Counters& c = host.core().counters();
    const std::uint64_t acks_allowed = 2 * c.rx_datagrams.value() + 200;
    if (c.tx_acks.value() > acks_allowed) {
      world_.fail(host.name() + " sent " + std::to_string(c.tx_acks.value()) + " ACKs for " +
                  std::to_string(c.rx_datagrams.value()) + " datagrams");
    }
  }
}

void SwarmRun::note_peer(Host& host, std::uint32_t to, core::PeerId peer) {
  srd_peer_info info{};
  info.struct_bytes = sizeof info;
  if (!host.core().peer_info(peer, info)) return;
  std::array<srd_path_info, 64> paths{};
  const std::size_t count = std::min(host.core().path_info(peer, paths), paths.size());
  std::array<std::size_t, 4> states{};
  for (std::size_t i = 0; i < count; ++i) ++states[paths[i].state & 3U];
  note("    to h%u: state %u, window %" PRIu64 ", in flight %" PRIu64 " (%u), queued %" PRIu64
       ", rtt %" PRIu64 "/%" PRIu64 " us, paths: %zu untried, %zu good, %zu suspect, %zu closed",
       to, info.state, info.window_bytes, info.in_flight_bytes, info.in_flight_datagrams,
       info.queued_messages, info.rtt_min_ns / kUs, info.rtt_ns / kUs, states[0], states[1],
       states[2], states[3]);
}

// For whoever looks for the cause of a failure.
void SwarmRun::note_counters() {
  for (std::uint32_t i = 0; i < world_.host_count(); ++i) {
    Host& host = world_.host(HostId{i});
    if (!host.alive()) continue;
    const core::Counters& c = host.core().counters();
    const std::array<std::pair<const char*, const Counter*>, 27> all{{
        {"rx_datagrams", &c.rx_datagrams},
        {"tx_datagrams", &c.tx_datagrams},
        {"tx_acks", &c.tx_acks},
        {"tx_retransmits", &c.tx_retransmits},
        {"tx_spurious", &c.tx_spurious},
        {"losses_fifo", &c.losses_fifo},
        {"losses_rack", &c.losses_rack},
        {"tail_probes", &c.tail_probes},
        {"rto_probes", &c.rto_probes},
        {"late_timers", &c.late_timers},
        {"rx_duplicates", &c.rx_duplicates},
        {"rx_beyond_window", &c.rx_beyond_window},
        {"rx_bad_check", &c.rx_bad_check},
        {"rx_malformed", &c.rx_malformed},
        {"rx_unknown_context", &c.rx_unknown_context},
        {"rx_no_memory", &c.rx_no_memory},
        {"rx_impossible_acks", &c.rx_impossible_acks},
        {"rx_dropped_handshakes", &c.rx_dropped_handshakes},
        {"rx_rejected_messages", &c.rx_rejected_messages},
        {"tx_rejected_messages", &c.tx_rejected_messages},
        {"path_rerolls", &c.path_rerolls},
        {"path_suspects", &c.path_suspects},
        {"peers_lost", &c.peers_lost},
        {"peer_restarts", &c.peer_restarts},
        {"tx_refused", &c.tx_refused},
        {"sends_active", &c.sends_active},
        {"peers_active", &c.peers_active},
    }};
    std::string line = host.name() + ":";
    for (const auto& [name, counter] : all) {
      if (counter->value() == 0) continue;
      line.append(" ").append(name).append(" ").append(std::to_string(counter->value()));
    }
    line.append(" host_drops ").append(std::to_string(host.io().counters().rx_host_drops));
    result_.description.append("  ").append(line).append("\n");
    for (const auto& [to, peer] : host.app().peers()) note_peer(host, to, peer);
  }
}

SwarmResult SwarmRun::collect() {
  Checker& checker = world_.checker();
  const LinkCounters links = world_.fabric().total();
  std::uint64_t retransmits = 0, spurious = 0;
  for (std::uint32_t i = 0; i < world_.host_count(); ++i) {
    Host& host = world_.host(HostId{i});
    if (!host.alive()) continue;
    retransmits += host.core().counters().tx_retransmits.value();
    spurious += host.core().counters().tx_spurious.value();
  }
  std::array<char, 320> line;
  std::snprintf(line.data(), line.size(),
                "%zu messages: %" PRIu64 " delivered, %" PRIu64 " failed; %" PRIu64
                " datagrams, %" PRIu64 " dropped, %" PRIu64 " sent again (%" PRIu64
                " needlessly); %" PRIu64 " ms virtual",
                checker.messages().size(), checker.delivered(), checker.failed(),
                world_.datagrams(), links.dropped(), retransmits, spurious, world_.now() / kMs);
  result_.summary = line.data();
  result_.failures = checker.failures();
  result_.failure_count = checker.failure_count();
  result_.trace_hash = world_.trace_hash();
  result_.datagrams = world_.datagrams();
  result_.messages = checker.messages().size();
  result_.virtual_ns = world_.now();
  return std::move(result_);
}

}  // namespace

SwarmResult run_swarm(std::uint64_t seed, const SwarmOptions& options) {
  return SwarmRun(seed, options).run();
}

std::uint64_t swarm_seed(std::uint64_t base, std::uint64_t index) noexcept {
  std::uint64_t state = base + index * 0x9e3779b97f4a7c15U;
  return split_mix(state);
}

std::string swarm_replay_command(std::uint64_t seed) {
  std::array<char, 64> line;
  std::snprintf(line.data(), line.size(), "srd-sim --swarm --seed 0x%016" PRIx64, seed);
  return line.data();
}

}  // namespace srd::sim
