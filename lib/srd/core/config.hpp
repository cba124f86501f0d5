// SPDX-License-Identifier: Apache-2.0
// Configuration of one protocol core: the sizes of its tables, and the times that an endpoint or a
// kind of driver changes. Constants of one mechanism stand at the head of its file, those of a
// driver with the driver. All memory is taken at creation from Limits; docs/PROTOCOL.md 10 is the
// table for people, with every constant that peers or operators can observe.
#pragma once

#include <cstdint>

#include "srd/driver.hpp"
#include "srd/wire/packet.hpp"

namespace srd::core {

/// A sender keeps track of so many rejections beyond those it knows all of (PROTOCOL.md 6.2).
inline constexpr std::uint32_t kRejectionsPerPeerMax = 256;

/// Sizes of all tables and pools. Hitting one gives would_block or no_memory to the caller, a
/// counted drop or a rejection to the network.
struct Limits {
  std::uint32_t peers = 1024;            ///< remote endpoints, and handles to them
  std::uint32_t contexts = 1280;         ///< protocol contexts; several per peer during succession
  std::uint32_t contexts_per_peer = 16;  ///< from a quarter of them on, HELLO is answered by RETRY
  std::uint32_t half_open = 256;         ///< contexts that wait for the third leg
  std::uint32_t half_open_free = 64;     ///< above this many, HELLO is answered by RETRY
  std::uint32_t send_messages = 8192;    ///< queued or in flight
  std::uint32_t receive_messages = 16384;  ///< partial, ready, or on loan
  std::uint32_t sent_chunks = 2048;        ///< of 64 datagrams in flight each, shared by all peers
  std::uint32_t slices = 65536;            ///< received pieces held for messages
  std::uint32_t bundles = 8192;            ///< SMALL datagrams in flight
  std::uint32_t rejections = 2048;         ///< unconfirmed rejections of all peers
  std::uint32_t rejections_per_peer = kRejectionsPerPeerMax;  ///< 64 (records of a SMALL) and more
  std::uint32_t window_psns = 8192;  ///< receive window per context, power of two, 256..8192
  std::uint32_t paths = 32;          ///< slots per context, 1..64
  std::uint32_t max_message_bytes = 16U << 20;
  std::uint16_t partial_messages = 256;  ///< unfinished multi-segment messages per context
  std::uint64_t receive_pool_bytes = 64U << 20;
  std::uint32_t small_bytes = 512;    ///< messages up to this long are copied and may be bundled
  std::uint32_t bundle_bytes = 1152;  ///< payload area of one SMALL datagram, fits every path
  std::uint32_t copy_bytes_max = 64U << 10;  ///< longest send with the copy flag
  std::uint64_t copy_pool_bytes = 16U << 20;
  std::uint32_t datagram_bytes_max = 65507;  ///< cap on the negotiated datagram size
};

// Sizes that are no setting. None of them limits what a peer may do; they bound the work of one
// call or the memory of one answer.
inline constexpr std::uint32_t kSmallRecordMax = 1408;  ///< longest message taken from a SMALL
inline constexpr std::uint32_t kReleaseRing = 4096;     ///< dropped buffers until poll_release()
inline constexpr std::uint32_t kPeerEventsPerPeer = 4;  ///< not polled; of more the oldest go
inline constexpr std::uint32_t kOneShots = 64;         ///< answers to strangers until they are sent
inline constexpr std::uint32_t kRetiredPaths = 1024;   ///< closed with the next poll_transmit()
inline constexpr std::uint32_t kScratchBlocks = 256;   ///< control packets of one poll_transmit()
inline constexpr std::uint32_t kScratchBytes = 320;    ///< each
inline constexpr std::uint32_t kContextsPerCall = 64;  ///< whose timers one handle_timeout() serves
inline constexpr std::uint32_t kContextQuantum = 128;  ///< datagrams before the next one's turn
inline constexpr std::uint32_t kNacksPerTurn = 16;
inline constexpr std::uint32_t kPsnReserve = 64;      ///< PSNs kept free for ABORT
inline constexpr std::uint32_t kHintCandidates = 16;  ///< contexts of one id that a hint may mean
inline constexpr std::uint32_t kRejectionsForCertain =
    8;                                                ///< of each peer, while the table has any
inline constexpr std::uint32_t kPeersInReserve = 64;  ///< one place in so many, for newcomers
inline constexpr std::uint64_t kRttMaxNs = 10'000'000'000;        ///< longer ones are mistakes
inline constexpr std::uint64_t kResetIntervalNs = 1'000'000;      ///< one RESET, after a burst
inline constexpr std::uint64_t kHelloAnswerIntervalNs = 100'000;  ///< one RETRY or refusal

/// Timing constants. kernel() for socket backends (coarse clocks, host gaps of milliseconds),
/// bypass() for polled NICs. Sources: PROTOCOL.md 10.
struct Timing {
  std::uint64_t initial_rtt_ns = 0;
  std::uint64_t rto_min_ns = 0;
  std::uint64_t rto_min_ceiling_ns = 50'000'000;  ///< needless RTOs double rto_min up to this
  std::uint64_t rto_max_ns = 1'000'000'000;
  std::uint64_t fifo_gap_min_ns = 0;      ///< same-path FIFO: wait at least this long
  std::uint32_t fifo_gap_divisor = 4;     ///< and RTTmin / this
  std::uint64_t target_delay_min_ns = 0;  ///< queueing delay the window aims at
  std::uint64_t target_delay_max_ns = 0;
  std::uint32_t target_rtts = 4;    ///< in between: this many base RTTs
  std::uint64_t late_timer_ns = 0;  ///< a loss timer handled later than this is re-armed once
  std::uint64_t max_ack_delay_ns = 0;
  std::uint32_t ack_bytes_min = 16 << 10;  ///< an ACK at the latest after so many payload bytes
  std::uint32_t ack_bytes_max = 256 << 10;
  std::uint64_t hello_retry_ns = 250'000'000;
  std::uint64_t connect_timeout_ns = 3'000'000'000;
  std::uint64_t dead_timeout_ns = 2'000'000'000;
  /// A peer that is heard and takes nothing of what is out loses the context after so many of them.
  std::uint32_t stuck_dead_timeouts = 4;
  std::uint64_t refused_pause_min_ns = 100'000;  ///< a slot rests so long after a refused send
  std::uint64_t refused_pause_max_ns = 10'000'000;
  std::uint64_t half_open_life_ns = 1'000'000'000;
  std::uint64_t drained_context_life_ns = 1'000'000'000;
  std::uint64_t receiver_silence_ns =
      500'000'000;  ///< a peer with unfinished messages is probed after
  /// Slots are asked no more after so long without a word of a peer that is owed nothing.
  std::uint64_t probing_silence_ns = 1'000'000'000;
  std::uint64_t burst_span_ns =
      20'000;  ///< one burst carries at most this long at the current rate
  static Timing kernel() noexcept;
  static Timing bypass() noexcept;
};

struct Config {
  Limits limits{};
  Timing timing = Timing::kernel();
  Capabilities driver{};
  std::uint64_t seed = 0;  ///< feeds the only PRNG of the core
  wire::EndpointId endpoint_id{};
  std::uint64_t incarnation = 0;  ///< random per endpoint creation, never 0
  bool full_check = true;         ///< check covers payload
};

}  // namespace srd::core
