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

/// Writes the check into a finished packet whose header is `header` and whose payload is `payload`.
/// O(bytes covered): header only unless kFlagFullCheck is set in it.
void seal(std::span<std::byte> header, std::span<const Segment> payload,
          std::uint32_t seed) noexcept;

/// True if the check of `packet` is right. `header_bytes` is what a header-only check covers: the
/// fixed header with its extension block. O(bytes covered).
bool verify(std::span<const std::byte> packet, std::size_t header_bytes,
            std::uint32_t seed) noexcept;

/// Seed for packets from `sender` to `receiver`: 32 bits of SipHash-2-4 keyed with both nonces,
/// over both incarnations, sender's first. Source: PROTOCOL.md 3.2.
struct SeedSide {
  std::span<const std::uint8_t, 16> nonce;
  std::uint64_t incarnation;
};

std::uint32_t derive_seed(const SeedSide& sender, const SeedSide& receiver) noexcept;

}  // namespace srd::wire
