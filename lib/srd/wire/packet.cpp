// SPDX-License-Identifier: Apache-2.0
// Writers and readers of all packets but the hottest (packet_inl.hpp), and of extension blocks.
#include "srd/wire/packet.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace srd::wire {
namespace {

constexpr std::size_t kTlvHeadBytes = 2;
constexpr unsigned kVersionMax = 15;  // a nibble
constexpr std::uint8_t kWindowLog2Min = 8;
constexpr std::uint8_t kWindowLog2Max = 13;
constexpr std::uint8_t kPathsMax = 64;

std::byte* at(std::span<std::byte> out, std::size_t offset) noexcept {
  return out.data() + offset;
}

const std::byte* at(std::span<const std::byte> in, std::size_t offset) noexcept {
  return in.data() + offset;
}

void put8(std::byte* p, std::uint8_t value) noexcept {
  store_le<std::uint8_t>(p, value);
}

void put16(std::byte* p, std::uint16_t value) noexcept {
  store_le<std::uint16_t>(p, value);
}

void put32(std::byte* p, std::uint32_t value) noexcept {
  store_le<std::uint32_t>(p, value);
}

void put64(std::byte* p, std::uint64_t value) noexcept {
  store_le<std::uint64_t>(p, value);
}

std::uint8_t get8(const std::byte* p) noexcept {
  return load_le<std::uint8_t>(p);
}

std::uint16_t get16(const std::byte* p) noexcept {
  return load_le<std::uint16_t>(p);
}

std::uint32_t get32(const std::byte* p) noexcept {
  return load_le<std::uint32_t>(p);
}

std::uint64_t get64(const std::byte* p) noexcept {
  return load_le<std::uint64_t>(p);
}

template <std::size_t N>
void put_array(std::byte* p, const std::array<std::uint8_t, N>& value) noexcept {
  std::memcpy(p, value.data(), N);
}

template <std::size_t N>
void get_array(const std::byte* p, std::array<std::uint8_t, N>& value) noexcept {
  std::memcpy(value.data(), p, N);
}

void put_words(std::byte* p, std::span<const std::uint64_t> words) noexcept {
  for (std::size_t i = 0; i < words.size(); ++i) put64(p + 8 * i, words[i]);
}

constexpr std::size_t round_up_4(std::size_t bytes) noexcept {
  return (bytes + 3) & ~std::size_t{3};
}

}  // namespace

std::size_t encode(std::span<std::byte> out, const AckHeader& header,
                   std::span<const std::uint64_t> received,
                   std::span<const std::uint64_t> ce) noexcept {
  SRD_DCHECK(received.size() <= kAckWordsMax && (ce.empty() || ce.size() == received.size()));
  SRD_DCHECK(out.size() >= kAckBytes + 8 * (received.size() + ce.size()));
  std::byte* const p = out.data();
  const unsigned flags = header.flags & ~unsigned{kAckCeBitmap};
  put32(p + 20, header.echo_time);
  put32(p + 24, header.rx_time);
  put32(p + 28, header.echo_psn);
  put8(p + 32, header.echo_slot);
  put8(p + 33, header.echo_gen_attempt);
  put8(p + 34, static_cast<std::uint8_t>(ce.empty() ? flags : flags | kAckCeBitmap));
  put8(p + 35, header.pressure);
  put32(p + 36, header.rx_bytes);
  put32(p + 40, header.limit);
  put16(p + 44, static_cast<std::uint16_t>(header.bitmap_base));
  put16(p + 46, header.ce_total);
  put16(p + 48, header.dup_total);
  put16(p + 50, header.ack_seq);
  put16(p + 52, header.rej_total);
  put16(p + 54, header.host_drops);
  put64(p + 56, received.size());  // and seven reserved bytes
  put_words(p + kAckBytes, received);
  put_words(p + kAckBytes + 8 * received.size(), ce);
  return kAckBytes + 8 * (received.size() + ce.size());
}

bool decode(std::span<const std::byte> packet, AckHeader& header,
            std::array<std::uint64_t, kAckWordsMax>& received,
            std::array<std::uint64_t, kAckWordsMax>& ce) noexcept {
  if (packet.size() < kAckBytes) return false;
  const std::byte* const p = packet.data();
  header.echo_time = get32(p + 20);
  header.rx_time = get32(p + 24);
  header.echo_psn = get32(p + 28);
  header.echo_slot = get8(p + 32);
  header.echo_gen_attempt = get8(p + 33);
  header.flags = get8(p + 34);
  header.pressure = get8(p + 35);
  header.rx_bytes = get32(p + 36);
  header.limit = get32(p + 40);
  header.bitmap_base = static_cast<std::int16_t>(get16(p + 44));
  header.ce_total = get16(p + 46);
  header.dup_total = get16(p + 48);
  header.ack_seq = get16(p + 50);
  header.rej_total = get16(p + 52);
  header.host_drops = get16(p + 54);
  header.words = get8(p + 56);
  if (header.words > kAckWordsMax || packet.size() < ack_bytes(header)) return false;
  const std::byte* const ce_words = p + kAckBytes + 8 * std::size_t{header.words};
  const bool has_ce = (header.flags & kAckCeBitmap) != 0;
  for (std::size_t i = 0; i < header.words; ++i) {
    received[i] = get64(p + kAckBytes + 8 * i);
    ce[i] = has_ce ? get64(ce_words + 8 * i) : 0;
  }
  return true;
}

std::size_t encode(std::span<std::byte> out, const NackHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kNackBytes);
  put8(at(out, 20), static_cast<std::uint8_t>(header.code));
  put8(at(out, 21), header.echo_slot);
  put16(at(out, 22), header.echo_gen_attempt);  // and a reserved byte
  put32(at(out, 24), header.retry_after_us);
  put32(at(out, 28), header.msg_id);
  put16(at(out, 32), header.port);
  put16(at(out, 34), header.rej_seq);
  return kNackBytes;
}

bool decode(std::span<const std::byte> packet, NackHeader& header) noexcept {
  if (packet.size() < kNackBytes) return false;
  header.code = static_cast<NackCode>(get8(at(packet, 20)));
  header.echo_slot = get8(at(packet, 21));
  header.echo_gen_attempt = get8(at(packet, 22));
  header.retry_after_us = get32(at(packet, 24));
  header.msg_id = get32(at(packet, 28));
  header.port = get16(at(packet, 32));
  header.rej_seq = get16(at(packet, 34));
  return header.code >= NackCode::receiver_not_ready && header.code <= NackCode::no_port;
}

std::size_t encode(std::span<std::byte> out, const ProbeHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kProbeBytes);
  put32(at(out, 20), header.probe_id);
  put64(at(out, 24), header.opaque);
  put16(at(out, 32), header.flags);
  put16(at(out, 34), header.rej_known);
  put32(at(out, 36), header.backlog);  // and three reserved bytes
  return kProbeBytes;
}

bool decode(std::span<const std::byte> packet, ProbeHeader& header) noexcept {
  if (packet.size() < kProbeBytes) return false;
  header.probe_id = get32(at(packet, 20));
  header.opaque = get64(at(packet, 24));
  header.flags = get16(at(packet, 32));
  header.rej_known = get16(at(packet, 34));
  header.backlog = get8(at(packet, 36));
  return true;
}

std::size_t encode(std::span<std::byte> out, const ProbeAckHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kProbeAckBytes);
  put32(at(out, 20), header.probe_id);
  put64(at(out, 24), header.opaque);
  put32(at(out, 32), header.echo_time);
  put32(at(out, 36), header.rx_time);
  put16(at(out, 40), header.rx_queue);
  put8(at(out, 42), header.ce);
  put8(at(out, 43), header.echo_slot);
  put32(at(out, 44), header.echo_gen_attempt);  // and three reserved bytes
  return kProbeAckBytes;
}

bool decode(std::span<const std::byte> packet, ProbeAckHeader& header) noexcept {
  if (packet.size() < kProbeAckBytes) return false;
  header.probe_id = get32(at(packet, 20));
  header.opaque = get64(at(packet, 24));
  header.echo_time = get32(at(packet, 32));
  header.rx_time = get32(at(packet, 36));
  header.rx_queue = get16(at(packet, 40));
  header.ce = get8(at(packet, 42));
  header.echo_slot = get8(at(packet, 43));
  header.echo_gen_attempt = get8(at(packet, 44));
  return header.ce <= 1;
}

std::size_t encode(std::span<std::byte> out, const HelloHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kHelloBytes);
  put32(at(out, 20), header.src_ctx);
  put8(at(out, 24), header.version_min);
  put8(at(out, 25), header.version_max);
  put8(at(out, 26), header.traffic_class);
  put8(at(out, 27), static_cast<std::uint8_t>(header.reject));
  put32(at(out, 28), header.ctx_serial);
  put64(at(out, 32), header.features);
  put_array(at(out, 40), header.endpoint_id);
  put64(at(out, 56), header.incarnation);
  put64(at(out, 64), header.seen_incarnation);
  put_array(at(out, 72), header.nonce);
  put_array(at(out, 88), header.echo_nonce);
  put32(at(out, 104), header.initial_psn);
  put32(at(out, 108), header.prev_ctx);
  put8(at(out, 112), static_cast<std::uint8_t>(header.prev_state));
  put8(at(out, 113), header.paths);
  put8(at(out, 114), header.planes);
  put8(at(out, 115), header.window_log2);
  put32(at(out, 116), header.datagram_bytes);
  put32(at(out, 120), header.max_message_bytes);
  put16(at(out, 124), header.partial_limit);
  put16(at(out, 126), header.ordered_channels);
  put16(at(out, 128), header.max_ack_delay_us);
  put16(at(out, 130), header.reads_ce);  // and a reserved byte
  put32(at(out, 132), header.rx_buffer_bytes);
  put32(at(out, 136), header.initial_limit);
  put32(at(out, 140), header.echo_time);
  put32(at(out, 144), header.hold_time);
  std::memset(at(out, 148), 0, kHelloBytes - 148);
  return kHelloBytes;
}

bool decode(std::span<const std::byte> packet, HelloHeader& header) noexcept {
  if (packet.size() < kHelloBytes) return false;
  header.src_ctx = get32(at(packet, 20));
  header.version_min = get8(at(packet, 24));
  header.version_max = get8(at(packet, 25));
  header.traffic_class = get8(at(packet, 26));
  header.reject = static_cast<RejectCode>(get8(at(packet, 27)));
  header.ctx_serial = get32(at(packet, 28));
  header.features = get64(at(packet, 32));
  get_array(at(packet, 40), header.endpoint_id);
  header.incarnation = get64(at(packet, 56));
  header.seen_incarnation = get64(at(packet, 64));
  get_array(at(packet, 72), header.nonce);
  get_array(at(packet, 88), header.echo_nonce);
  header.initial_psn = get32(at(packet, 104));
  header.prev_ctx = get32(at(packet, 108));
  header.prev_state = static_cast<PrevState>(get8(at(packet, 112)));
  header.paths = get8(at(packet, 113));
  header.planes = get8(at(packet, 114));
  header.window_log2 = get8(at(packet, 115));
  header.datagram_bytes = get32(at(packet, 116));
  header.max_message_bytes = get32(at(packet, 120));
  header.partial_limit = get16(at(packet, 124));
  header.ordered_channels = get16(at(packet, 126));
  header.max_ack_delay_us = get16(at(packet, 128));
  header.reads_ce = get8(at(packet, 130));
  header.rx_buffer_bytes = get32(at(packet, 132));
  header.initial_limit = get32(at(packet, 136));
  header.echo_time = get32(at(packet, 140));
  header.hold_time = get32(at(packet, 144));
  if (header.version_min > header.version_max || header.version_max > kVersionMax) return false;
  if (header.reject > RejectCode::stale || header.prev_state > PrevState::unknown) return false;
  if (header.reads_ce > 1) return false;
  // A refusal keeps no state and need not describe its sender.
  return header.reject != RejectCode::accepted ||
         (header.incarnation != 0 && header.paths >= 1 && header.paths <= kPathsMax &&
          header.window_log2 >= kWindowLog2Min && header.window_log2 <= kWindowLog2Max);
}

std::size_t encode(std::span<std::byte> out, const RetryHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kRetryBytes);
  put_array(at(out, 20), header.echo_nonce);
  put_array(at(out, 36), header.cookie);
  put32(at(out, 60), 0);
  return kRetryBytes;
}

bool decode(std::span<const std::byte> packet, RetryHeader& header) noexcept {
  if (packet.size() < kRetryBytes) return false;
  get_array(at(packet, 20), header.echo_nonce);
  get_array(at(packet, 36), header.cookie);
  return true;
}

std::size_t encode(std::span<std::byte> out, const ResetHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kResetBytes);
  put32(at(out, 20), header.echo_dst_ctx);
  put64(at(out, 24), header.incarnation);
  return kResetBytes;
}

bool decode(std::span<const std::byte> packet, ResetHeader& header) noexcept {
  if (packet.size() < kResetBytes) return false;
  header.echo_dst_ctx = get32(at(packet, 20));
  header.incarnation = get64(at(packet, 24));
  return true;
}

std::size_t encode(std::span<std::byte> out, const CloseHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kCloseBytes);
  put32(at(out, 20), header.reason);
  put32(at(out, 24), header.next_psn);
  return kCloseBytes;
}

bool decode(std::span<const std::byte> packet, CloseHeader& header) noexcept {
  if (packet.size() < kCloseBytes) return false;
  header.reason = get32(at(packet, 20));
  header.next_psn = get32(at(packet, 24));
  return true;
}

std::size_t encode(std::span<std::byte> out, const VoidHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kVoidBytes);
  put32(at(out, 20), header.count);  // and two reserved bytes
  put32(at(out, 24), header.bytes_each);
  return kVoidBytes;
}

bool decode(std::span<const std::byte> packet, VoidHeader& header) noexcept {
  if (packet.size() < kVoidBytes) return false;
  header.count = get16(at(packet, 20));
  header.bytes_each = get32(at(packet, 24));
  return header.count >= 1 && header.count <= kVoidCountMax;
}

std::size_t encode(std::span<std::byte> out, const AbortHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kAbortBytes);
  put32(at(out, 20), header.msg_id);
  put32(at(out, 24), header.chan_seq);
  put16(at(out, 28), header.rej_known);
  put16(at(out, 30), header.requeue);  // and a reserved byte
  return kAbortBytes;
}

bool decode(std::span<const std::byte> packet, AbortHeader& header) noexcept {
  if (packet.size() < kAbortBytes) return false;
  header.msg_id = get32(at(packet, 20));
  header.chan_seq = get32(at(packet, 24));
  header.rej_known = get16(at(packet, 28));
  header.requeue = get8(at(packet, 30));
  return header.requeue <= 1;
}

std::size_t extension_bytes(const Extensions& extensions) noexcept {
  std::size_t bytes = 0;
  if (extensions.piggy) bytes += kTlvHeadBytes + kPiggyBytes;
  if (extensions.rev_path) bytes += kTlvHeadBytes + kRevPathBytes;
  if (extensions.re_path) bytes += kTlvHeadBytes + kRePathBytes;
  if (extensions.cookie) bytes += kTlvHeadBytes + sizeof(Cookie);
  return bytes == 0 ? 0 : round_up_4(kExtensionHeadBytes + bytes);
}

std::size_t encode_extensions(std::span<std::byte> out, const Extensions& extensions) noexcept {
  const std::size_t total = extension_bytes(extensions);
  if (total == 0) return 0;
  SRD_DCHECK(out.size() >= total);
  std::byte* p = out.data();
  put16(p, static_cast<std::uint16_t>(total));
  put16(p + 2, 0);
  p += kExtensionHeadBytes;
  const auto begin_tlv = [&p](TlvType type, std::size_t bytes) noexcept {
    put8(p, static_cast<std::uint8_t>(type));
    put8(p + 1, static_cast<std::uint8_t>(bytes));
    std::byte* const value = p + kTlvHeadBytes;
    p = value + bytes;
    return value;
  };
  if (extensions.piggy) {
    const Piggy& piggy = *extensions.piggy;
    std::byte* const value = begin_tlv(TlvType::piggy, kPiggyBytes);
    put32(value, piggy.cumulative);
    put32(value + 4, piggy.echo_time);
    put32(value + 8, piggy.hold_time);
    put32(value + 12, piggy.limit);
    put16(value + 16, piggy.ack_seq);
    put16(value + 18, piggy.rej_total);
    put8(value + 20, piggy.echo_slot);
    put8(value + 21, piggy.echo_gen_attempt);
    put16(value + 22, piggy.pressure);  // and a reserved byte
  }
  if (extensions.rev_path) {
    std::byte* const value = begin_tlv(TlvType::rev_path, kRevPathBytes);
    put64(value, extensions.rev_path->heard_slots);
    put16(value + 8, extensions.rev_path->last_ack_seq);
  }
  if (extensions.re_path) {
    std::byte* const value = begin_tlv(TlvType::re_path, kRePathBytes);
    put8(value, extensions.re_path->slot);
    put8(value + 1, extensions.re_path->generation);
  }
  if (extensions.cookie) {
    put_array(begin_tlv(TlvType::cookie, sizeof(Cookie)), *extensions.cookie);
  }
  std::fill(p, out.data() + total, std::byte{0});
  return total;
}

namespace {

// Takes over the value of a known TLV. false: wrong length, out of range, or there already.
bool read_tlv(TlvType type, std::span<const std::byte> value, Extensions& extensions) noexcept {
  const std::byte* const p = value.data();
  switch (type) {
    case TlvType::piggy: {
      if (value.size() != kPiggyBytes || extensions.piggy) return false;
      Piggy& piggy = extensions.piggy.emplace();
      piggy.cumulative = get32(p);
      piggy.echo_time = get32(p + 4);
      piggy.hold_time = get32(p + 8);
      piggy.limit = get32(p + 12);
      piggy.ack_seq = get16(p + 16);
      piggy.rej_total = get16(p + 18);
      piggy.echo_slot = get8(p + 20);
      piggy.echo_gen_attempt = get8(p + 21);
      piggy.pressure = get8(p + 22);
      return true;
    }
    case TlvType::rev_path:
      if (value.size() != kRevPathBytes || extensions.rev_path) return false;
      extensions.rev_path = RevPath{get64(p), get16(p + 8)};
      return true;
    case TlvType::re_path:
      if (value.size() != kRePathBytes || extensions.re_path) return false;
      extensions.re_path = RePath{get8(p), get8(p + 1)};
      return extensions.re_path->generation < 16;
    case TlvType::cookie:
      if (value.size() != sizeof(Cookie) || extensions.cookie) return false;
      get_array(p, extensions.cookie.emplace());
      return true;
    default:
      return false;
  }
}

constexpr bool is_known(TlvType type) noexcept {
  return type == TlvType::piggy || type == TlvType::rev_path || type == TlvType::re_path ||
         type == TlvType::cookie;
}

}  // namespace

bool decode_extensions(std::span<const std::byte> block, Extensions& extensions,
                       std::size_t& bytes) noexcept {
  extensions = {};
  if (block.size() < kExtensionHeadBytes) return false;
  bytes = get16(block.data());
  if (bytes < kExtensionHeadBytes || bytes % 4 != 0 || bytes > block.size()) return false;
  std::span<const std::byte> rest = block.first(bytes).subspan(kExtensionHeadBytes);
  while (!rest.empty()) {
    const std::uint8_t code = get8(rest.data());
    if (code == static_cast<std::uint8_t>(TlvType::pad)) return true;
    if (rest.size() < kTlvHeadBytes) return false;
    const std::size_t value_bytes = get8(rest.data() + 1);
    rest = rest.subspan(kTlvHeadBytes);
    if (value_bytes > rest.size()) return false;
    const auto type = static_cast<TlvType>(code & ~kTlvCritical);
    if (is_known(type)) {
      if (!read_tlv(type, rest.first(value_bytes), extensions)) return false;
    } else if ((code & kTlvCritical) != 0) {
      return false;
    }
    rest = rest.subspan(value_bytes);
  }
  return true;
}

std::size_t fixed_bytes(PacketType type) noexcept {
  switch (type) {
    case PacketType::data:
      return kDataBytes;
    case PacketType::small:
      return kSmallBytes;
    case PacketType::ack:
      return kAckBytes;
    case PacketType::nack:
      return kNackBytes;
    case PacketType::hello:
    case PacketType::hello_ack:
      return kHelloBytes;
    case PacketType::retry:
      return kRetryBytes;
    case PacketType::probe:
      return kProbeBytes;
    case PacketType::probe_ack:
      return kProbeAckBytes;
    case PacketType::reset:
      return kResetBytes;
    case PacketType::close:
      return kCloseBytes;
    case PacketType::void_psns:
      return kVoidBytes;
    case PacketType::abort:
      return kAbortBytes;
  }
  return 0;
}

std::size_t body_bytes(std::span<const std::byte> packet, PacketType type) noexcept {
  std::size_t bytes = fixed_bytes(type);
  if (packet.size() < bytes) return 0;
  if (type == PacketType::ack) {
    AckHeader header;
    header.flags = get8(at(packet, 34));
    header.words = get8(at(packet, 56));
    bytes = ack_bytes(header);
  }
  return packet.size() < bytes ? 0 : bytes;
}

std::uint8_t backlog_code(std::uint64_t bytes) noexcept {
  const std::uint64_t units = bytes >> 12;
  if (units < 16) return static_cast<std::uint8_t>(units);
  const auto exponent = static_cast<unsigned>(std::bit_width(units)) - 4;
  if (exponent > 15) return 255;
  return static_cast<std::uint8_t>(exponent << 4 | (units >> (exponent - 1) & 15));
}

std::uint64_t backlog_bytes(std::uint8_t code) noexcept {
  const unsigned exponent = code >> 4;
  const std::uint64_t mantissa = code & 15;
  return (exponent == 0 ? mantissa : (16 + mantissa) << (exponent - 1)) << 12;
}

}  // namespace srd::wire
