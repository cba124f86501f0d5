// SPDX-License-Identifier: Apache-2.0
// The protocol of one local endpoint, sans-IO: time and datagrams go in; datagrams, events and a
// deadline come out. It reads no clock, opens no socket, starts no thread.
//
// Contract (tests/unit/core_contract_test.cpp):
//  1. Deterministic: same config, seed, inputs and PathControl answers give the same outputs, byte
//     for byte.
//  2. `now` never decreases; several calls may share one `now`.
//  3. After inputs or commands, poll the outputs: transmit, then release, then events, then read
//     next_deadline(). What was polled does not come again. Nothing but PathControl is called.
//  4. No allocation after create(); every table has a limit in Limits.
//  5. Work per call is bounded by the size of its arguments and by what the contexts concerned
//     hold, never by how many other peers, contexts or messages there are (remove_peer(): nor by
//     more than the events not polled). Timers serve a bounded number of contexts per call and
//     leave next_deadline() <= now if more remain.
//  6. Network input can cause a counted drop, never a failed check.
//  7. Payload given to send() is referenced until the message's send_done event.
//  8. A message completes only when it is acknowledged and every TxDone of it is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "srd/core/config.hpp"
#include "srd/core/counters.hpp"
#include "srd/datagram.hpp"
#include "srd/driver.hpp"
#include "srd/result.hpp"

namespace srd::core {

/// Handle of a remote endpoint; dense, below Limits::peers.
enum class PeerId : std::uint32_t {};
inline constexpr PeerId kNoPeer{UINT32_MAX};

/// A received message on loan; index and generation, never 0.
enum class MessageId : std::uint64_t {};
inline constexpr MessageId kNoMessage{0};

inline constexpr std::size_t kIovMax = 8;

struct SendRequest {
  PeerId peer = kNoPeer;
  std::span<const Segment> payload;  ///< at most kIovMax pieces
  std::uint64_t user_data = 0;
  std::uint16_t channel = 0;
  bool copy = false;
  bool unsignaled = false;
  bool one_path = false;
};

struct Event {
  enum class Kind : std::uint8_t { message, send_done, peer };
  Kind kind = Kind::send_done;
  std::uint16_t channel = 0;
  Errc status = Errc::ok;  ///< peer: ok = up
  PeerId peer = kNoPeer;
  std::uint32_t segment_count = 0;  ///< message: its pieces; 0 if it is empty
  std::uint64_t user_data = 0;      ///< send_done
  std::uint64_t bytes = 0;
  const std::byte* data = nullptr;  ///< message: its first piece
  MessageId message = kNoMessage;
};

class Core {
 public:
  /// Takes all memory. `paths` must outlive the core. Errors: invalid_argument, no_memory.
  static Result<std::unique_ptr<Core>> create(const Config& config, PathControl& paths) noexcept;
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // --- inputs ---
  /// Takes over the buffers; they come back through poll_release().
  void handle_datagrams(Instant now, std::span<const RxDatagram> in) noexcept;
  /// What became of datagrams that poll_transmit() returned with a cookie. Refused ones are sent
  /// again, which is no retransmission.
  void handle_tx_done(Instant now, std::span<const TxDone> done) noexcept;
  /// Call when now >= next_deadline(); early calls are harmless.
  void handle_timeout(Instant now) noexcept;
  /// A hint: has paths probed, and lets a HELLO go out again; ends nothing by itself.
  void handle_path_event(Instant now, const PathEvent& event) noexcept;
  /// Host receive queue: datagrams the driver saw dropped so far, and its fill 0..255.
  void handle_host_state(Instant now, std::uint64_t rx_host_drops, std::uint8_t rx_fill) noexcept;

  // --- commands ---
  /// The same address gives the same handle. Errors: no_memory, no_route.
  Result<PeerId> add_peer(Instant now, const Address& address) noexcept;
  /// Forgets the peer; its messages end with canceled. not_found: no handle (any more).
  Errc remove_peer(Instant now, PeerId peer) noexcept;
  /// would_block: a queue is full, nothing was queued. message_too_long, not_found (peer),
  /// invalid_argument (iov).
  Errc send(Instant now, const SendRequest& request) noexcept;
  /// invalid_argument: not on loan.
  Errc release(Instant now, MessageId message) noexcept;
  /// Queues CLOSE to all peers; poll_transmit() then drains them, nothing else is sent afterwards.
  void close(Instant now) noexcept;

  // --- outputs ---
  // All return how many entries of `out` they filled; out.size(): there may be more.
  /// Datagrams to send now. Payload they point to that is not the application's is valid until the
  /// next call.
  std::size_t poll_transmit(Instant now, std::span<TxDatagram> out) noexcept;
  /// What the application should know. A message is on loan from here until release().
  std::size_t poll_events(std::span<Event> out) noexcept;
  /// Receive buffers to give back to the driver; to be polled after each handle_datagrams().
  std::size_t poll_release(std::span<BufferId> out) noexcept;
  [[nodiscard]] Instant next_deadline() const noexcept;
  /// True while poll_transmit() may have something to return; it makes this false in the end.
  [[nodiscard]] bool has_transmit() const noexcept;
  [[nodiscard]] bool has_events() const noexcept;

  // --- what can be read ---
  /// Pieces of a message on loan, in order; returns their number. O(pieces).
  std::size_t segments(MessageId message, std::span<srd_iov> out) const noexcept;
  /// Copies up to out.size() bytes from `offset`. Errors: invalid_argument. O(pieces + bytes).
  Result<std::size_t> copy_out(MessageId message, std::uint64_t offset,
                               std::span<std::byte> out) const noexcept;
  [[nodiscard]] const Counters& counters() const noexcept;
  /// State and counters of a peer; struct_bytes is left 0. False: no handle (any more).
  /// O(contexts of the peer).
  bool peer_info(PeerId peer, srd_peer_info& out) const noexcept;
  /// The paths of the context in use, as many as fit; returns their number, 0 for an unknown peer.
  /// O(paths), and PathControl::describe_path() for each.
  std::size_t path_info(PeerId peer, std::span<srd_path_info> out) const noexcept;

 private:
  class Impl;
  explicit Core(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace srd::core
