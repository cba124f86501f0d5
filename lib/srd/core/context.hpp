// SPDX-License-Identifier: Apache-2.0
// Protocol state towards one peer endpoint in one direction of set-up: a context (both directions
// of data), and the peer it belongs to. Source: PROTOCOL.md 4.
#pragma once

#include <array>
#include <cstdint>

#include "srd/core/congestion.hpp"
#include "srd/core/messages.hpp"
#include "srd/core/path_set.hpp"
#include "srd/core/peer_counters.hpp"
#include "srd/core/recv_window.hpp"
#include "srd/core/rtt.hpp"
#include "srd/srd.h"
#include "srd/wire/packet.hpp"

namespace srd::core {

inline constexpr std::uint32_t kWindowPsnsMax = 8192;
inline constexpr std::uint64_t kReoRelaxNs = 1'000'000'000;
inline constexpr std::uint64_t kOpenAllBytes =
    64U << 10;  ///< in flight or waiting: every slot is opened
inline constexpr std::uint32_t kWindowWords = kWindowPsnsMax / 64;

/// A timer with the late-timer rule (PROTOCOL.md 5.6): handled much later than due, it is re-armed
/// once.
struct LateTimer {
  std::uint64_t due_ns = UINT64_MAX;
  std::uint64_t interval_ns = 0;
  bool rearmed = false;

  void arm(std::uint64_t now_ns, std::uint64_t interval) noexcept {
    due_ns = now_ns + interval;
    interval_ns = interval;
    rearmed = false;
  }

  void cancel() noexcept { due_ns = UINT64_MAX; }
};

/// What the next ACK to the peer must say and when.
struct AckDuty {
  bool due = false;    ///< send at the next transmit
  bool lazy = false;   ///< due once the application had its turn
  bool twice = false;  ///< answer to a tail probe: on two slots, one of them where it came by
  std::uint8_t reply_slot = 0;
  bool beyond = false, duplicate = false;
  bool has_echo = false;
  bool echo_ce = false;
  std::uint8_t echo_slot = 0, echo_gen_attempt = 0;
  std::uint32_t echo_time = 0, echo_psn = 0;
  std::uint64_t echo_arrived_ns = 0;
  std::uint64_t pending_bytes = 0;
  std::uint64_t deadline_ns = UINT64_MAX;
};

struct PendingProbeAck {
  wire::ProbeAckHeader body{};
  bool same_slot = false;
};

struct Context {
  enum class State : std::uint8_t {
    hello_sent,  ///< initiator, no HELLO_ACK yet
    half_open,   ///< responder, third leg missing
    open,
  };
  Index prev = kNone, next = kNone;  // ready list
  bool ready = false;
  Index lazy_at = kNone;  ///< place in the list of contexts with a lazy ACK
  State state = State::hello_sent;
  bool initiator = false;
  bool draining = false;  ///< a better context exists; nothing new is sent here
  bool close_pending = false;
  Index peer = kNone, peer_next = kNone;
  std::uint32_t life = 0;  ///< generation of this entry of the table

  // identity
  std::uint32_t local_id = 0, remote_id = 0;
  std::uint32_t serial = 0;
  wire::EndpointId remote_endpoint{};
  std::uint64_t remote_incarnation = 0;
  wire::Nonce local_nonce{}, remote_nonce{};
  std::uint32_t tx_seed = 0, rx_seed = 0;
  bool full_check = true;
  bool ecn = false;

  // set-up
  bool hello_pending = false, hello_ack_pending = false;
  bool has_cookie = false;
  std::array<std::uint8_t, 24> cookie{};
  std::uint32_t hello_tries = 0;
  std::uint32_t service_slot = kSlotsMax;  ///< initiator: the one that leaves by our own port
  std::uint64_t hello_due_ns = UINT64_MAX, give_up_ns = UINT64_MAX;
  std::uint32_t prev_ctx = 0;  ///< HELLO: peer's id of the context in doubt
  wire::PrevState prev_state = wire::PrevState::none;
  std::uint32_t hello_echo_time = 0;
  std::uint64_t hello_arrived_ns = 0;
  Errc refusal = Errc::timed_out;  ///< why connecting fails if it does
  bool third_leg_pending = false;  ///< initiator: nothing came back on the new context yet

  // doubt about the peer's life (restart detection, PROTOCOL.md 4.5)
  bool doubted = false;           ///< a HELLO with prev_ctx, or a new incarnation, is being weighed
  bool doubt_silent = false;      ///< no answer within the RTO
  bool successor_proven = false;  ///< the other incarnation answered
  Index successor = kNone;
  std::uint8_t doubt_slot = 0;       ///< slot whose packet was answered by RESET
  std::uint64_t doubt_again_ns = 0;  ///< no new doubt before: hints are cheap to forge
  std::uint64_t doubted_since_ns = 0, doubt_due_ns = UINT64_MAX;

  // negotiated
  std::uint32_t datagram_bytes = 0, payload_bytes = 0;
  std::uint32_t remote_max_message = 0;
  std::uint32_t tx_window = 0;  ///< peer's receive window, PSNs
  std::uint16_t partial_limit = 0;
  std::uint64_t remote_ack_delay_ns = 0;

  // sending
  std::uint32_t first_psn = 0, una = 0, nxt = 0;  ///< una: oldest PSN whose record is still needed
  std::uint32_t cumulative = 0;                   ///< peer's cumulative ack
  std::array<Index, kWindowWords> chunks{};
  std::array<std::uint64_t, kWindowWords> acked{};
  std::array<std::uint32_t, kWindowWords>
      covered{};  ///< order of the latest ACK that showed the word

  struct PsnList {
    std::uint32_t head = 0, tail = 0, count = 0;
  } lost{};

  IndexList active;              ///< messages with assigned segments
  IndexList parked;              ///< acknowledged, waiting for rejections to be known
  IndexList aborting;            ///< rejected, their ABORT has no PSN yet
  Index current = kNone;         ///< message being segmented
  std::uint32_t open_multi = 0;  ///< multi-segment messages not fully acknowledged
  std::uint32_t next_msg_id = 1;
  std::uint64_t in_flight_bytes = 0;  ///< payload
  std::uint32_t in_flight_datagrams = 0;
  std::uint64_t assigned_bytes = 0;  ///< payload of all PSNs assigned, for the limit
  std::uint64_t limit_bytes = 0;
  bool limit_blocked = false, window_limited = false;
  bool burst_held = false;  ///< the next burst waits for a call with room for all of it
  LateTimer limit_probe;
  // trying a message longer than the limit allows: when next, and the room there was last time
  std::uint64_t alone_at_ns = 0, alone_pause_ns = 0, alone_room_bytes = 0;
  PathSet paths;
  Congestion congestion;
  RttEstimator rtt;
  std::uint64_t last_tx_ns = 0;
  std::uint64_t pace_next_ns = 0;  ///< sub-packet window: not before
  std::uint64_t pace_due_ns = UINT64_MAX, blocked_due_ns = UINT64_MAX;  ///< wake-ups for those

  // acknowledgements received
  bool has_ack_seq = false;
  std::uint16_t last_ack_seq = 0;
  std::uint32_t ack_order = 0;   ///< counts ACKs applied
  std::uint32_t gap_order = 0;   ///< order at which ACKs were last found missing
  std::uint64_t rack_tx_ns = 0;  ///< latest send time of anything acknowledged
  std::uint32_t rack_order = 0;
  std::uint64_t latest_ack_ns = 0;  ///< arrival of the newest ACK
  std::uint64_t reo_ns = 0;         ///< RACK reordering allowance learned from needless losses
  std::uint64_t reo_relax_ns = 0;   ///< when half of it is unlearned
  std::uint64_t last_heard_ns = 0;
  std::uint64_t echoed_ns = 0;  ///< newest send time of ours that the peer has told of
  std::uint16_t peer_dup_total = 0, peer_host_drops = 0;
  std::uint32_t own_copies = 0;           ///< deliberate copies not yet matched against dup_total
  std::uint64_t own_copies_until_ns = 0;  ///< then no report of them comes any more
  bool losses_to_judge = false;           ///< ACKs came since losses were last looked for
  bool fifo_enabled = true;
  std::uint32_t fifo_losses = 0, fifo_spurious = 0;
  std::uint64_t fifo_off_until_ns = 0;
  std::uint64_t charge_host_losses = 0;  ///< losses still charged to the peer's host, not to slots
  std::uint64_t rto_min_ns = 0, rto_relax_ns = 0;
  std::uint32_t retries = 0;  ///< tail and RTO probes since the last progress
  LateTimer rack_timer, retry_timer;
  std::uint64_t progress_ns = 0;  ///< when something was acknowledged last, or the first was sent
  bool tail_probe_pending = false;
  std::uint32_t probe_two_slots = 0;  ///< RTO: PROBE+WANT_ACK on so many other slots
  LateTimer dead_timer;               ///< an answer is owed and nothing at all was heard since

  // rejections by the peer
  std::uint16_t rej_known = 0;               ///< all up to here are known
  std::array<std::uint64_t, 4> rej_ahead{};  ///< bit i: rej_known + 1 + i is known
  std::uint16_t rej_total_seen = 0;
  bool want_nack_pending = false;
  bool confirm_now = false;  ///< the peer should learn rej_known
  std::uint64_t confirm_due_ns = UINT64_MAX;
  LateTimer want_nack;

  // receiving
  RecvWindow rx;
  AckDuty ack;
  std::uint16_t ack_seq = 0;
  std::uint64_t rx_total_bytes = 0;  ///< payload of distinct PSNs
  std::uint64_t told_limit = 0;      ///< 256-byte units
  std::uint64_t limit_reminder_ns = UINT64_MAX;
  std::uint16_t ce_total = 0, dup_total = 0;
  std::uint32_t partials = 0;
  std::uint64_t reserved_left_bytes = 0;  ///< of accepted partial messages, still to come
  Index last_partial = kNone;
  IndexList unfinished;     ///< messages in state partial or rejected
  IndexList tombstones;     ///< and aborted
  std::uint32_t marks = 0;  ///< in both lists
  std::uint32_t held = 0;   ///< receive records: those, and complete ones not released yet
  IndexList rejections;
  std::uint32_t rejection_count = 0, rejections_to_send = 0;
  std::uint32_t nack_slot = kSlotsMax;  ///< by which they were asked for again
  std::uint16_t rej_total = 0;
  std::uint64_t active_epoch = 0;
  std::uint64_t rx_rate_since_ns = 0, rx_rate_bytes = 0, ack_bytes_threshold = 0;
  LateTimer silence;

  // probing and control
  std::uint32_t next_probe_id = 1;       ///< never 0; starts at random
  std::uint64_t probes_pending = 0;      ///< slots that owe a PROBE
  std::uint64_t probe_acks_pending = 0;  ///< slots with a PROBE to answer, the latest of each
  std::array<PendingProbeAck, kSlotsMax> probe_acks{};
  std::uint64_t repath_wanted = 0;  ///< responder: slots that need new entropy
  bool all_paths_open = false;
  std::uint64_t explore_due_ns = 0, explored_ns = 0;
  std::uint64_t icmp_again_ns = 0;  ///< no probe because of ICMP before
  std::uint8_t ack_slot = 0;
  std::uint64_t ack_slot_until_ns = 0;
  std::uint64_t unheard_slots = 0;  ///< our ACKs on them do not arrive, says REVPATH
  std::uint64_t unheard_until_ns = 0;
  std::uint64_t rev_path_due_ns = 0;

  PeerCounters counters;  ///< of this context
};

struct Peer {
  enum class State : std::uint8_t {  // what srd_peer_info tells
    idle = SRD_PEER_IDLE,
    connecting = SRD_PEER_CONNECTING,
    up = SRD_PEER_UP,
    lost = SRD_PEER_LOST
  };
  Index prev = kNone, next = kNone;  // list of lost peers that may be forgotten
  bool recyclable = false;           ///< in that list
  State state = State::idle;
  Index alias = kNone;    ///< two handles turned out to be one endpoint: the one that goes on
  Index aliases = kNone;  ///< the others, linked by alias_next
  Index alias_next = kNone;
  bool resolved_by_app = false;
  bool id_known = false;
  bool was_up = false;
  Address address{};
  DestId dest = kNoDest;
  wire::EndpointId endpoint{};
  std::uint64_t incarnation = 0;
  std::uint32_t newest_serial = 0;  ///< of contexts the peer opened
  PeerId handle = kNoPeer;          ///< reported with received messages
  Index contexts = kNone;           ///< linked by Context::peer_next
  Index preferred = kNone;
  IndexList queue;    ///< TxMessages that are no bundle members
  IndexList bundles;  ///< Bundles not sent yet; the last may still be filled
  std::uint32_t queued_messages = 0;
  std::uint64_t backlog_bytes = 0;
  IndexList waiting;  ///< rejected TxMessages until their retry
  std::uint32_t hello_tries = 0;
  PeerCounters counters;  ///< of contexts that are gone, and of messages sent
};

}  // namespace srd::core
