// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.hpp"

#include <bit>

#include "base/bytes.hpp"

namespace srd {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash24(std::span<const std::uint8_t, 16> key,
                        std::span<const std::byte> data) noexcept {
  const auto k0 = load_le<std::uint64_t>(key.data());
  const auto k1 = load_le<std::uint64_t>(key.data() + 8);
  State state{k0 ^ 0x736f6d6570736575U, k1 ^ 0x646f72616e646f6dU, k0 ^ 0x6c7967656e657261U,
              k1 ^ 0x7465646279746573U};
  std::size_t at = 0;
  for (; data.size() - at >= 8; at += 8) state.absorb(load_le<std::uint64_t>(data.data() + at));
  std::uint64_t last = std::uint64_t{data.size() & 0xff} << 56;
  for (unsigned shift = 0; at < data.size(); ++at, shift += 8) {
    last |= std::to_integer<std::uint64_t>(data[at]) << shift;
  }
  state.absorb(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace srd
