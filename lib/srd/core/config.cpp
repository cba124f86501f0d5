// SPDX-License-Identifier: Apache-2.0
#include "srd/core/config.hpp"

namespace srd::core {

Timing Timing::kernel() noexcept {
  Timing timing;
  timing.initial_rtt_ns = 1'000'000;
  timing.rto_min_ns = 2'000'000;
  timing.fifo_gap_min_ns = 100'000;
  timing.fifo_gap_divisor = 4;
  timing.target_delay_min_ns = 1'000'000;
  timing.target_delay_max_ns = 2'000'000;
  timing.late_timer_ns = 1'000'000;
  timing.max_ack_delay_ns = 100'000;
  return timing;
}

Timing Timing::bypass() noexcept {
  Timing timing;
  timing.initial_rtt_ns = 100'000;
  timing.rto_min_ns = 200'000;
  timing.fifo_gap_min_ns = 2'000;
  timing.fifo_gap_divisor = 16;
  timing.target_delay_min_ns = 10'000;
  timing.target_delay_max_ns = 1'000'000;
  timing.target_rtts = 1;
  timing.late_timer_ns = 100'000;
  timing.max_ack_delay_ns = 20'000;
  timing.ack_bytes_max = 16 << 10;
  return timing;
}

}  // namespace srd::core
