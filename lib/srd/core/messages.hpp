// SPDX-License-Identifier: Apache-2.0
// Records of the core: messages being sent and received, datagrams in flight, received pieces,
// rejections. Plain data in slabs, linked by index; the code that moves them is in the .cpp files
// named after what happens (send.cpp, transmit.cpp, acknowledge.cpp, deliver.cpp, ...).
#pragma once

#include <array>
#include <cstdint>

#include "srd/core/core.hpp"

#include "base/slab.hpp"

namespace srd::core {

/// A message the application gave us, until its send_done event was polled.
struct TxMessage {
  enum class State : std::uint8_t {
    queued,    ///< in its peer's queue; nothing sent in this life
    active,    ///< segments assigned to PSNs of `context`
    parked,    ///< all acknowledged, but rejections up to `rej_needed` are not known yet
    aborting,  ///< rejected; waits for a PSN for its ABORT
    waiting,   ///< rejected; comes again at retry_at_ns
    done,      ///< in the list of finished messages
  };
  Index prev = kNone, next = kNone;
  State state = State::queued;
  Errc status = Errc::ok;
  std::uint8_t iov_count = 0, iov_at = 0;  ///< pieces, and the one segmentation has reached
  bool unsignaled = false, one_path = false;
  bool is_multi = false;  ///< more than one segment; set when segmentation begins
  std::uint8_t one_path_slot = 0xff;
  std::uint8_t rejections = 0;  ///< for the back-off
  std::uint16_t channel = 0;
  std::uint16_t rej_needed = 0;
  PeerId handle = kNoPeer;  ///< as the application named the peer
  Index context = kNone;
  std::uint32_t msg_id = 0;
  std::uint32_t unacked = 0;     ///< PSNs assigned and not acknowledged
  std::uint32_t tx_pending = 0;  ///< datagrams the device still references
  std::uint32_t iov_offset = 0;
  Index bundle = kNone;       ///< short messages: where the copied payload is
  Index bundle_next = kNone;  ///< next message of the same bundle
  Index copy_block = kNone;   ///< copied longer messages
  std::uint8_t copy_class = 0;
  std::uint64_t user_data = 0, bytes = 0, offset = 0;  ///< offset: first byte without a PSN
  std::uint64_t retry_at_ns = 0;
  std::array<Segment, kIovMax> iov{};
};

/// The payload area of one SMALL datagram: records and copied payloads, ready for the wire.
struct Bundle {
  Index prev = kNone, next = kNone;  // queue of the peer
  Index first_message = kNone, last_message = kNone;
  std::uint16_t count = 0;          ///< records
  std::uint16_t live = 0;           ///< holders: unfinished messages, and the datagram in flight
  std::uint16_t bytes = 0;          ///< used, padded
  std::uint16_t payload_bytes = 0;  ///< flow-control bytes
  std::uint32_t msg_id = 0;         ///< of the first record
};

/// One datagram that consumed a PSN.
struct Sent {
  enum class State : std::uint8_t { none, in_flight, lost, acked };
  enum class Kind : std::uint8_t { data, small, abort, voided };
  std::uint64_t tx_ns = 0;           ///< latest transmission
  std::uint32_t prev = 0, next = 0;  ///< PSNs, in the list of its slot or of the lost
  std::uint32_t burst = 0;           ///< of the slot, latest transmission
  Index message = kNone;             ///< data, abort: message; small: bundle
  std::uint32_t offset = 0;          ///< data: in the message; abort: its msg_id
  std::uint32_t bytes = 0;           ///< payload, as counted for flow control
  std::uint16_t burst_index = 0;
  std::uint8_t iov_at = 0;  ///< data: piece at `offset`
  std::uint8_t slot = 0, generation = 0, attempt = 0;
  State state = State::none;
  Kind kind = Kind::data;
  bool requeue = false;  ///< abort
  bool ce_noted = false;
  bool unsent = false;           ///< in the lost list without having been on the wire
  std::uint32_t iov_offset = 0;  ///< data: offset in that piece
};

inline constexpr std::uint32_t kChunkPsns = 64;

struct SentChunk {
  std::array<Sent, kChunkPsns> sent;
};

/// A received piece: driver memory or a chunk of the copy pool.
struct Slice {
  const std::byte* data = nullptr;
  std::uint32_t offset = 0, bytes = 0;
  Index next = kNone;
  BufferId buffer = kNoBuffer;
  Index chunk = kNone;
  bool large_chunk = false;
};

/// A message being received, waiting for the application, or on loan to it.
struct RxMessage {
  enum class State : std::uint8_t {
    partial,
    ready,
    loaned,
    rejected,   ///< multi-segment message that was refused: later segments are consumed unseen
    tombstone,  ///< aborted: until no older segment can arrive
  };
  Index prev = kNone, next = kNone;
  Index hash_next = kNone;
  State state = State::partial;
  bool hashed = false;
  std::uint16_t channel = 0;
  Index context = kNone;
  std::uint32_t context_life = 0;  ///< generation: the message may outlive its context
  PeerId handle = kNoPeer;
  std::uint32_t msg_id = 0, length = 0, received = 0;
  std::uint32_t slices = 0;
  Index first = kNone, last = kNone;
  std::uint64_t charged_bytes = 0;
  std::uint32_t abort_psn = 0;
};

/// A rejection the peer has not confirmed.
struct Rejection {
  Index prev = kNone, next = kNone;
  std::uint16_t seq = 0;
  std::uint16_t port = 0;
  wire::NackCode code{};
  bool send = true;
  std::uint32_t msg_id = 0, retry_after_us = 0;
};

}  // namespace srd::core
