// SPDX-License-Identifier: Apache-2.0
// Packets as text, for logs and test failures.
#include <array>
#include <charconv>
#include <concepts>
#include <utility>

#include "srd/wire/packet.hpp"

namespace srd::wire {
namespace {

// Grows one line. No stdio here: the wire layer stays free of it.
class Line {
 public:
  Line& operator<<(const char* text) {
    text_ += text;
    return *this;
  }

  Line& operator<<(std::integral auto number) {
    append(number, 10, 0);
    return *this;
  }

  /// `digits` hexadecimal digits or more.
  Line& hex(std::uint64_t number, std::size_t digits = 1) {
    append(number, 16, digits);
    return *this;
  }

  std::string take() { return std::move(text_); }

 private:
  void append(std::integral auto number, int base, std::size_t digits) {
    std::array<char, 24> buffer;
    const char* const end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, base).ptr;
    const auto length = static_cast<std::size_t>(end - buffer.data());
    if (length < digits) text_.append(digits - length, '0');
    text_.append(buffer.data(), length);
  }

  std::string text_;
};

void append_flags(Line& line, std::uint8_t flags) {
  constexpr std::array<const char*, 8> kNames = {"AR",  "FIRST", "LAST", "TLP",
                                                 "EXT", "FULL",  "AEAD", "0x80"};
  const char* separator = " ";
  for (std::size_t bit = 0; bit < kNames.size(); ++bit) {
    if ((flags >> bit & 1) == 0) continue;
    line << separator << kNames[bit];
    separator = "|";
  }
}

// Each append_x() below writes the fields of a body and returns where it ends; 0 if it is
// malformed.

std::size_t append_ack(Line& line, std::span<const std::byte> packet) {
  AckHeader h;
  std::array<std::uint64_t, kAckWordsMax> received, ce;
  if (!decode(packet, h, received, ce)) return 0;
  line << " seq " << h.ack_seq << " echo " << h.echo_psn << " @" << h.echo_slot << "/";
  line.hex(h.echo_gen_attempt, 2) << " limit " << h.limit << " rej " << h.rej_total << " pressure "
                                  << h.pressure << " flags ";
  line.hex(h.flags) << " base " << h.bitmap_base;
  for (std::size_t i = 0; i < h.words; ++i) (line << " ").hex(received[i], 16);
  if ((h.flags & kAckCeBitmap) != 0) {
    line << " ce";
    for (std::size_t i = 0; i < h.words; ++i) (line << " ").hex(ce[i], 16);
  }
  return ack_bytes(h);
}

std::size_t append_nack(Line& line, std::span<const std::byte> packet) {
  NackHeader h;
  if (!decode(packet, h)) return 0;
  line << " code " << static_cast<unsigned>(h.code) << " rej " << h.rej_seq << " msg " << h.msg_id
       << " port " << h.port << " retry " << h.retry_after_us << " us";
  return kNackBytes;
}

std::size_t append_hello(Line& line, std::span<const std::byte> packet) {
  HelloHeader h;
  if (!decode(packet, h)) return 0;
  (line << " src ").hex(h.src_ctx, 8)
      << " serial " << h.ctx_serial << " versions " << h.version_min << "-" << h.version_max
      << " reject " << static_cast<unsigned>(h.reject) << " incarnation ";
  line.hex(h.incarnation, 16) << " seen ";
  line.hex(h.seen_incarnation, 16) << " prev ";
  line.hex(h.prev_ctx, 8) << "/" << static_cast<unsigned>(h.prev_state) << " first psn "
                          << h.initial_psn << " datagram " << h.datagram_bytes << " window 2^"
                          << h.window_log2 << " paths " << h.paths << " limit " << h.initial_limit;
  return kHelloBytes;
}

std::size_t append_body(Line& line, std::span<const std::byte> packet, PacketType type) {
  switch (type) {
    case PacketType::data: {
      DataHeader h;
      if (!decode(packet, h)) return 0;
      line << " msg " << h.msg_id << " off " << h.msg_off << "/" << h.msg_len << " port " << h.port
           << " seq " << h.chan_seq;
      return kDataBytes;
    }
    case PacketType::small: {
      SmallHeader h;
      if (!decode(packet, h)) return 0;
      line << " msg " << h.msg_id << " count " << h.count << " bytes " << h.bytes;
      return kSmallBytes;
    }
    case PacketType::ack:
      return append_ack(line, packet);
    case PacketType::nack:
      return append_nack(line, packet);
    case PacketType::hello:
    case PacketType::hello_ack:
      return append_hello(line, packet);
    case PacketType::retry: {
      RetryHeader h;
      return decode(packet, h) ? kRetryBytes : 0;
    }
    case PacketType::probe: {
      ProbeHeader h;
      if (!decode(packet, h)) return 0;
      (line << " id " << h.probe_id << " flags ").hex(h.flags) << " rej known " << h.rej_known;
      return kProbeBytes;
    }
    case PacketType::probe_ack: {
      ProbeAckHeader h;
      if (!decode(packet, h)) return 0;
      (line << " id " << h.probe_id << " echo @" << h.echo_slot << "/").hex(h.echo_gen_attempt, 2)
          << " ce " << h.ce;
      return kProbeAckBytes;
    }
    case PacketType::reset: {
      ResetHeader h;
      if (!decode(packet, h)) return 0;
      (line << " of ctx ").hex(h.echo_dst_ctx, 8) << " incarnation ";
      line.hex(h.incarnation, 16);
      return kResetBytes;
    }
    case PacketType::close: {
      CloseHeader h;
      if (!decode(packet, h)) return 0;
      line << " reason " << h.reason << " next " << h.next_psn;
      return kCloseBytes;
    }
    case PacketType::void_psns: {
      VoidHeader h;
      if (!decode(packet, h)) return 0;
      line << " count " << h.count << " bytes each " << h.bytes_each;
      return kVoidBytes;
    }
    case PacketType::abort: {
      AbortHeader h;
      if (!decode(packet, h)) return 0;
      line << " msg " << h.msg_id << " seq " << h.chan_seq
           << (h.requeue != 0 ? " requeue" : " final") << " rej known " << h.rej_known;
      return kAbortBytes;
    }
  }
  return 0;
}

// Appends the extension block at `offset` and returns where it ends; 0 if it is malformed.
std::size_t append_extensions(Line& line, std::span<const std::byte> packet, std::size_t offset) {
  Extensions extensions;
  std::size_t bytes = 0;
  if (!decode_extensions(packet.subspan(offset), extensions, bytes)) return 0;
  if (extensions.piggy) {
    line << " PIGGY(cum " << extensions.piggy->cumulative << " seq " << extensions.piggy->ack_seq
         << " limit " << extensions.piggy->limit << " rej " << extensions.piggy->rej_total << ")";
  }
  if (extensions.rev_path) {
    (line << " REVPATH(").hex(extensions.rev_path->heard_slots, 16)
        << " seq " << extensions.rev_path->last_ack_seq << ")";
  }
  if (extensions.re_path) {
    line << " REPATH(" << extensions.re_path->slot << "/" << extensions.re_path->generation << ")";
  }
  if (extensions.cookie) line << " COOKIE";
  return offset + bytes;
}

}  // namespace

std::string to_string(std::span<const std::byte> packet) {
  Line line;
  CommonHeader common;
  if (!decode(packet, common)) {
    line << "not a packet (" << packet.size() << " bytes";
    for (std::size_t i = 0; i < packet.size() && i < 4; ++i) {
      (line << " ").hex(std::to_integer<std::uint8_t>(packet[i]), 2);
    }
    line << ")";
    return line.take();
  }
  line << to_string(common.type) << " @" << common.slot << "/";
  line.hex(common.generation) << ".";
  line.hex(common.attempt) << " ctx ";
  line.hex(common.dst_ctx, 8) << " psn " << common.psn << " t " << common.tx_time;
  append_flags(line, common.flags);
  std::size_t end = append_body(line, packet, common.type);
  if (end != 0 && (common.flags & kFlagExtension) != 0) end = append_extensions(line, packet, end);
  if (end == 0) {
    line << " MALFORMED";
  } else {
    line << " +" << packet.size() - end;
  }
  return line.take();
}

const char* to_string(PacketType type) noexcept {
  switch (type) {
    case PacketType::data:
      return "DATA";
    case PacketType::small:
      return "SMALL";
    case PacketType::ack:
      return "ACK";
    case PacketType::nack:
      return "NACK";
    case PacketType::hello:
      return "HELLO";
    case PacketType::hello_ack:
      return "HELLO_ACK";
    case PacketType::retry:
      return "RETRY";
    case PacketType::probe:
      return "PROBE";
    case PacketType::probe_ack:
      return "PROBE_ACK";
    case PacketType::reset:
      return "RESET";
    case PacketType::close:
      return "CLOSE";
    case PacketType::void_psns:
      return "VOID";
    case PacketType::abort:
      return "ABORT";
  }
  return "?";
}

}  // namespace srd::wire
