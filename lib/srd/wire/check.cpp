// SPDX-License-Identifier: Apache-2.0
#include "srd/wire/check.hpp"

#include <algorithm>
#include <array>

#include "srd/wire/packet.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "base/siphash.hpp"

namespace srd::wire {
namespace {

constexpr std::size_t kCheckEnd = kCheckOffset + sizeof(std::uint32_t);

bool covers_payload(const std::byte* packet) noexcept {
  const auto type = static_cast<PacketType>(load_le<std::uint8_t>(packet) & 15);
  const auto flags = load_le<std::uint8_t>(packet + 1);
  return (flags & kFlagFullCheck) != 0 || type != PacketType::data;
}

// Without the payload its length is covered all the same: a truncated segment must not pass.
std::uint32_t with_length(std::uint32_t crc, std::size_t packet_bytes) noexcept {
  std::array<std::byte, 4> length;
  store_le<std::uint32_t>(length.data(), static_cast<std::uint32_t>(packet_bytes));
  return crc32c(crc, length);
}

// CRC of `covered` with its check field taken as zero.
std::uint32_t crc_without_check(std::span<const std::byte> covered, std::uint32_t seed) noexcept {
  // One word more than up to the check, where there is one: the CRC works in words of 8 bytes.
  std::array<std::byte, kCheckEnd + 4> head;
  const std::size_t head_bytes = covered.size() >= head.size() ? head.size() : kCheckEnd;
  std::copy_n(covered.data(), head_bytes, head.data());
  store_le<std::uint32_t>(head.data() + kCheckOffset, 0);
  const std::uint32_t crc = crc32c(seed, std::span(head).first(head_bytes));
  return crc32c(crc, covered.subspan(head_bytes));
}

}  // namespace

void seal(std::span<std::byte> header, std::span<const Segment> payload,
          std::uint32_t seed) noexcept {
  SRD_DCHECK(header.size() >= kCommonBytes);
  store_le<std::uint32_t>(header.data() + kCheckOffset, 0);
  std::uint32_t crc = crc32c(seed, header);
  if (covers_payload(header.data())) {
    for (const Segment& segment : payload) {
      crc = crc32c(crc, std::span(segment.data, segment.bytes));
    }
  } else {
    std::size_t packet_bytes = header.size();
    for (const Segment& segment : payload) packet_bytes += segment.bytes;
    crc = with_length(crc, packet_bytes);
  }
  store_le<std::uint32_t>(header.data() + kCheckOffset, crc);
}

bool verify(std::span<const std::byte> packet, std::size_t header_bytes,
            std::uint32_t seed) noexcept {
  if (packet.size() < kCommonBytes || packet.size() < header_bytes) return false;
  SRD_DCHECK(header_bytes >= kCommonBytes);
  const bool whole = covers_payload(packet.data());
  std::uint32_t crc = crc_without_check(packet.first(whole ? packet.size() : header_bytes), seed);
  if (!whole) crc = with_length(crc, packet.size());
  return load_le<std::uint32_t>(packet.data() + kCheckOffset) == crc;
}

std::uint32_t derive_seed(const SeedSide& sender, const SeedSide& receiver) noexcept {
  std::array<std::byte, 32> input;
  std::copy_n(std::as_bytes(receiver.nonce).data(), 16, input.data());
  store_le<std::uint64_t>(input.data() + 16, sender.incarnation);
  store_le<std::uint64_t>(input.data() + 24, receiver.incarnation);
  return static_cast<std::uint32_t>(siphash24(sender.nonce, input));
}

}  // namespace srd::wire
