// SPDX-License-Identifier: Apache-2.0
// Free-running counters of one core. Written by its thread, read by any. docs/API.md explains each.
#pragma once

#include "base/counter.hpp"

namespace srd::core {

struct Counters {
  Counter tx_messages, tx_message_bytes, tx_failed_messages;
  Counter rx_messages, rx_message_bytes;
  Counter tx_datagrams, tx_bytes, rx_datagrams, rx_bytes;
  Counter tx_acks, rx_acks;
  Counter tx_piggybacks;  ///< acknowledgements that rode on data
  Counter tx_retransmits, tx_spurious;
  Counter losses_fifo, losses_rack;
  Counter tail_probes, rto_probes;
  Counter late_timers;  ///< loss timers re-armed because they were handled too late to judge
  Counter rx_duplicates, rx_ce;
  Counter rx_beyond_window, rx_bad_check, rx_malformed, rx_unknown_context, rx_no_memory;
  Counter rx_impossible_acks;     ///< acknowledged PSNs that were never sent
  Counter rx_dropped_handshakes;  ///< HELLO, HELLO_ACK, RETRY without a matching nonce, or no room
  Counter rx_rejected_messages, tx_rejected_messages;
  Counter path_rerolls, path_suspects;
  Counter peers_up, peers_lost, peer_restarts;
  Counter tx_refused;
  Counter receive_pool_used_bytes, peers_active, sends_active;
};

}  // namespace srd::core
