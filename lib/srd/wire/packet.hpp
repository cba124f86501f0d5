// SPDX-License-Identifier: Apache-2.0
// Every packet of the wire format, version 0 (draft): fields, offsets, units. Little-endian,
// natural alignment. docs/PROTOCOL.md 3 is the normative text and tests/unit/vectors/ pins both.
//
// To add a packet type: extend PacketType, add the struct with its encode/decode pair here, its
// table to PROTOCOL.md 3, a vector to tests/unit/vectors, a case to the dispatch in
// core/receive.cpp, to fixed_bytes(), to to_string() and to tests/support/packet_roundtrip.cpp.
//
// What every datagram of a message needs (common header, DATA, SMALL) is inline in packet_inl.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace srd::wire {

inline constexpr std::uint8_t kVersion = 0;

enum class PacketType : std::uint8_t {
  data = 1,       ///< one segment of a message
  small = 2,      ///< one or more whole short messages
  ack = 3,        ///< what was received; also flow-control limit and receiver state
  nack = 4,       ///< one message was rejected
  hello = 5,      ///< opens a context
  hello_ack = 6,  ///< answers HELLO, accepted or refused
  retry = 7,      ///< cookie for a HELLO, no state kept
  probe = 8,      ///< asks for PROBE_ACK, ACK or NACKs
  probe_ack = 9,
  reset = 10,  ///< hint: unknown context
  close = 11,
  void_psns = 12,  ///< fills PSNs that will never carry payload again
  abort = 13,      ///< ends one message
};

/// Common header flags.
enum Flag : std::uint8_t {
  kFlagAckRequest = 0x01,  ///< AR: acknowledge at once
  kFlagFirst = 0x02,       ///< first segment of its message
  kFlagLast = 0x04,        ///< last segment of its message
  kFlagTailProbe = 0x08,   ///< TLP: a tail-loss or RTO probe; the ACK covers the whole window
  kFlagExtension = 0x10,   ///< an extension block (TLVs) follows the fixed header
  kFlagFullCheck = 0x20,   ///< check covers the payload, too; must equal the negotiated form
  kFlagAead = 0x40,        ///< reserved for AEAD; must equal the negotiated form
};

/// Times on the wire: 64 ns units of the sender's clock, modulo 2^32 (wraps after 275 s).
inline constexpr unsigned kTimeUnitShift = 6;

constexpr std::uint32_t to_wire_time(std::uint64_t ns) noexcept {
  return static_cast<std::uint32_t>(ns >> kTimeUnitShift);
}

constexpr std::uint64_t from_wire_span(std::uint32_t units) noexcept {
  return static_cast<std::uint64_t>(units) << kTimeUnitShift;
}

/// Flow-control limits count payload bytes in units of 256.
inline constexpr unsigned kLimitUnitShift = 8;

inline constexpr std::size_t kCommonBytes = 20;
inline constexpr std::size_t kCheckOffset = 16;

/// First 20 bytes of every packet.
struct CommonHeader {
  std::uint8_t version = kVersion;  // 0, high nibble
  PacketType type{};                // 0, low nibble
  std::uint8_t flags = 0;           // 1
  std::uint8_t slot = 0;            // 2: path slot, numbered by the context's initiator
  std::uint8_t generation = 0;      // 3, high nibble: of the slot, modulo 16
  std::uint8_t attempt = 0;         // 3, low nibble: 0 = first transmission, saturates at 15
  std::uint32_t dst_ctx = 0;        // 4: receiver's context id; 0 in set-up packets
  std::uint32_t psn = 0;      // 8: PSN; in ACK the cumulative ack (next expected); else unused
  std::uint32_t tx_time = 0;  // 12
  std::uint32_t check = 0;    // 16: seeded CRC32C, see check.hpp

  bool operator==(const CommonHeader&) const = default;
};

/// DATA, 40 bytes: one segment.
struct DataHeader {
  std::uint32_t msg_id = 0;    // 20
  std::uint32_t msg_len = 0;   // 24: bytes of the whole message
  std::uint32_t msg_off = 0;   // 28: offset of this segment in it
  std::uint32_t chan_seq = 0;  // 32: 0 = unordered
  std::uint16_t port = 0;      // 36: channel
  std::uint8_t op = 0;         // 38
  std::uint8_t backlog = 0;    // 39: log8, see backlog_code()

  bool operator==(const DataHeader&) const = default;
};

inline constexpr std::size_t kDataBytes = 40;

/// SMALL, 28 bytes and then `count` records of 12 bytes + payload padded to 4: whole messages with
/// consecutive ids.
struct SmallHeader {
  std::uint32_t msg_id = 0;  // 20: of the first record
  std::uint8_t count = 0;    // 24: 1..64
  std::uint8_t backlog = 0;  // 25
  std::uint16_t bytes = 0;   // 26: payload bytes for flow control: sum of the records' `bytes`

  bool operator==(const SmallHeader&) const = default;
};

inline constexpr std::size_t kSmallBytes = 28;

struct SmallRecord {
  std::uint32_t chan_seq = 0;  // 0
  std::uint16_t port = 0;      // 4
  std::uint16_t bytes = 0;     // 6
  std::uint8_t op = 0;         // 8
  std::uint8_t reserved[3]{};  // 9: zero

  bool operator==(const SmallRecord&) const = default;
};

inline constexpr std::size_t kSmallRecordBytes = 12;
inline constexpr std::size_t kSmallCountMax = 64;

/// From the start of one record to the next.
constexpr std::size_t small_record_stride(std::size_t payload_bytes) noexcept {
  return kSmallRecordBytes + ((payload_bytes + 3) & ~std::size_t{3});
}

/// Operations of DATA and SMALL; others are malformed.
enum class Op : std::uint8_t { send = 0 };

/// ACK, 64 bytes and then `words` received words, then as many CE words if kAckCeBitmap; an
/// extension block comes after those, at ack_bytes().
struct AckHeader {
  std::uint32_t echo_time = 0;  // 20: tx_time of the packet that triggered this ACK
  std::uint32_t rx_time = 0;    // 24: receiver's clock when that arrived; tx_time - rx_time = hold
  std::uint32_t echo_psn = 0;   // 28
  std::uint8_t echo_slot = 0;   // 32
  std::uint8_t echo_gen_attempt = 0;  // 33: as in the common header
  std::uint8_t flags = 0;             // 34: AckFlag
  std::uint8_t pressure = 0;          // 35: receive memory in use, 0..255
  std::uint32_t rx_bytes = 0;         // 36: payload bytes of distinct PSNs received, modulo 2^32
  std::uint32_t limit = 0;            // 40: cumulative flow-control limit, 256-byte units
  std::int16_t bitmap_base = 0;       // 44: first bitmap PSN minus cumulative ack
  std::uint16_t ce_total = 0;         // 46: datagrams received with CE, modulo 2^16
  std::uint16_t dup_total = 0;        // 48: duplicates received
  std::uint16_t ack_seq = 0;          // 50: number of this ACK
  std::uint16_t rej_total = 0;        // 52: rejections so far (PROTOCOL.md 6)
  std::uint16_t host_drops = 0;       // 54: datagrams lost inside the receiving host
  std::uint8_t words = 0;             // 56: 0..16
  std::uint8_t reserved[7]{};         // 57: zero

  bool operator==(const AckHeader&) const = default;
};

inline constexpr std::size_t kAckBytes = 64;
inline constexpr std::size_t kAckWordsMax = 16;

enum AckFlag : std::uint8_t {
  kAckCeEcho = 0x01,        ///< the echoed packet carried CE
  kAckBeyondWindow = 0x02,  ///< something was dropped beyond the window (OWN)
  kAckDuplicate = 0x04,     ///< triggered by a duplicate
  kAckCeBitmap = 0x08,      ///< CE words follow the received words
};

/// Bytes of an ACK up to its extension block or end.
constexpr std::size_t ack_bytes(const AckHeader& header) noexcept {
  return kAckBytes +
         ((header.flags & kAckCeBitmap) != 0 ? 16U : 8U) * static_cast<std::size_t>(header.words);
}

/// NACK, 36 bytes: a message was consumed without delivery.
enum class NackCode : std::uint8_t {
  receiver_not_ready = 1,  ///< RNR: nothing posted; try again after retry_after
  no_resources = 2,        ///< NO_RES: receive pool exhausted; try again after retry_after
  too_long = 3,            ///< final
  no_port = 4,             ///< final: nobody on that channel
};

struct NackHeader {
  NackCode code{};                    // 20
  std::uint8_t echo_slot = 0;         // 21
  std::uint8_t echo_gen_attempt = 0;  // 22; 23 reserved
  std::uint32_t retry_after_us = 0;   // 24
  std::uint32_t msg_id = 0;           // 28
  std::uint16_t port = 0;             // 32
  std::uint16_t rej_seq = 0;          // 34: number of this rejection, the first is 1

  bool operator==(const NackHeader&) const = default;
};

inline constexpr std::size_t kNackBytes = 36;

/// PROBE, 40 bytes, may be padded with zeros (path MTU).
struct ProbeHeader {
  std::uint32_t probe_id = 0;   // 20
  std::uint64_t opaque = 0;     // 24
  std::uint16_t flags = 0;      // 32: ProbeFlag
  std::uint16_t rej_known = 0;  // 34: all rejections up to here are known
  std::uint8_t backlog = 0;     // 36; 37..39 reserved

  bool operator==(const ProbeHeader&) const = default;
};

inline constexpr std::size_t kProbeBytes = 40;

enum ProbeFlag : std::uint16_t {
  kProbeWantAck = 0x01,   ///< answer with ACKs that cover the whole window, besides PROBE_ACK
  kProbeWantNack = 0x02,  ///< send every NACK after rej_known again
  kProbeSameSlot = 0x04,  ///< answer on the slot it came by; else on a good one
};

/// PROBE_ACK, 48 bytes.
struct ProbeAckHeader {
  std::uint32_t probe_id = 0;         // 20
  std::uint64_t opaque = 0;           // 24
  std::uint32_t echo_time = 0;        // 32
  std::uint32_t rx_time = 0;          // 36
  std::uint16_t rx_queue = 0;         // 40
  std::uint8_t ce = 0;                // 42: 1 = PROBE carried CE
  std::uint8_t echo_slot = 0;         // 43
  std::uint8_t echo_gen_attempt = 0;  // 44; 45..47 reserved

  bool operator==(const ProbeAckHeader&) const = default;
};

inline constexpr std::size_t kProbeAckBytes = 48;

using EndpointId = std::array<std::uint8_t, 16>;
using Nonce = std::array<std::uint8_t, 16>;

enum class RejectCode : std::uint8_t {
  accepted = 0,
  version = 1,  ///< no version in common
  no_room = 2,  ///< context table full: try again later
  stale = 3,    ///< ctx_serial below the newest confirmed one (a replay)
};
enum class PrevState : std::uint8_t { none = 0, alive = 1, unknown = 2 };

/// HELLO and HELLO_ACK, 160 bytes, padded to kHelloPaddedBytes. This layout never changes; set-up
/// packets and RESET carry version 0 in the common header whatever versions their senders speak.
struct HelloHeader {
  std::uint32_t src_ctx = 0;            // 20
  std::uint8_t version_min = kVersion;  // 24
  std::uint8_t version_max = kVersion;  // 25
  std::uint8_t traffic_class = 0;       // 26
  RejectCode reject{};                  // 27: HELLO_ACK
  std::uint32_t ctx_serial = 0;         // 28: rises with each context the endpoint opens
  std::uint64_t features = 0;           // 32: Feature bits offered / chosen
  EndpointId endpoint_id{};             // 40
  std::uint64_t incarnation = 0;        // 56: random at endpoint creation
  std::uint64_t seen_incarnation = 0;   // 64: of the other side, 0 = never seen
  Nonce nonce{};                        // 72
  Nonce echo_nonce{};                   // 88: HELLO_ACK: nonce of the HELLO
  std::uint32_t initial_psn = 0;        // 104
  std::uint32_t prev_ctx = 0;           // 108: HELLO: your context id I believe in, 0 = none
  PrevState prev_state{};               // 112: HELLO_ACK
  std::uint8_t paths = 0;               // 113
  std::uint8_t planes = 1;              // 114
  std::uint8_t window_log2 = 0;         // 115: receive window, PSNs
  std::uint32_t datagram_bytes = 0;     // 116: largest this side takes; the smaller one counts
  std::uint32_t max_message_bytes = 0;  // 120
  std::uint16_t partial_limit = 0;      // 124: unfinished multi-segment messages
  std::uint16_t ordered_channels = 0;   // 126
  std::uint16_t max_ack_delay_us = 0;   // 128
  std::uint8_t reads_ce = 0;            // 130; 131 reserved
  std::uint32_t rx_buffer_bytes = 0;    // 132: host receive queue
  std::uint32_t initial_limit = 0;      // 136: flow control, 256-byte units
  std::uint32_t echo_time = 0;          // 140: HELLO_ACK
  std::uint32_t hold_time = 0;          // 144: HELLO_ACK: between HELLO's arrival and this
  std::uint8_t reserved[12]{};          // 148

  bool operator==(const HelloHeader&) const = default;
};

inline constexpr std::size_t kHelloBytes = 160;
inline constexpr std::size_t kHelloPaddedBytes = 256;

enum Feature : std::uint64_t {
  kFeatureFullCheck = 1,  ///< check covers payload; chosen if either side asks for it
};

using Cookie = std::array<std::uint8_t, 24>;

/// RETRY, 64 bytes.
struct RetryHeader {
  Nonce echo_nonce{};  // 20
  Cookie cookie{};     // 36; 60..63 reserved

  bool operator==(const RetryHeader&) const = default;
};

inline constexpr std::size_t kRetryBytes = 64;

/// RESET, 32 bytes; psn of the common header echoes the PSN.
struct ResetHeader {
  std::uint32_t echo_dst_ctx = 0;  // 20
  std::uint64_t incarnation = 0;   // 24: of the responder

  bool operator==(const ResetHeader&) const = default;
};

inline constexpr std::size_t kResetBytes = 32;

/// CLOSE, 28 bytes; psn of the common header is the sender's next PSN.
struct CloseHeader {
  std::uint32_t reason = 0;    // 20
  std::uint32_t next_psn = 0;  // 24: next PSN expected from the other side

  bool operator==(const CloseHeader&) const = default;
};

inline constexpr std::size_t kCloseBytes = 28;

/// VOID, 28 bytes: PSNs psn .. psn+count-1 carry nothing any more. Acked like DATA.
struct VoidHeader {
  std::uint16_t count = 0;       // 20: 1..64; 22..23 reserved
  std::uint32_t bytes_each = 0;  // 24: their payload bytes, for flow control

  bool operator==(const VoidHeader&) const = default;
};

inline constexpr std::size_t kVoidBytes = 28;
inline constexpr std::size_t kVoidCountMax = 64;

/// ABORT, 32 bytes, takes a fresh PSN of no payload.
struct AbortHeader {
  std::uint32_t msg_id = 0;     // 20
  std::uint32_t chan_seq = 0;   // 24
  std::uint16_t rej_known = 0;  // 28
  std::uint8_t requeue = 0;     // 30: 1 = comes again under a new id, 0 = final; 31 reserved

  bool operator==(const AbortHeader&) const = default;
};

inline constexpr std::size_t kAbortBytes = 32;

/// Extension block: u16 total bytes (multiple of 4, itself included), u16 zero, then TLVs of
/// {u8 type, u8 value bytes, value}; type 0 pads to the end. Unknown types are ignored unless
/// kTlvCritical is set, which drops the packet.
enum class TlvType : std::uint8_t {
  pad = 0,
  tag = 1,       ///< reserved: 64-bit message tag
  piggy = 2,     ///< an acknowledgement riding on DATA or SMALL
  rev_path = 3,  ///< which of the peer's slots were heard lately
  re_path = 4,   ///< responder asks for new entropy on a slot
  cookie = 5,    ///< HELLO: cookie of a RETRY
  token = 6,     ///< reserved: HELLO without RETRY later
  locators = 7,  ///< reserved: further addresses, planes
  succeed = 8,   ///< reserved: asks the initiator to open a successor
};
inline constexpr std::uint8_t kTlvCritical = 0x80;
inline constexpr std::size_t kExtensionHeadBytes = 4;

/// PIGGY: stands for an ACK when there is no hole, no CE and no unconfirmed rejection.
struct Piggy {
  std::uint32_t cumulative = 0;       // 0
  std::uint32_t echo_time = 0;        // 4
  std::uint32_t hold_time = 0;        // 8: 64 ns units
  std::uint32_t limit = 0;            // 12
  std::uint16_t ack_seq = 0;          // 16
  std::uint16_t rej_total = 0;        // 18
  std::uint8_t echo_slot = 0;         // 20
  std::uint8_t echo_gen_attempt = 0;  // 21
  std::uint8_t pressure = 0;          // 22
  std::uint8_t reserved = 0;          // 23

  bool operator==(const Piggy&) const = default;
};

inline constexpr std::size_t kPiggyBytes = 24;

/// REVPATH: slots (bit = slot) the sender of this TLV heard from in the last 4 SRTT.
struct RevPath {
  std::uint64_t heard_slots = 0;   // 0
  std::uint16_t last_ack_seq = 0;  // 8

  bool operator==(const RevPath&) const = default;
};

inline constexpr std::size_t kRevPathBytes = 10;

/// REPATH: new entropy wanted for `slot`, whose generation is still `generation`.
struct RePath {
  std::uint8_t slot = 0;
  std::uint8_t generation = 0;

  bool operator==(const RePath&) const = default;
};

inline constexpr std::size_t kRePathBytes = 2;

struct Extensions {
  std::optional<Piggy> piggy;
  std::optional<RevPath> rev_path;
  std::optional<RePath> re_path;
  std::optional<Cookie> cookie;

  bool operator==(const Extensions&) const = default;
};

/// Bytes an extension block with these members takes, 0 if it has none.
std::size_t extension_bytes(const Extensions& extensions) noexcept;

/// Writers: `out` must hold the packet's fixed bytes (kXxxBytes, for SMALL records
/// kSmallRecordBytes, for the extension block extension_bytes()). They return the bytes up to the
/// end of what they wrote: from the packet's start, for records and extension blocks from their
/// own. Reserved bytes are written as 0, and so is the check field; seal() of check.hpp fills it
/// last. ACK: `words` and kAckCeBitmap are taken from the spans; `ce` is empty or as long as
/// `received`.
inline std::size_t encode(std::span<std::byte> out, const CommonHeader& header) noexcept;
inline std::size_t encode(std::span<std::byte> out, const DataHeader& header) noexcept;
inline std::size_t encode(std::span<std::byte> out, const SmallHeader& header) noexcept;
inline std::size_t encode(std::span<std::byte> out, const SmallRecord& record) noexcept;
std::size_t encode(std::span<std::byte> out, const AckHeader& header,
                   std::span<const std::uint64_t> received,
                   std::span<const std::uint64_t> ce) noexcept;
std::size_t encode(std::span<std::byte> out, const NackHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const ProbeHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const ProbeAckHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const HelloHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const RetryHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const ResetHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const CloseHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const VoidHeader& header) noexcept;
std::size_t encode(std::span<std::byte> out, const AbortHeader& header) noexcept;
std::size_t encode_extensions(std::span<std::byte> out, const Extensions& extensions) noexcept;

/// Readers: `packet` is the whole datagram. Body writers and readers above and below work at the
/// body's own offset 20 of it (encode: `out` is the whole packet as well), records and extension
/// blocks at the start of the span given. false: too short or a field out of its range (PROTOCOL.md
/// 3 names the ranges); nothing is trusted before that. Reserved bits and bytes are ignored.
/// Whether a slot exists and a segment lies in its message is for the core to judge.
inline bool decode(std::span<const std::byte> packet, CommonHeader& header) noexcept;
inline bool decode(std::span<const std::byte> packet, DataHeader& header) noexcept;
inline bool decode(std::span<const std::byte> packet, SmallHeader& header) noexcept;
/// `rest` begins at the record and ends with the datagram; its padded payload is found to be in it.
inline bool decode(std::span<const std::byte> rest, SmallRecord& record) noexcept;
/// Fills the first `words` of `received` and `ce`; `ce` with zeros if there is no CE bitmap.
bool decode(std::span<const std::byte> packet, AckHeader& header,
            std::array<std::uint64_t, kAckWordsMax>& received,
            std::array<std::uint64_t, kAckWordsMax>& ce) noexcept;
bool decode(std::span<const std::byte> packet, NackHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, ProbeHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, ProbeAckHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, HelloHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, RetryHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, ResetHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, CloseHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, VoidHeader& header) noexcept;
bool decode(std::span<const std::byte> packet, AbortHeader& header) noexcept;
/// Reads the extension block at the start of `block`, which ends with the datagram; `bytes` is the
/// block's length. false also for an unknown critical TLV and for one that is there twice.
bool decode_extensions(std::span<const std::byte> block, Extensions& extensions,
                       std::size_t& bytes) noexcept;

/// Offset of the extension block (flag kFlagExtension) or of the payload: end of the fixed header,
/// for HELLO and HELLO_ACK kHelloBytes; not for ACK, see body_bytes(). 0 for an unknown type.
std::size_t fixed_bytes(PacketType type) noexcept;

/// The same for a packet of any type, ACK too. 0: unknown type or too short.
std::size_t body_bytes(std::span<const std::byte> packet, PacketType type) noexcept;

/// log8 code of a byte count: 4-bit exponent e, 4-bit mantissa m, unit 4096 bytes: m for e = 0,
/// else (16 + m) << (e - 1). Rounds down; saturates at 255, just below 2 GiB.
std::uint8_t backlog_code(std::uint64_t bytes) noexcept;
std::uint64_t backlog_bytes(std::uint8_t code) noexcept;

/// One line for logs and test failures; tolerates anything. Allocates.
std::string to_string(std::span<const std::byte> packet);

/// "DATA", "SMALL", ...; "?" for an unknown type.
const char* to_string(PacketType type) noexcept;

}  // namespace srd::wire

#include "srd/wire/packet_inl.hpp"  // IWYU pragma: export
