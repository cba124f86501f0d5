// SPDX-License-Identifier: Apache-2.0
// The inside of Core: tables, and the steps of a datagram's way, one .cpp file each:
//
//   receive.cpp      datagram -> context, check, dispatch
//   accept.cpp       DATA, SMALL, VOID, ABORT -> messages
//   deliver.cpp      messages -> application and back
//   acknowledge.cpp  ACK, NACK -> datagrams in flight, messages
//   loss.cpp         FIFO, RACK, tail and RTO probes
//   sent_ring.cpp    records of datagrams in flight
//   send.cpp         messages, bundles, copies
//   transmit.cpp     what goes out next
//   reply.cpp        ACK, NACK, PROBE and control packets out
//   paths.cpp        slots: open, probe, re-roll
//   handshake.cpp    HELLO to third leg
//   doubt.cpp        restarts, lost contexts
//   peers.cpp        peers, contexts, their lives
//   timers.cpp       deadlines
//   index_hash.hpp   finds peers and contexts by what packets name them by
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "srd/core/context.hpp"
#include "srd/core/core.hpp"
#include "srd/core/index_hash.hpp"
#include "srd/core/messages.hpp"
#include "srd/wire/check.hpp"
#include "srd/wire/packet.hpp"

#include "base/deadline_heap.hpp"
#include "base/prng.hpp"
#include "base/rate_limit.hpp"
#include "base/slab.hpp"

namespace srd::core {

/// Set of payload blocks of one size.
class BlockPool {
 public:
  bool create(std::uint32_t blocks, std::uint32_t block_bytes) noexcept {
    block_bytes_ = block_bytes;
    return index_.create(blocks) && memory_.allocate(std::size_t{blocks} * block_bytes);
  }

  Index take() noexcept { return index_.take(); }

  void give(Index block) noexcept { index_.give(block); }

  [[nodiscard]] std::byte* data(Index block) const noexcept {
    return memory_.data() + std::size_t{block} * block_bytes_;
  }

  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return block_bytes_; }

  [[nodiscard]] std::uint32_t free() const noexcept { return index_.free(); }

 private:
  Slab<std::uint8_t> index_;
  LazyMemory memory_;
  std::uint32_t block_bytes_ = 0;
};

/// One received packet on its way through the core.
struct Arrival {
  const RxDatagram& datagram;
  wire::CommonHeader header;
  std::span<const std::byte> bytes;  // the whole packet
  wire::Extensions extensions;
  std::size_t payload_offset = 0;  // after fixed header and extension block
  std::uint64_t now_ns = 0, arrived_ns = 0;
};

class Core::Impl {
 public:
  Impl(const Config& config, PathControl& paths) noexcept;
  bool create() noexcept;

  // receive.cpp
  void handle_datagrams(Instant now, std::span<const RxDatagram> in) noexcept;
  std::size_t poll_release(std::span<BufferId> out) noexcept;
  // send.cpp
  Errc send(Instant now, const SendRequest& request) noexcept;
  // deliver.cpp
  Errc release(Instant now, MessageId message) noexcept;
  std::size_t segments(MessageId message, std::span<srd_iov> out) const noexcept;
  Result<std::size_t> copy_out(MessageId message, std::uint64_t offset,
                               std::span<std::byte> out) const noexcept;
  std::size_t poll_events(std::span<Event> out) noexcept;
  [[nodiscard]] bool has_events() const noexcept;
  // peers.cpp
  Result<PeerId> add_peer(Instant now, const Address& address) noexcept;
  Errc remove_peer(Instant now, PeerId peer) noexcept;
  void close(Instant now) noexcept;
  bool peer_info(PeerId peer, srd_peer_info& out) const noexcept;
  std::size_t path_info(PeerId peer, std::span<srd_path_info> out) const noexcept;
  // paths.cpp
  void handle_path_event(Instant now, const PathEvent& event) noexcept;
  void handle_host_state(Instant now, std::uint64_t rx_host_drops, std::uint8_t rx_fill) noexcept;
  // transmit.cpp
  void handle_tx_done(Instant now, std::span<const TxDone> done) noexcept;
  std::size_t poll_transmit(Instant now, std::span<TxDatagram> out) noexcept;

  [[nodiscard]] bool has_transmit() const noexcept {
    return !ready_.empty() || one_shot_count_ > one_shots_sent_;
  }

  // timers.cpp
  void handle_timeout(Instant now) noexcept;

  [[nodiscard]] Instant next_deadline() const noexcept { return Instant{deadlines_.earliest()}; }

  Counters counters_;

 private:
  using Ctx = Context;

  // receive.cpp
  bool receive(std::uint64_t now_ns, const RxDatagram& datagram) noexcept;
  bool receive_in_context(Index index, Arrival& arrival) noexcept;
  bool dispatch(Index index, Arrival& arrival) noexcept;
  void drop_buffer(BufferId buffer) noexcept;
  [[nodiscard]] Index find_context(std::uint32_t id) const noexcept;

  // handshake.cpp
  Index start_context(std::uint64_t now_ns, Index peer, std::uint32_t prev_ctx = 0) noexcept;

  /// What its peer's contexts say about a HELLO.
  struct KnownHello {
    Index context = kNone;  ///< of this very HELLO, seen before
    std::uint32_t contexts_of_peer = 0;
    bool stale = false;
  };

  [[nodiscard]] KnownHello look_up_hello(Index peer, const wire::HelloHeader& hello) const noexcept;
  void answer_again(Index index, Arrival& arrival) noexcept;
  [[nodiscard]] bool shows_cookie(const Arrival& arrival,
                                  const wire::HelloHeader& hello) const noexcept;
  void on_hello(Arrival& arrival) noexcept;
  void on_hello_ack(Arrival& arrival) noexcept;
  void on_retry(Arrival& arrival) noexcept;
  void establish(Index index, std::uint64_t now_ns) noexcept;
  void adopt_parameters(Ctx& ctx, const wire::HelloHeader& hello) noexcept;
  void fill_hello(const Ctx& ctx, wire::HelloHeader& hello) const noexcept;
  void use_service_port(Ctx& ctx, std::uint32_t slot) noexcept;
  std::size_t write_hello(Ctx& ctx, std::uint64_t now_ns, TxDatagram& out, bool answer) noexcept;
  void refuse_hello(const Arrival& arrival, const wire::HelloHeader& hello,
                    wire::RejectCode code) noexcept;
  void send_retry(const Arrival& arrival, const wire::HelloHeader& hello) noexcept;
  [[nodiscard]] std::array<std::uint8_t, 24> make_cookie(const Arrival& arrival,
                                                         const wire::HelloHeader& hello,
                                                         std::uint64_t epoch) const noexcept;
  wire::Nonce make_nonce() noexcept;
  [[nodiscard]] std::uint64_t hello_interval_ns(std::uint32_t tries) const noexcept;

  // doubt.cpp
  void on_reset(Arrival& arrival) noexcept;
  void on_close(Index index, Arrival& arrival) noexcept;
  void doubt(Index index, Index successor, std::uint64_t now_ns) noexcept;
  void resolve_doubt(Index index, std::uint64_t now_ns) noexcept;
  void end_doubt_alive(Index index) noexcept;
  void weigh_successor(Index index, wire::PrevState says, std::uint64_t now_ns) noexcept;
  void send_reset(const Arrival& arrival) noexcept;

  // peers.cpp
  Result<Index> new_peer(const Address& address) noexcept;
  [[nodiscard]] Index live_peer(PeerId handle) const noexcept;
  [[nodiscard]] Index find_peer(const wire::EndpointId& id) const noexcept;
  void learn_identity(Index context, std::uint64_t now_ns) noexcept;
  void merge_peers(Index into, Index from) noexcept;
  Index new_context(Index peer, bool initiator, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint32_t make_context_id(Index index) const noexcept;
  void destroy_context(Index index, Errc why, std::uint64_t now_ns) noexcept;
  void fail_started(Index index, Errc why) noexcept;
  void fail_queued(Index peer, Errc why) noexcept;
  void name_peer(Index peer, const wire::EndpointId& id) noexcept;
  void drop_peer_if_unused(Index peer) noexcept;
  void recycle_peer() noexcept;
  void note_recyclable(Index peer) noexcept;
  void keep_peer(Index peer) noexcept;
  void forget_peer(Index peer) noexcept;
  void free_peer(Index peer) noexcept;
  void set_peer_state(Peer& peer, Peer::State state) noexcept;
  void unname_peer(Index peer) noexcept;
  [[nodiscard]] std::uint64_t hash_of(const wire::EndpointId& id) const noexcept;
  [[nodiscard]] std::uint64_t hash_of(const Address& address) const noexcept;
  [[nodiscard]] std::uint64_t hash_of(DestId dest) const noexcept;
  [[nodiscard]] std::uint64_t hash_of_remote(std::uint32_t context_id) const noexcept;
  void lose_peer(Index peer, Errc why, std::uint64_t now_ns) noexcept;
  void choose_preferred(Index peer) noexcept;
  void announce_peer(Index peer, Errc status) noexcept;

  // accept.cpp
  enum class Outcome : std::uint8_t { kept, consumed, refused };
  bool on_data(Index index, Arrival& arrival) noexcept;
  Outcome give_up_message(Index index, Index message) noexcept;
  bool on_small(Index index, Arrival& arrival) noexcept;
  void on_void(Index index, Arrival& arrival) noexcept;
  void on_abort(Index index, Arrival& arrival) noexcept;
  Outcome accept_segment(Index index, const Arrival& arrival, const wire::DataHeader& header,
                         std::span<const std::byte> payload) noexcept;
  Index open_message(Index index, std::uint32_t msg_id, std::uint32_t length,
                     std::uint16_t port) noexcept;
  Index take_record(Index index, std::uint32_t msg_id, std::uint32_t length,
                    std::uint16_t port) noexcept;
  bool store_slice(RxMessage& message, const Arrival& arrival, std::uint32_t offset,
                   std::span<const std::byte> payload, bool may_keep, bool& kept) noexcept;
  bool reject(Index index, std::uint32_t msg_id, std::uint16_t port, wire::NackCode code) noexcept;
  bool admit_psn(Index index, const Arrival& arrival) noexcept;
  static void note_echo(AckDuty& ack, const Arrival& arrival, bool ce) noexcept;
  void took_psn(Index index, const Arrival& arrival, std::uint64_t payload_bytes,
                bool wants_prompt_ack) noexcept;
  void advance_tombstones(Ctx& ctx) noexcept;
  void confirm_rejections(Ctx& ctx, std::uint16_t known) noexcept;
  [[nodiscard]] std::uint32_t tellable(const Ctx& ctx) const noexcept;

  /// Receive records the context may still take.
  [[nodiscard]] std::uint32_t record_room(const Ctx& ctx) const noexcept {
    return std::min(rx_messages_.free(), records_per_context_ - ctx.held);
  }

  /// Multiply-shift by a secret factor: peers choose the ids, but not the chain.
  [[nodiscard]] std::uint64_t hash_partial(Index context, std::uint32_t msg_id) const noexcept {
    return (std::uint64_t{msg_id} << 32U | context) * partial_hash_factor_ >> partial_hash_shift_;
  }

  [[nodiscard]] Index find_partial(Index index, std::uint32_t msg_id) const noexcept;

  // deliver.cpp
  bool complete_message(Index message) noexcept;
  bool sort_slices(RxMessage& message) noexcept;
  Index free_message(Index message) noexcept;
  void unhash(Index message) noexcept;
  void free_slices(RxMessage& message) noexcept;
  [[nodiscard]] Index loaned(MessageId id) const noexcept;
  [[nodiscard]] std::uint64_t receive_allowance() const noexcept;
  void offer_limit(Index index, std::uint64_t now_ns) noexcept;
  void charge(RxMessage& message, std::uint64_t bytes) noexcept;

  // acknowledge.cpp
  struct AckInfo {
    std::uint32_t cumulative = 0;
    std::uint16_t ack_seq = 0, rej_total = 0;
    std::uint64_t limit_units = 0;
    std::uint8_t pressure = 0;
    std::uint32_t echo_time = 0;
    std::uint64_t hold_ns = 0;
    std::uint8_t echo_slot = 0, echo_gen_attempt = 0;
    std::uint32_t bitmap_psn = 0;
    std::span<const std::uint64_t> received, ce;
  };

  void on_ack(Index index, Arrival& arrival) noexcept;
  void on_piggy(Index index, Arrival& arrival) noexcept;
  static bool is_impossible(const Ctx& ctx, const AckInfo& info) noexcept;
  bool apply_ack(Index index, const Arrival& arrival, const AckInfo& info) noexcept;

  struct AckTally {
    std::uint64_t bytes = 0, ce_bytes = 0, delayed_bytes = 0;
    std::uint32_t datagrams = 0, first_copies = 0;
    std::uint64_t slots = 0;  // with newly acked datagrams
    std::array<std::uint64_t, kSlotsMax> newest_tx_ns{};
    std::array<std::uint32_t, kSlotsMax> slot_bytes{};
  };

  void ack_psn(Index index, std::uint32_t psn, bool ce, std::uint64_t now_ns,
               AckTally& tally) noexcept;
  void note_ce(Ctx& ctx, std::uint32_t first_psn, std::uint64_t marked) noexcept;
  void take_rtt(Index index, const Arrival& arrival, const AckInfo& info, AckTally& tally) noexcept;
  static void note_echo(Ctx& ctx, std::uint64_t arrived_ns, std::uint64_t round_ns) noexcept;
  void note_rtt(Ctx& ctx, std::uint32_t slot, std::uint64_t rtt_ns, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint64_t slot_base_ns(const Ctx& ctx, std::uint32_t slot) const noexcept;
  void update_limit(Index index, std::uint64_t limit_units) noexcept;
  void advance_una(Index index) noexcept;
  void message_acked(Index index, Index message) noexcept;
  void message_delivered(Ctx& ctx, Index message) noexcept;
  void release_parked(Index index) noexcept;
  void on_nack(Index index, Arrival& arrival) noexcept;
  void message_rejected(Index index, Index message, const wire::NackHeader& nack,
                        std::uint64_t now_ns) noexcept;
  [[nodiscard]] Index find_sent_message(const Ctx& ctx, std::uint32_t msg_id) const noexcept;
  void settle_rejected(Index peer, Index message) noexcept;
  void void_outstanding(Index index, Index message) noexcept;
  void on_host_drop_report(Ctx& ctx, std::uint16_t host_drops, std::uint64_t now_ns) noexcept;
  void on_dup_report(Ctx& ctx, std::uint16_t dup_total, std::uint64_t now_ns) noexcept;

  // loss.cpp
  void detect_losses(Index index, std::uint64_t now_ns) noexcept;
  void detect_fifo(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void detect_rack(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool shown_missing(const Ctx& ctx, std::uint32_t psn,
                                   std::uint32_t order) const noexcept;
  void declare_lost(Index index, std::uint32_t psn, std::uint64_t now_ns) noexcept;
  void note_needless_rto(Ctx& ctx, std::uint64_t now_ns) noexcept;
  void arm_retry(Ctx& ctx, std::uint64_t now_ns) noexcept;
  void on_retry_timer(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool is_stuck(const Ctx& ctx, std::uint64_t now_ns) const noexcept;
  void outage(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint64_t rto_ns(const Ctx& ctx) const noexcept;
  [[nodiscard]] std::uint64_t pto_ns(const Ctx& ctx) const noexcept;
  [[nodiscard]] std::uint64_t fifo_gap_ns(const Ctx& ctx) const noexcept;

  // sent_ring.cpp
  Sent& sent(Ctx& ctx, std::uint32_t psn) noexcept {
    return chunks_[ctx.chunks[psn / kChunkPsns % kWindowWords]].sent[psn % kChunkPsns];
  }

  const Sent& sent(const Ctx& ctx, std::uint32_t psn) const noexcept {
    return chunks_[ctx.chunks[psn / kChunkPsns % kWindowWords]].sent[psn % kChunkPsns];
  }

  bool has_psn_room(const Ctx& ctx, std::uint32_t count) const noexcept;
  bool lease_psn(Ctx& ctx) noexcept;
  void put_in_flight(Ctx& ctx, std::uint32_t psn, std::uint32_t slot) noexcept;
  void take_from_flight(Ctx& ctx, std::uint32_t psn) noexcept;
  void push_lost(Ctx& ctx, std::uint32_t psn, bool front) noexcept;
  void unlink_lost(Ctx& ctx, std::uint32_t psn) noexcept;

  // paths.cpp
  void open_initial_paths(Index index, std::uint64_t now_ns) noexcept;
  void open_all_paths(Index index, std::uint64_t now_ns) noexcept;
  bool open_slot(Ctx& ctx, std::uint32_t slot, std::uint64_t now_ns, std::uint8_t answers) noexcept;
  void reroll(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void suspect(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void probe_slot(Ctx& ctx, std::uint32_t slot) noexcept;
  void slot_answered(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void adopt_return_path(Index index, const Arrival& arrival) noexcept;
  void on_probe(Index index, Arrival& arrival) noexcept;
  void on_probe_ack(Index index, Arrival& arrival) noexcept;
  void on_rev_path(Ctx& ctx, const wire::RevPath& rev_path, std::uint64_t now_ns) noexcept;
  void on_re_path(Index index, const wire::RePath& re_path, std::uint64_t now_ns) noexcept;
  void slot_timers(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool has_unfinished(const Ctx& ctx) const noexcept;
  [[nodiscard]] bool may_probe(const Ctx& ctx, std::uint64_t now_ns) const noexcept;
  void judge_slot_loss(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void close_paths(Ctx& ctx) noexcept;
  void retire_path(PathId path) noexcept;
  void leave_path(Slot& slot) noexcept;
  void begin_path(Slot& slot, PathId path, std::uint64_t now_ns, std::uint8_t answers) noexcept;
  void explore(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint64_t heard_slots(const Ctx& ctx, std::uint64_t now_ns) const noexcept;
  void note_icmp(Index index, std::uint64_t now_ns) noexcept;

  // send.cpp
  Index new_message(const SendRequest& request, std::uint64_t bytes) noexcept;
  Errc send_small(Index peer, const SendRequest& request, std::uint64_t bytes) noexcept;
  Errc send_large(Index peer, const SendRequest& request, std::uint64_t bytes) noexcept;
  bool append_record(Peer& peer, Index message, std::span<const Segment> payload) noexcept;
  void finish_message(Index message, Errc status) noexcept;
  void report_message(Index message) noexcept;
  void leave_bundle(Index message) noexcept;
  [[nodiscard]] bool has_set_up(Index peer) const noexcept;
  void free_tx_message(Index message) noexcept;
  void wait_for_retry(Index peer, Index message) noexcept;
  bool requeue(Index peer, Index message) noexcept;
  void back_to_queue(Peer& peer, Index message) noexcept;
  bool requeue_bundle(Peer& peer, Index bundle) noexcept;
  [[nodiscard]] bool fits_open_bundle(const Peer& peer, std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool has_record_room(const Peer& peer, std::uint64_t bytes) const noexcept;
  void drop_bundle_if_dead(Index bundle) noexcept;

  std::byte* bundle_data(Index bundle) const noexcept {
    return bundle_memory_.data() + std::size_t{bundle} * config_.limits.bundle_bytes;
  }

  void wake_waiting(Index peer, std::uint64_t now_ns) noexcept;

  // transmit.cpp
  std::size_t transmit(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  void queue_aborts(Index index, std::uint64_t now_ns) noexcept;
  std::size_t transmit_lost(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  std::size_t transmit_small(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  std::size_t transmit_data(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  std::size_t transmit_tail_probe(Index index, std::uint64_t now_ns,
                                  std::span<TxDatagram> out) noexcept;

  struct Burst {
    std::uint32_t slot = kSlotsMax;
    std::uint32_t datagrams = 0;
    std::uint16_t index = 0;
  };

  Burst start_burst(Ctx& ctx, std::uint64_t now_ns, std::uint64_t next_bytes, std::uint64_t avoid,
                    std::uint32_t only = kSlotsMax) noexcept;
  [[nodiscard]] static bool within_window(Ctx& ctx, std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t burst_bytes(const Ctx& ctx) const noexcept;
  void emit_sent(Index index, std::uint32_t psn, Burst& burst, std::uint64_t now_ns,
                 std::uint8_t flags, TxDatagram& out) noexcept;
  void write_sent(Index index, std::uint32_t psn, std::uint8_t flags, std::uint64_t now_ns,
                  TxDatagram& out) noexcept;
  void write_body(Index index, std::uint32_t psn, TxDatagram& out) noexcept;
  std::uint32_t assign_psn(Ctx& ctx, Sent::Kind kind, Index message, std::uint32_t bytes) noexcept;
  void attach_extensions(Index index, std::uint64_t now_ns, std::size_t room,
                         wire::Extensions& extensions) noexcept;
  static void attach_payload(const TxMessage& message, const Sent& record,
                             TxDatagram& out) noexcept;
  void finish_datagram(const Ctx& ctx, TxDatagram& out) noexcept;
  [[nodiscard]] bool has_payload_to_send(const Ctx& ctx) const noexcept;
  [[nodiscard]] static bool held_back(const Ctx& ctx) noexcept;
  [[nodiscard]] std::uint32_t next_segment(const Ctx& ctx, const TxMessage& message) const noexcept;
  std::uint32_t cut_segment(Ctx& ctx, Index message, std::uint32_t bytes) noexcept;
  Index current_message(Index index) noexcept;
  void abandon_current(Ctx& ctx) noexcept;
  void abandon_or_return_current(Ctx& ctx) noexcept;
  Burst start_data_burst(Ctx& ctx, TxMessage& message, std::uint32_t bytes,
                         std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool may_send_new(const Ctx& ctx) const noexcept;
  void block_by_limit(Ctx& ctx, std::uint64_t now_ns) noexcept;
  bool may_begin_alone(Ctx& ctx) noexcept;
  bool within_limit(Ctx& ctx, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void note_blocked(Ctx& ctx, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint64_t context_cookie(Index context, std::uint32_t psn) const noexcept;
  [[nodiscard]] std::uint64_t probe_cookie(Index context, std::uint32_t slot) const noexcept;
  [[nodiscard]] Index context_of(std::uint64_t cookie) const noexcept;
  void probe_refused(Index index, std::uint32_t slot, std::uint64_t now_ns) noexcept;
  void refused(Index index, std::uint32_t psn, Errc status, std::uint64_t now_ns) noexcept;
  std::uint64_t rest_refused(Slot& slot, std::uint64_t now_ns) const noexcept;
  [[nodiscard]] bool route_shrank(const Ctx& ctx) noexcept;

  // reply.cpp
  std::size_t transmit_control(Index index, std::uint64_t now_ns,
                               std::span<TxDatagram> out) noexcept;
  std::size_t transmit_acks(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  std::size_t transmit_probes(Index index, std::uint64_t now_ns,
                              std::span<TxDatagram> out) noexcept;
  std::size_t transmit_nacks(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  std::size_t transmit_close(Index index, std::uint64_t now_ns, std::span<TxDatagram> out) noexcept;
  void write_ack(Ctx& ctx, std::uint64_t now_ns, std::uint32_t slot, std::span<std::byte> words,
                 TxDatagram& out) noexcept;
  void copy_to_slot(const Ctx& ctx, const TxDatagram& from, std::uint32_t slot,
                    TxDatagram& out) noexcept;
  [[nodiscard]] bool can_ride(const Ctx& ctx) const noexcept;
  void write_probe(Ctx& ctx, std::uint32_t slot, std::uint16_t flags, std::uint64_t now_ns,
                   TxDatagram& out) noexcept;
  void start_datagram(const Ctx& ctx, std::uint32_t slot, wire::PacketType type, std::uint8_t flags,
                      std::uint32_t psn, std::uint64_t now_ns, TxDatagram& out) noexcept;
  std::uint32_t control_slot(Ctx& ctx, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint32_t another_slot(const Ctx& ctx, std::uint32_t slot) const noexcept;
  static void acks_told(Ctx& ctx) noexcept;
  [[nodiscard]] std::uint64_t limit_units(Ctx& ctx) noexcept;
  void acknowledge_now(Index index) noexcept;
  void acknowledge_soon(Index index, std::uint64_t now_ns, bool lazy) noexcept;
  [[nodiscard]] std::uint8_t pressure() const noexcept;
  void queue_one_shot(const Arrival& arrival, std::span<const std::byte> packet) noexcept;
  /// `common` gets what all answers to strangers have; `bytes`: of the packet.
  template <class Body>
  void answer_stranger(const Arrival& arrival, wire::CommonHeader common, const Body& body,
                       std::size_t bytes) noexcept;
  std::span<std::byte> scratch(std::size_t bytes) noexcept;

  // timers.cpp
  void touch(Index index) noexcept;
  void flush_touched() noexcept;
  void mark_ready(Index index) noexcept;
  void rearm(Index index) noexcept;
  void context_timers(Index index, std::uint64_t now_ns) noexcept;
  bool fires(LateTimer& timer, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint64_t context_deadline(const Ctx& ctx) const noexcept;
  bool set_up_timers(Index index, std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool has_living_sibling(Index index, std::uint64_t now_ns) const noexcept;
  void expect_answer(Ctx& ctx, std::uint64_t now_ns) noexcept;

  Config config_;
  PathControl& path_control_;
  Prng prng_;
  std::array<std::uint8_t, 16> cookie_key_{};

  Slab<Peer> peers_;
  Slab<Context> contexts_;
  Slab<TxMessage> tx_messages_;
  Slab<Bundle> bundles_;
  LazyMemory bundle_memory_;  // Limits::bundle_bytes for each bundle
  Slab<SentChunk> chunks_;
  Slab<RxMessage> rx_messages_;
  Slab<Slice> slices_;
  Slab<Rejection> rejections_;
  std::array<BlockPool, 3> copy_pools_;  // send copies: 1 KB, 8 KB, 64 KB
  BlockPool rx_small_, rx_large_;        // receive copies: 512 B, 2 KB
  std::unique_ptr<Index[]> partial_hash_;
  std::uint64_t partial_hash_factor_ = 1;
  unsigned partial_hash_shift_ = 63;
  std::uint32_t records_per_context_ = 0;  // of rx_messages_
  IndexHash contexts_by_remote_id_;        // open ones
  IndexHash peers_by_endpoint_, peers_by_address_, peers_by_dest_;
  IndexList lost_peers_;  // that the application does not hold on to, the longest lost first

  IndexList ready_;  // contexts that may have something to send
  DeadlineHeap deadlines_;
  IndexList done_sends_, ready_messages_;

  struct PeerEvent {
    PeerId peer = kNoPeer;
    Errc status = Errc::ok;
  };

  [[nodiscard]] std::uint32_t peer_event_capacity() const noexcept {
    return kPeerEventsPerPeer * config_.limits.peers;
  }

  std::unique_ptr<PeerEvent[]> peer_events_;  // ring
  std::uint32_t peer_event_head_ = 0, peer_event_count_ = 0;
  std::unique_ptr<Index[]> lazy_;  // contexts with a lazy ACK
  std::uint32_t lazy_count_ = 0;

  std::unique_ptr<BufferId[]> releases_;  // dropped buffers
  std::uint32_t release_count_ = 0;
  Index release_slices_ = kNone;  // slices whose memory goes back

  struct OneShot {
    PathId path = kNoPath;
    std::uint32_t bytes = 0;
    std::array<std::byte, wire::kHelloBytes> packet{};
  };

  std::array<OneShot, kOneShots> one_shots_{};  // answers without a context
  std::size_t one_shot_count_ = 0;
  std::size_t one_shots_sent_ = 0;  // handed out; their paths are closed at the next call
  std::array<PathId, kRetiredPaths> retired_{};  // to close at the next poll_transmit()
  std::size_t retired_count_ = 0;
  // Copied payloads of control packets; valid until the next poll_transmit().
  std::array<std::array<std::byte, kScratchBytes>, kScratchBlocks> scratch_{};
  std::size_t scratch_used_ = 0;
  RateLimit resets_{kOneShots, kResetIntervalNs};
  RateLimit hello_answers_{kOneShots, kHelloAnswerIntervalNs};  // RETRY and refusals

  std::uint32_t half_open_ = 0;
  std::uint32_t peers_up_ = 0;
  std::uint32_t next_serial_ = 1;
  std::uint64_t pool_used_bytes_ = 0;
  static constexpr std::uint64_t kActiveEpochNs = 100'000'000;
  std::uint64_t epoch_ = 0;  // latest in which data came, for sharing the receive pool
  std::uint32_t active_now_ = 0, active_before_ = 0;
  std::uint64_t host_drops_ = 0;
  std::uint8_t rx_fill_ = 0;
  std::uint64_t now_ns_ = 0;  // of the call being served
  Index touched_ = kNone;     // context served last, not re-armed yet
  bool closing_down_ = false;
};

template <class Body>
void Core::Impl::answer_stranger(const Arrival& arrival, wire::CommonHeader common,
                                 const Body& body, std::size_t bytes) noexcept {
  std::array<std::byte, wire::kHelloBytes> memory{};
  const std::span<std::byte> packet = std::span(memory).first(bytes);
  common.slot = arrival.header.slot;
  common.tx_time = wire::to_wire_time(arrival.now_ns);
  wire::encode(packet, common);
  wire::encode(packet, body);
  wire::seal(packet, {}, wire::kUnseeded);
  queue_one_shot(arrival, packet);
}

}  // namespace srd::core
