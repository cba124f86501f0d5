// SPDX-License-Identifier: Apache-2.0
// Free-running counters of what happened between this endpoint and one peer; the names mean what
// they mean in Counters. Plain numbers, written by the core's thread: a context counts what happens
// in it, its peer keeps the sum of those that are gone.
#pragma once

#include <cstdint>

namespace srd::core {

struct PeerCounters {
  std::uint64_t tx_messages = 0, tx_message_bytes = 0, tx_failed_messages = 0;
  std::uint64_t rx_messages = 0, rx_message_bytes = 0;
  std::uint64_t tx_datagrams = 0, tx_bytes = 0, rx_datagrams = 0, rx_bytes = 0;
  std::uint64_t tx_acks = 0, rx_acks = 0, tx_piggybacks = 0;
  std::uint64_t tx_retransmits = 0, tx_spurious = 0;
  std::uint64_t losses_fifo = 0, losses_rack = 0;
  std::uint64_t tail_probes = 0, rto_probes = 0;
  std::uint64_t rx_duplicates = 0, rx_ce = 0;
  std::uint64_t rx_rejected_messages = 0, tx_rejected_messages = 0;
  std::uint64_t path_rerolls = 0, path_suspects = 0;
  std::uint64_t peer_restarts = 0;

  PeerCounters& operator+=(const PeerCounters& other) noexcept;
};

}  // namespace srd::core
