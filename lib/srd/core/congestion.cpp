// SPDX-License-Identifier: Apache-2.0
#include "srd/core/congestion.hpp"

#include <algorithm>

namespace srd::core {

namespace {
constexpr double kCutStrength = 0.8;  // NSCC beta: cut by up to this share of the excess delay
constexpr double kCutFloor = 0.5;     // but never below half, once per RTT
constexpr double kCeCut = 0.8;        // CE on most of the traffic while delay is unknown or high
constexpr double kLossCut = 0.7;
constexpr double kLossShareCut = 0.10;   // lost bursts / sent bursts that means congestion
constexpr double kLossShareSlow = 0.02;  // above it growth is slowed, not frozen
constexpr double kGrowShare = 0.25;      // of the window per RTT at zero queueing delay
constexpr double kGrowMss = 2.0;         // and so many datagrams per RTT in any case
constexpr double kWindowFloorMss = 1.0 / 64;
constexpr std::uint64_t kWindowCeilingMin = 256U << 10;
constexpr std::uint64_t kRatePeriodNs = 1'000'000'000;
}  // namespace

void Congestion::reset(const Timing& timing, const Setup& setup) noexcept {
  *this = Congestion{};
  timing_ = timing;
  setup_ = setup;
  window_ = static_cast<double>(setup.initial_bytes);
  host_window_ = static_cast<double>(setup.window_limit_bytes);
  target_ns_ = timing.target_delay_min_ns;
}

double Congestion::floor_bytes() const noexcept {
  return static_cast<double>(setup_.mss_bytes) * kWindowFloorMss;
}

// Twice what the peer took lately within a round trip, a full queue and the longest gap between its
// ACKs: a host that naps for milliseconds must not starve the links (PROTOCOL.md 8.2).
double Congestion::ceiling_bytes() const noexcept {
  const auto span =
      static_cast<double>(base_rtt_ns_ + target_ns_ + std::max(gap_max_ns_[0], gap_max_ns_[1]));
  return std::min(std::max(2.0 * rate() * span, static_cast<double>(kWindowCeilingMin)),
                  static_cast<double>(setup_.window_limit_bytes));
}

std::uint64_t Congestion::window_bytes() const noexcept {
  return static_cast<std::uint64_t>(std::min(window_, host_window_));
}

double Congestion::rate() const noexcept {
  return std::max(rate_max_[0], rate_max_[1]);
}

std::uint64_t Congestion::pacing_gap_ns(std::uint64_t srtt_ns) const noexcept {
  const double mss = static_cast<double>(setup_.mss_bytes);
  const double window = std::min(window_, host_window_);
  if (window >= mss) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(std::max<std::uint64_t>(srtt_ns, 1000)) *
                                    mss / std::max(window, 1.0));
}

void Congestion::add_delay(std::uint64_t delay_ns, std::uint64_t bytes) noexcept {
  // Mean over about one window: every byte of it counts alike.
  const double share = std::min(
      1.0, static_cast<double>(bytes) / std::max(window_, static_cast<double>(setup_.mss_bytes)));
  mean_delay_ns_ += share * (static_cast<double>(delay_ns) - mean_delay_ns_);
}

void Congestion::update_rate(const Feedback& feedback) noexcept {
  const std::uint64_t now = feedback.now_ns;
  if (rate_since_ns_ == 0) {
    rate_since_ns_ = rate_slot_ns_ = last_ack_ns_ = now;
  }
  if (now - rate_slot_ns_ > kRatePeriodNs) {
    rate_max_[1] = rate_max_[0];
    gap_max_ns_[1] = gap_max_ns_[0];
    rate_max_[0] = 0;
    gap_max_ns_[0] = 0;
    rate_slot_ns_ = now;
  }
  if (feedback.window_limited) gap_max_ns_[0] = std::max(gap_max_ns_[0], now - last_ack_ns_);
  last_ack_ns_ = now;
  rate_bytes_ += feedback.acked_bytes;
  const std::uint64_t span = now - rate_since_ns_;
  if (span >= std::max<std::uint64_t>(feedback.srtt_ns, 1'000'000)) {
    rate_max_[0] =
        std::max(rate_max_[0], static_cast<double>(rate_bytes_) / static_cast<double>(span));
    rate_bytes_ = 0;
    rate_since_ns_ = now;
  }
}

void Congestion::cut(std::uint64_t now_ns, double factor) noexcept {
  slow_start_ = false;
  last_cut_ns_ = now_ns;
  window_ = std::max(window_ * factor, floor_bytes());
}

void Congestion::grow(const Feedback& feedback) noexcept {
  if (!feedback.window_limited) return;
  const double target = static_cast<double>(target_ns_);
  const double room = std::clamp((target - mean_delay_ns_) / target, 0.0, 1.0);
  const double acked = static_cast<double>(feedback.acked_bytes);
  const double mss = static_cast<double>(setup_.mss_bytes);
  double gain = acked / std::max(window_, mss) * (kGrowMss * mss + kGrowShare * room * window_);
  if (slow_start_ && room > 0.5) gain = acked;
  if (loss_share_ > kLossShareSlow) gain = std::min(gain, acked / 32.0);
  // Below one datagram growth counts per round trip, not per byte of a window that is nearly empty.
  if (window_ < mss) gain = std::max(acked / 8.0, floor_bytes());
  window_ = std::min(window_ + gain, std::max(ceiling_bytes(), window_));
}

void Congestion::on_ack(const Feedback& feedback) noexcept {
  base_rtt_ns_ = feedback.base_rtt_ns;
  srtt_ns_ = feedback.srtt_ns;
  target_ns_ = std::clamp(feedback.base_rtt_ns * timing_.target_rtts, timing_.target_delay_min_ns,
                          timing_.target_delay_max_ns);
  update_rate(feedback);
  round_bytes_ += feedback.acked_bytes;
  round_ce_ += feedback.ce_bytes;
  round_delayed_ += feedback.delayed_bytes;
  const double target = static_cast<double>(target_ns_);
  const double excess = (mean_delay_ns_ - target) / std::max(mean_delay_ns_, 1.0);
  // A minority of slots in trouble loses weight in PathSet; only a majority cuts the window.
  const bool most_delayed = 2 * round_delayed_ > round_bytes_;
  const bool most_marked = 2 * round_ce_ > round_bytes_;
  const bool cut_due = feedback.now_ns - last_cut_ns_ >
                       std::max(feedback.srtt_ns, feedback.base_rtt_ns + target_ns_ / 2);
  if (excess > 0 && most_delayed) {
    if (cut_due) cut(feedback.now_ns, std::max(kCutFloor, 1.0 - kCutStrength * excess));
  } else if (most_marked && mean_delay_ns_ > target / 2) {
    if (cut_due) cut(feedback.now_ns, kCeCut);
  } else if (!most_marked) {
    grow(feedback);
  }
  if (feedback.now_ns >= round_end_ns_) {
    round_end_ns_ = feedback.now_ns + feedback.srtt_ns;
    round_bytes_ = round_ce_ = round_delayed_ = 0;
    if (bursts_sent_ >= 128) {
      loss_share_ = static_cast<double>(bursts_lost_) / bursts_sent_;
      bursts_sent_ /= 2;
      bursts_lost_ /= 2;
    }
  }
  window_ = std::min(window_, std::max(ceiling_bytes(), floor_bytes()));
}

void Congestion::on_burst_lost(std::uint64_t now_ns) noexcept {
  ++bursts_lost_;
  const double share = static_cast<double>(bursts_lost_) / std::max(bursts_sent_, 128U);
  loss_share_ = std::max(loss_share_, share);
  const bool congested =
      share > kLossShareCut || (mean_delay_ns_ > static_cast<double>(target_ns_) && slow_start_);
  if (congested && now_ns - last_cut_ns_ > srtt_ns_) {
    cut(now_ns, kLossCut);
    bursts_lost_ = 0;
    bursts_sent_ = 0;
  }
}

void Congestion::on_outage() noexcept {
  slow_start_ = true;
  window_ = static_cast<double>(setup_.mss_bytes);
  mean_delay_ns_ = 0;
}

void Congestion::on_host_drops(std::uint64_t now_ns) noexcept {
  if (now_ns - last_host_cut_ns_ <= srtt_ns_) return;
  last_host_cut_ns_ = now_ns;
  slow_start_ = false;
  host_window_ =
      std::max(std::min(window_, host_window_) * kLossCut, static_cast<double>(setup_.mss_bytes));
}

void Congestion::on_pressure(std::uint8_t pressure, std::uint64_t acked_bytes) noexcept {
  // Target: half full. Above it the second window shrinks in proportion, below it grows back.
  const double acked = static_cast<double>(acked_bytes);
  if (pressure > 128) {
    host_window_ = std::min(host_window_, window_ * 2);
    host_window_ -= acked * (pressure - 128) / 256.0;
  } else {
    host_window_ += acked / 16.0;
  }
  host_window_ = std::clamp(host_window_, static_cast<double>(setup_.mss_bytes),
                            static_cast<double>(setup_.window_limit_bytes));
}

}  // namespace srd::core
