// SPDX-License-Identifier: Apache-2.0
// Little-endian loads and stores at any alignment. On little-endian hosts each is one plain move.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace srd {

/// `value` with its bytes reversed on big-endian hosts, unchanged elsewhere.
template <std::integral T>
constexpr T little_endian(T value) noexcept {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
  } else {
    static_assert(sizeof(T) == 8);
    return static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
  }
}

/// Reads a T from the sizeof(T) bytes at `from`.
template <std::integral T>
T load_le(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return little_endian(value);
}

/// Writes `value` to the sizeof(T) bytes at `to`. T is always spelled out by the caller: it is the
/// size on the wire.
template <std::integral T>
void store_le(void* to, std::type_identity_t<T> value) noexcept {
  value = little_endian(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace srd
