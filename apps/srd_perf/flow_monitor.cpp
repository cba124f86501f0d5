// SPDX-License-Identifier: Apache-2.0
// Sampling of peer and path state; see the header.
#include "srd_perf/flow_monitor.hpp"

#include <algorithm>

#include "common/addresses.hpp"
#include "common/clock.hpp"

namespace perf {
namespace {

constexpr std::uint64_t kUdpAndIpv4Bytes = 28;
constexpr std::uint64_t kUdpAndIpv6Bytes = 48;

template <class Struct>
struct CounterName {
  const char* name;
  std::uint64_t Struct::*field;
};

constexpr CounterName<srd_peer_info> kPeerCounters[] = {
    {"tx_messages", &srd_peer_info::tx_messages},
    {"tx_message_bytes", &srd_peer_info::tx_message_bytes},
    {"tx_failed_messages", &srd_peer_info::tx_failed_messages},
    {"rx_messages", &srd_peer_info::rx_messages},
    {"rx_message_bytes", &srd_peer_info::rx_message_bytes},
    {"tx_datagrams", &srd_peer_info::tx_datagrams},
    {"tx_bytes", &srd_peer_info::tx_bytes},
    {"rx_datagrams", &srd_peer_info::rx_datagrams},
    {"rx_bytes", &srd_peer_info::rx_bytes},
    {"tx_acks", &srd_peer_info::tx_acks},
    {"rx_acks", &srd_peer_info::rx_acks},
    {"tx_piggybacks", &srd_peer_info::tx_piggybacks},
    {"tx_retransmits", &srd_peer_info::tx_retransmits},
    {"tx_spurious", &srd_peer_info::tx_spurious},
    {"losses_fifo", &srd_peer_info::losses_fifo},
    {"losses_rack", &srd_peer_info::losses_rack},
    {"tail_probes", &srd_peer_info::tail_probes},
    {"rto_probes", &srd_peer_info::rto_probes},
    {"rx_duplicates", &srd_peer_info::rx_duplicates},
    {"rx_ce", &srd_peer_info::rx_ce},
    {"rx_rejected_messages", &srd_peer_info::rx_rejected_messages},
    {"tx_rejected_messages", &srd_peer_info::tx_rejected_messages},
    {"path_rerolls", &srd_peer_info::path_rerolls},
    {"path_suspects", &srd_peer_info::path_suspects},
    {"peer_restarts", &srd_peer_info::peer_restarts},
};

/// The free-running ones; what is true now only (pool in use, active peers) has no growth.
constexpr CounterName<srd_stats> kEndpointCounters[] = {
    {"tx_messages", &srd_stats::tx_messages},
    {"tx_message_bytes", &srd_stats::tx_message_bytes},
    {"tx_failed_messages", &srd_stats::tx_failed_messages},
    {"rx_messages", &srd_stats::rx_messages},
    {"rx_message_bytes", &srd_stats::rx_message_bytes},
    {"tx_datagrams", &srd_stats::tx_datagrams},
    {"tx_bytes", &srd_stats::tx_bytes},
    {"rx_datagrams", &srd_stats::rx_datagrams},
    {"rx_bytes", &srd_stats::rx_bytes},
    {"tx_acks", &srd_stats::tx_acks},
    {"rx_acks", &srd_stats::rx_acks},
    {"tx_piggybacks", &srd_stats::tx_piggybacks},
    {"tx_retransmits", &srd_stats::tx_retransmits},
    {"tx_spurious", &srd_stats::tx_spurious},
    {"losses_fifo", &srd_stats::losses_fifo},
    {"losses_rack", &srd_stats::losses_rack},
    {"tail_probes", &srd_stats::tail_probes},
    {"rto_probes", &srd_stats::rto_probes},
    {"rx_duplicates", &srd_stats::rx_duplicates},
    {"rx_ce", &srd_stats::rx_ce},
    {"rx_rejected_messages", &srd_stats::rx_rejected_messages},
    {"tx_rejected_messages", &srd_stats::tx_rejected_messages},
    {"path_rerolls", &srd_stats::path_rerolls},
    {"path_suspects", &srd_stats::path_suspects},
    {"peer_restarts", &srd_stats::peer_restarts},
    {"late_timers", &srd_stats::late_timers},
    {"rx_beyond_window", &srd_stats::rx_beyond_window},
    {"rx_bad_check", &srd_stats::rx_bad_check},
    {"rx_malformed", &srd_stats::rx_malformed},
    {"rx_unknown_context", &srd_stats::rx_unknown_context},
    {"rx_no_memory", &srd_stats::rx_no_memory},
    {"rx_impossible_acks", &srd_stats::rx_impossible_acks},
    {"rx_dropped_handshakes", &srd_stats::rx_dropped_handshakes},
    {"peers_up", &srd_stats::peers_up},
    {"peers_lost", &srd_stats::peers_lost},
    {"rx_host_drops", &srd_stats::rx_host_drops},
    {"rx_starved", &srd_stats::rx_starved},
    {"rx_truncated", &srd_stats::rx_truncated},
    {"tx_refused", &srd_stats::tx_refused},
    {"icmp_errors", &srd_stats::icmp_errors},
    {"gso_fallbacks", &srd_stats::gso_fallbacks},
    {"paths_refused", &srd_stats::paths_refused},
};

template <class Struct, std::size_t N>
std::map<std::string, std::uint64_t> growth(const CounterName<Struct> (&names)[N],
                                            const Struct& now, const Struct& base) {
  std::map<std::string, std::uint64_t> grown;
  for (const CounterName<Struct>& counter : names) {
    grown[counter.name] = now.*counter.field - base.*counter.field;
  }
  return grown;
}

const char* state_name(std::uint32_t state) noexcept {
  switch (state) {
    case SRD_PATH_UNTRIED:
      return "untried";
    case SRD_PATH_GOOD:
      return "good";
    case SRD_PATH_SUSPECT:
      return "suspect";
    case SRD_PATH_CLOSED:
      return "closed";
    default:
      return "unknown";
  }
}

double to_us(std::uint64_t ns) noexcept {
  return static_cast<double>(ns) / static_cast<double>(apps::kNsPerUs);
}

}  // namespace

FlowMonitor::FlowMonitor(apps::Transport& transport, srd_peer peer)
    : transport_(transport), peer_(peer), stats_base_(transport.endpoint().stats()) {
  for (const srd_path_info& info : transport_.paths(peer_)) state_of(info).base = info;
  if (const auto known = transport_.endpoint().peer_info(peer_)) peer_base_ = *known;
  peer_last_ = peer_base_;
}

// A new context counts from zero: what its slots counted so far stays in the differences to `base`.
void FlowMonitor::carry_on(PathState& state) {
  for (const auto field :
       {&srd_path_info::tx_bytes, &srd_path_info::tx_datagrams, &srd_path_info::rx_datagrams,
        &srd_path_info::lost_datagrams, &srd_path_info::ce_datagrams, &srd_path_info::rerolls,
        &srd_path_info::retransmits}) {
    state.base.*field -= state.last.*field;
  }
}

FlowMonitor::PathState& FlowMonitor::state_of(const srd_path_info& info) {
  if (info.slot >= paths_.size()) paths_.resize(info.slot + 1);
  return paths_[info.slot];
}

void FlowMonitor::sample() {
  for (const srd_path_info& info : transport_.paths(peer_)) {
    PathState& state = state_of(info);
    if (info.tx_datagrams < state.last.tx_datagrams) carry_on(state);
    const bool carried = info.tx_datagrams != state.last.tx_datagrams;
    if (carried && info.rtt_ns != 0) {
      state.rtt.record(info.rtt_ns);
      if (info.rtt_min_ns != 0) state.rtt_min_ns = std::min(state.rtt_min_ns, info.rtt_min_ns);
    }
    state.last = info;
  }
  const auto known = transport_.endpoint().peer_info(peer_);
  if (!known) return;  // forgotten: the last sample stands
  const srd_peer_info& info = peer_last_ = *known;
  last_.window_bytes = info.window_bytes;
  last_.peer_window_bytes = info.window_bytes;
  last_.rtt_us = info.rtt_ns / apps::kNsPerUs;
  last_.rtt_var_us = info.rtt_var_ns / apps::kNsPerUs;
  last_.pmtu_bytes =
      info.datagram_bytes == 0
          ? 0
          : info.datagram_bytes + (info.address.family == 6 ? kUdpAndIpv6Bytes : kUdpAndIpv4Bytes);
  last_.retransmits = info.tx_retransmits - peer_base_.tx_retransmits;
  extremes_.max_window_bytes = std::max(extremes_.max_window_bytes, last_.window_bytes);
  extremes_.max_peer_window_bytes =
      std::max(extremes_.max_peer_window_bytes, last_.peer_window_bytes);
  if (info.rtt_ns != 0) {
    extremes_.max_rtt_us = std::max(extremes_.max_rtt_us, last_.rtt_us);
    extremes_.min_rtt_us = std::min(extremes_.min_rtt_us, last_.rtt_us);
    extremes_.sum_rtt_us += last_.rtt_us;
    ++extremes_.samples;
  }
}

FlowSample FlowMonitor::read() {
  sample();
  return last_;
}

void FlowMonitor::reset_extremes() noexcept {
  extremes_ = {};
}

void FlowMonitor::fill_extremes(StreamResult& result) const noexcept {
  result.max_window_bytes = extremes_.max_window_bytes;
  result.max_peer_window_bytes = extremes_.max_peer_window_bytes;
  if (extremes_.samples == 0) return;
  result.max_rtt_us = extremes_.max_rtt_us;
  result.min_rtt_us = extremes_.min_rtt_us;
  result.mean_rtt_us = extremes_.sum_rtt_us / extremes_.samples;
}

std::map<std::string, std::uint64_t> FlowMonitor::counters() const {
  return growth(kPeerCounters, peer_last_, peer_base_);
}

std::map<std::string, std::uint64_t> FlowMonitor::endpoint_counters() const {
  return growth(kEndpointCounters, transport_.endpoint().stats(), stats_base_);
}

std::vector<PathResult> FlowMonitor::path_results() {
  sample();
  std::vector<PathResult> results;
  for (std::size_t slot = 0; slot < paths_.size(); ++slot) {
    const PathState& path = paths_[slot];
    const srd_path_info& now = path.last;
    const srd_path_info& base = path.base;
    PathResult& result = results.emplace_back();
    result.slot = static_cast<std::uint32_t>(slot);
    result.state = state_name(now.state);
    result.local_host = apps::host_text(now.local);
    result.local_port = now.local.port;
    result.remote_host = apps::host_text(now.remote);
    result.remote_port = now.remote.port;
    result.bytes = now.tx_bytes - base.tx_bytes;
    result.datagrams = now.tx_datagrams - base.tx_datagrams;
    result.received_datagrams = now.rx_datagrams - base.rx_datagrams;
    result.lost = now.lost_datagrams - base.lost_datagrams;
    result.ce = now.ce_datagrams - base.ce_datagrams;
    result.rerolls = now.rerolls - base.rerolls;
    result.retransmits = now.retransmits - base.retransmits;
    if (path.rtt.count() == 0) continue;
    result.rtt_min_us = to_us(path.rtt_min_ns == UINT64_MAX ? path.rtt.min_ns() : path.rtt_min_ns);
    result.rtt_p50_us = to_us(path.rtt.percentile_ns(50));
    result.rtt_p99_us = to_us(path.rtt.percentile_ns(99));
  }
  return results;
}

}  // namespace perf
