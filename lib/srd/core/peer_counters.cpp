// SPDX-License-Identifier: Apache-2.0
#include "srd/core/peer_counters.hpp"

namespace srd::core {

PeerCounters& PeerCounters::operator+=(const PeerCounters& other) noexcept {
  constexpr std::uint64_t PeerCounters::*kAll[] = {
      &PeerCounters::tx_messages,
      &PeerCounters::tx_message_bytes,
      &PeerCounters::tx_failed_messages,
      &PeerCounters::rx_messages,
      &PeerCounters::rx_message_bytes,
      &PeerCounters::tx_datagrams,
      &PeerCounters::tx_bytes,
      &PeerCounters::rx_datagrams,
      &PeerCounters::rx_bytes,
      &PeerCounters::tx_acks,
      &PeerCounters::rx_acks,
      &PeerCounters::tx_piggybacks,
      &PeerCounters::tx_retransmits,
      &PeerCounters::tx_spurious,
      &PeerCounters::losses_fifo,
      &PeerCounters::losses_rack,
      &PeerCounters::tail_probes,
      &PeerCounters::rto_probes,
      &PeerCounters::rx_duplicates,
      &PeerCounters::rx_ce,
      &PeerCounters::rx_rejected_messages,
      &PeerCounters::tx_rejected_messages,
      &PeerCounters::path_rerolls,
      &PeerCounters::path_suspects,
      &PeerCounters::peer_restarts,
  };
  static_assert(sizeof kAll / sizeof kAll[0] == sizeof(PeerCounters) / sizeof(std::uint64_t));
  for (const auto counter : kAll) this->*counter += other.*counter;
  return *this;
}

}  // namespace srd::core
