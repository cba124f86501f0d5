// SPDX-License-Identifier: Apache-2.0
// Pseudo-random numbers that replay from a seed: xoshiro256** seeded by splitmix64 (Blackman and
// Vigna, "Scrambled linear pseudorandom number generators", 2021). Not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace srd {

/// One splitmix64 step: advances `state` and returns a well mixed value. Also a good 64-bit hash of
/// consecutive numbers.
constexpr std::uint64_t split_mix(std::uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// One stream of numbers; equal seeds give equal streams on every platform.
class Prng {
 public:
  explicit constexpr Prng(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = split_mix(seed);
  }

  /// 64 uniform bits.
  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in 0 .. n-1, 0 for n = 0. The bias (below n / 2^64) is of no consequence here.
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }

  /// True with probability `p`; draws nothing for p <= 0.
  constexpr bool chance(double p) noexcept {
    return p > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < p;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace srd
