// SPDX-License-Identifier: Apache-2.0
// Writers and readers that run for every datagram or message; included by packet.hpp only. A
// handful of plain moves each on little-endian hosts.
#pragma once

#include "srd/wire/packet.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace srd::wire {

// Fields of the headers lie on the wire as in the structures: no padding anywhere.
static_assert(sizeof(DataHeader) == kDataBytes - kCommonBytes);
static_assert(sizeof(SmallHeader) == kSmallBytes - kCommonBytes);
static_assert(sizeof(SmallRecord) == kSmallRecordBytes);
static_assert(sizeof(AckHeader) == kAckBytes - kCommonBytes);
static_assert(sizeof(Piggy) == kPiggyBytes);
static_assert(sizeof(CloseHeader) == kCloseBytes - kCommonBytes);
static_assert(sizeof(VoidHeader) == kVoidBytes - kCommonBytes);

inline std::size_t encode(std::span<std::byte> out, const CommonHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kCommonBytes);
  SRD_DCHECK(header.generation < 16 && header.attempt < 16);
  std::byte* const p = out.data();
  store_le<std::uint8_t>(
      p, static_cast<std::uint8_t>(header.version << 4 | static_cast<std::uint8_t>(header.type)));
  store_le<std::uint8_t>(p + 1, header.flags);
  store_le<std::uint8_t>(p + 2, header.slot);
  store_le<std::uint8_t>(p + 3,
                         static_cast<std::uint8_t>(header.generation << 4 | (header.attempt & 15)));
  store_le<std::uint32_t>(p + 4, header.dst_ctx);
  store_le<std::uint32_t>(p + 8, header.psn);
  store_le<std::uint32_t>(p + 12, header.tx_time);
  store_le<std::uint32_t>(p + kCheckOffset, 0);
  return kCommonBytes;
}

inline std::size_t encode(std::span<std::byte> out, const DataHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kDataBytes);
  std::byte* const p = out.data();
  store_le<std::uint32_t>(p + 20, header.msg_id);
  store_le<std::uint32_t>(p + 24, header.msg_len);
  store_le<std::uint32_t>(p + 28, header.msg_off);
  store_le<std::uint32_t>(p + 32, header.chan_seq);
  store_le<std::uint16_t>(p + 36, header.port);
  store_le<std::uint8_t>(p + 38, header.op);
  store_le<std::uint8_t>(p + 39, header.backlog);
  return kDataBytes;
}

inline std::size_t encode(std::span<std::byte> out, const SmallHeader& header) noexcept {
  SRD_DCHECK(out.size() >= kSmallBytes);
  std::byte* const p = out.data();
  store_le<std::uint32_t>(p + 20, header.msg_id);
  store_le<std::uint8_t>(p + 24, header.count);
  store_le<std::uint8_t>(p + 25, header.backlog);
  store_le<std::uint16_t>(p + 26, header.bytes);
  return kSmallBytes;
}

inline std::size_t encode(std::span<std::byte> out, const SmallRecord& record) noexcept {
  SRD_DCHECK(out.size() >= kSmallRecordBytes);
  std::byte* const p = out.data();
  store_le<std::uint32_t>(p, record.chan_seq);
  store_le<std::uint16_t>(p + 4, record.port);
  store_le<std::uint16_t>(p + 6, record.bytes);
  store_le<std::uint32_t>(p + 8, record.op);  // and three zero bytes
  return kSmallRecordBytes;
}

inline bool decode(std::span<const std::byte> packet, CommonHeader& header) noexcept {
  if (packet.size() < kCommonBytes) return false;
  const std::byte* const p = packet.data();
  const auto version_type = load_le<std::uint8_t>(p);
  const auto type = static_cast<std::uint8_t>(version_type & 15);
  header.version = static_cast<std::uint8_t>(version_type >> 4);
  header.type = static_cast<PacketType>(type);
  header.flags = load_le<std::uint8_t>(p + 1);
  header.slot = load_le<std::uint8_t>(p + 2);
  const auto generation_attempt = load_le<std::uint8_t>(p + 3);
  header.generation = static_cast<std::uint8_t>(generation_attempt >> 4);
  header.attempt = static_cast<std::uint8_t>(generation_attempt & 15);
  header.dst_ctx = load_le<std::uint32_t>(p + 4);
  header.psn = load_le<std::uint32_t>(p + 8);
  header.tx_time = load_le<std::uint32_t>(p + 12);
  header.check = load_le<std::uint32_t>(p + kCheckOffset);
  return header.version == kVersion && type >= static_cast<std::uint8_t>(PacketType::data) &&
         type <= static_cast<std::uint8_t>(PacketType::abort);
}

inline bool decode(std::span<const std::byte> packet, DataHeader& header) noexcept {
  if (packet.size() < kDataBytes) return false;
  const std::byte* const p = packet.data();
  header.msg_id = load_le<std::uint32_t>(p + 20);
  header.msg_len = load_le<std::uint32_t>(p + 24);
  header.msg_off = load_le<std::uint32_t>(p + 28);
  header.chan_seq = load_le<std::uint32_t>(p + 32);
  header.port = load_le<std::uint16_t>(p + 36);
  header.op = load_le<std::uint8_t>(p + 38);
  header.backlog = load_le<std::uint8_t>(p + 39);
  return header.op == static_cast<std::uint8_t>(Op::send) &&
         (header.msg_off < header.msg_len || (header.msg_off | header.msg_len) == 0);
}

inline bool decode(std::span<const std::byte> packet, SmallHeader& header) noexcept {
  if (packet.size() < kSmallBytes) return false;
  const std::byte* const p = packet.data();
  header.msg_id = load_le<std::uint32_t>(p + 20);
  header.count = load_le<std::uint8_t>(p + 24);
  header.backlog = load_le<std::uint8_t>(p + 25);
  header.bytes = load_le<std::uint16_t>(p + 26);
  return header.count >= 1 && header.count <= kSmallCountMax;
}

inline bool decode(std::span<const std::byte> rest, SmallRecord& record) noexcept {
  if (rest.size() < kSmallRecordBytes) return false;
  const std::byte* const p = rest.data();
  record.chan_seq = load_le<std::uint32_t>(p);
  record.port = load_le<std::uint16_t>(p + 4);
  record.bytes = load_le<std::uint16_t>(p + 6);
  record.op = load_le<std::uint8_t>(p + 8);
  return record.op == static_cast<std::uint8_t>(Op::send) &&
         small_record_stride(record.bytes) <= rest.size();
}

}  // namespace srd::wire
