// SPDX-License-Identifier: Apache-2.0
#include "srd/core/config.hpp"

namespace srd::core {

Timing Timing::kernel() noexcept {
  Timing timing;
  timing.initial_rtt = 1'000'000;
  timing.rto_min = 2'000'000;
  timing.fifo_gap_min = 100'000;
  timing.fifo_gap_divisor = 4;
  timing.target_delay_min = 1'000'000;
  timing.target_delay_max = 2'000'000;
  timing.late_timer = 1'000'000;
  timing.max_ack_delay = 100'000;
  return timing;
}

Timing Timing::bypass() noexcept {
  Timing timing;
  timing.initial_rtt = 100'000;
  timing.rto_min = 200'000;
  timing.fifo_gap_min = 2'000;
  timing.fifo_gap_divisor = 16;
  timing.target_delay_min = 10'000;
  timing.target_delay_max = 1'000'000;
  timing.target_rtts = 1;
  timing.late_timer = 100'000;
  timing.max_ack_delay = 20'000;
  timing.ack_bytes_max = 16 << 10;
  return timing;
}

}  // namespace srd::core
