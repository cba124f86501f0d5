// SPDX-License-Identifier: Apache-2.0
#include "support/packet_roundtrip.hpp"

#include <algorithm>
#include <array>

#include "srd/wire/packet.hpp"

#include "base/bytes.hpp"

namespace srd::test {
namespace {

using namespace wire;

using Bytes = std::vector<std::byte>;

// Each returns the offset after the body in `packet`, and has appended as many bytes to `out`;
// 0 if the body is malformed.
template <class Header>
std::size_t copy_body(std::span<const std::byte> packet, Bytes& out) {
  Header header;
  if (!decode(packet, header)) return 0;
  CommonHeader common;
  decode(packet, common);
  out.resize(fixed_bytes(common.type));
  return encode(out, header);
}

std::size_t copy_ack(std::span<const std::byte> packet, Bytes& out) {
  AckHeader header;
  std::array<std::uint64_t, kAckWordsMax> received, ce;
  if (!decode(packet, header, received, ce)) return 0;
  out.resize(ack_bytes(header));
  const bool has_ce = (header.flags & kAckCeBitmap) != 0;
  return encode(out, header, std::span(received).first(header.words),
                std::span(ce).first(has_ce ? header.words : 0U));
}

std::size_t copy_any_body(std::span<const std::byte> packet, PacketType type, Bytes& out) {
  switch (type) {
    case PacketType::data:
      return copy_body<DataHeader>(packet, out);
    case PacketType::small:
      return copy_body<SmallHeader>(packet, out);
    case PacketType::ack:
      return copy_ack(packet, out);
    case PacketType::nack:
      return copy_body<NackHeader>(packet, out);
    case PacketType::hello:
    case PacketType::hello_ack:
      return copy_body<HelloHeader>(packet, out);
    case PacketType::retry:
      return copy_body<RetryHeader>(packet, out);
    case PacketType::probe:
      return copy_body<ProbeHeader>(packet, out);
    case PacketType::probe_ack:
      return copy_body<ProbeAckHeader>(packet, out);
    case PacketType::reset:
      return copy_body<ResetHeader>(packet, out);
    case PacketType::close:
      return copy_body<CloseHeader>(packet, out);
    case PacketType::void_psns:
      return copy_body<VoidHeader>(packet, out);
    case PacketType::abort:
      return copy_body<AbortHeader>(packet, out);
  }
  return 0;
}

// The records of SMALL; false if one is malformed.
bool copy_records(std::span<const std::byte> rest, std::size_t count, Bytes& out) {
  for (std::size_t i = 0; i < count; ++i) {
    SmallRecord record;
    if (!decode(rest, record)) return false;
    const std::size_t begin = out.size();
    out.resize(begin + small_record_stride(record.bytes));
    encode(std::span(out).subspan(begin), record);
    std::copy_n(rest.data() + kSmallRecordBytes, record.bytes,
                out.data() + begin + kSmallRecordBytes);
    rest = rest.subspan(std::min(rest.size(), small_record_stride(record.bytes)));
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::byte>> reencode(std::span<const std::byte> packet) {
  CommonHeader common;
  if (!decode(packet, common)) return std::nullopt;
  Bytes out;
  std::size_t end = copy_any_body(packet, common.type, out);
  if (end == 0) return std::nullopt;
  if ((common.flags & kFlagExtension) != 0) {
    Extensions extensions;
    std::size_t bytes = 0;
    if (!decode_extensions(packet.subspan(end), extensions, bytes)) return std::nullopt;
    out.resize(end + extension_bytes(extensions));
    encode_extensions(std::span(out).subspan(end), extensions);
    end += bytes;
    if (extension_bytes(extensions) == 0)
      common.flags &= static_cast<std::uint8_t>(~kFlagExtension);
  }
  encode(out, common);
  store_le<std::uint32_t>(out.data() + kCheckOffset, common.check);
  if (common.type == PacketType::small) {
    SmallHeader small;
    decode(packet, small);
    if (!copy_records(packet.subspan(end), small.count, out)) return std::nullopt;
  } else {
    out.insert(out.end(), packet.begin() + static_cast<std::ptrdiff_t>(end), packet.end());
  }
  return out;
}

}  // namespace srd::test
