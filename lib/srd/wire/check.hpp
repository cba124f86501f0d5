// SPDX-License-Identifier: Apache-2.0
// The seeded check of every packet (PROTOCOL.md 3.2): CRC32C over the datagram with its check field
// taken as zero, started from a per-context, per-direction seed. Stale, misrouted and blindly
// forged packets fail it with probability 1 - 2^-32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "srd/datagram.hpp"

namespace srd::wire {

/// Seed of set-up packets and RESET, which belong to no context yet.
inline constexpr std::uint32_t kUnseeded = 0x53524430;  // "SRD0"

// Coverage: the whole datagram, except DATA without kFlagFullCheck, where it ends with the fixed
// header and its extension block.

/// Writes the check into a finished packet that begins with `header` (for DATA without
/// kFlagFullCheck: exactly the bytes covered) and goes on with `payload`. O(bytes covered).
void seal(std::span<std::byte> header, std::span<const Segment> payload,
          std::uint32_t seed) noexcept;

/// True if the check of `packet` is right. `header_bytes` is where the fixed header of DATA with
/// its extension block ends; it only counts without kFlagFullCheck. The caller has compared that
/// flag with the negotiated form. False if the packet is shorter than a common header or than
/// `header_bytes`. O(bytes covered).
bool verify(std::span<const std::byte> packet, std::size_t header_bytes,
            std::uint32_t seed) noexcept;

/// Seed for packets from `sender` to `receiver`: the low 32 bits of SipHash-2-4, keyed with the
/// sender's nonce, over the receiver's nonce, the sender's incarnation and the receiver's.
/// Source: PROTOCOL.md 3.2.
struct SeedSide {
  std::span<const std::uint8_t, 16> nonce;
  std::uint64_t incarnation;
};

std::uint32_t derive_seed(const SeedSide& sender, const SeedSide& receiver) noexcept;

}  // namespace srd::wire
