// SPDX-License-Identifier: Apache-2.0
// The window of one context towards its peer, in bytes: delay and ECN decide, loss only when it is
// more than a path's own trouble. Sub-packet windows are paced. How the window is spread over paths
// is the business of PathSet. Source: PROTOCOL.md 8.
#pragma once

#include <array>
#include <cstdint>

#include "srd/core/config.hpp"

namespace srd::core {

class Congestion {
 public:
  struct Setup {
    std::uint64_t mss_bytes = 0;  ///< payload of a full datagram
    std::uint64_t initial_bytes = 0;
    std::uint64_t window_limit_bytes = 0;  ///< receive window in PSNs times mss
  };

  void reset(const Timing& timing, const Setup& setup) noexcept;

  /// What one ACK batch told.
  struct Feedback {
    std::uint64_t now_ns = 0;
    std::uint64_t acked_bytes = 0;
    std::uint64_t ce_bytes = 0;       ///< of them marked
    std::uint64_t delayed_bytes = 0;  ///< of them on slots above the target delay
    std::uint64_t base_rtt_ns = 0, srtt_ns = 0;
    bool window_limited = false;  ///< the window, not the application, held data back
  };

  /// `delay_ns` of one datagram group of `bytes`, above the base RTT of its slot.
  void add_delay(std::uint64_t delay_ns, std::uint64_t bytes) noexcept;
  void on_ack(const Feedback& feedback) noexcept;

  /// Bursts sent and lost, for telling congestion from noise.
  void on_burst_sent() noexcept { ++bursts_sent_; }

  void on_burst_lost(std::uint64_t now_ns) noexcept;
  /// Three RTO probes unanswered: the network or the peer is away.
  void on_outage() noexcept;
  /// The receiving host dropped datagrams or its memory runs full: second window.
  void on_host_drops(std::uint64_t now_ns) noexcept;
  void on_pressure(std::uint8_t pressure, std::uint64_t acked_bytes) noexcept;

  [[nodiscard]] std::uint64_t window_bytes() const noexcept;

  [[nodiscard]] std::uint64_t target_ns() const noexcept { return target_ns_; }

  [[nodiscard]] double mean_delay_ns() const noexcept { return mean_delay_ns_; }

  /// Bytes per ns delivered, maximum of the last second.
  [[nodiscard]] double rate() const noexcept;
  /// Gap between datagrams when the window is below one datagram, else 0.
  [[nodiscard]] std::uint64_t pacing_gap_ns(std::uint64_t srtt_ns) const noexcept;

 private:
  void update_rate(const Feedback& feedback) noexcept;
  void grow(const Feedback& feedback) noexcept;
  void cut(std::uint64_t now_ns, double factor) noexcept;
  [[nodiscard]] double floor_bytes() const noexcept;
  [[nodiscard]] double ceiling_bytes() const noexcept;

  Timing timing_{};
  Setup setup_{};
  double window_ = 0, host_window_ = 0;
  double mean_delay_ns_ = 0;
  std::uint64_t target_ns_ = 0, base_rtt_ns_ = 0, srtt_ns_ = 0;
  std::uint64_t last_cut_ns_ = 0, last_host_cut_ns_ = 0, last_ack_ns_ = 0;
  bool slow_start_ = true;
  // over the last RTT
  std::uint64_t round_end_ns_ = 0, round_bytes_ = 0, round_ce_ = 0, round_delayed_ = 0;
  // loss share over about 128 bursts
  std::uint32_t bursts_sent_ = 0, bursts_lost_ = 0;
  double loss_share_ = 0;
  // delivery rate
  std::uint64_t rate_since_ns_ = 0, rate_bytes_ = 0;
  std::uint64_t rate_slot_ns_ = 0;
  std::array<double, 2> rate_max_{};
  std::array<std::uint64_t, 2> gap_max_ns_{};
};

}  // namespace srd::core
