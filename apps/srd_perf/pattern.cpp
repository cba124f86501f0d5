// SPDX-License-Identifier: Apache-2.0
// Verified content; see the header. One multiplication-based mix per 8 bytes keeps --verify cheap.
#include "srd_perf/pattern.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perf {
namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::uint64_t kBitsPerWord = 64;
constexpr std::size_t kTrimWords = 4096;

/// Finalizer of a 64-bit mixing generator (Steele, Lea, Flood: Fast splittable generators, 2014).
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

/// Word `index` of a message; word 0 is its number.
std::uint64_t word_at(std::uint64_t key, std::uint64_t number, std::uint64_t index) noexcept {
  if (index == 0) return number;
  return mix(key + number * 0x9e3779b97f4a7c15U + index);
}

std::uint64_t to_little_endian(std::uint64_t value) noexcept {
  if constexpr (std::endian::native == std::endian::big) return __builtin_bswap64(value);
  return value;
}

}  // namespace

std::uint64_t pattern_key(std::string_view cookie, std::uint32_t stream) noexcept {
  std::uint64_t key = 0xcbf29ce484222325U;
  for (const char letter : cookie) {
    key = (key ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return mix(key + stream);
}

void write_number(std::uint64_t number, std::span<std::byte> out) noexcept {
  const std::uint64_t value = to_little_endian(number);
  std::memcpy(out.data(), &value, kWordBytes);
}

std::uint64_t read_number(std::span<const std::byte> message) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, message.data(), std::min(message.size(), kWordBytes));
  return to_little_endian(value);
}

void fill_pattern(std::uint64_t key, std::uint64_t number, std::span<std::byte> out) noexcept {
  for (std::size_t at = 0; at < out.size(); at += kWordBytes) {
    const std::uint64_t word = to_little_endian(word_at(key, number, at / kWordBytes));
    std::memcpy(out.data() + at, &word, std::min(kWordBytes, out.size() - at));
  }
}

bool PatternCheck::accept(std::span<const std::byte> piece) noexcept {
  while (!piece.empty()) {
    const std::uint64_t word = to_little_endian(word_at(key_, number_, offset_ / kWordBytes));
    const std::size_t skip = offset_ % kWordBytes;
    const std::size_t bytes = std::min(kWordBytes - skip, piece.size());
    if (std::memcmp(piece.data(), reinterpret_cast<const std::byte*>(&word) + skip, bytes) != 0) {
      return false;
    }
    piece = piece.subspan(bytes);
    offset_ += bytes;
  }
  return true;
}

SequenceSet::Insert SequenceSet::insert(std::uint64_t number) {
  const std::uint64_t word = number / kBitsPerWord;
  const std::uint64_t bit = std::uint64_t{1} << (number % kBitsPerWord);
  if (word < base_word_) return Insert::duplicate;
  if (number - base_word_ * kBitsPerWord > kGapMax) return Insert::implausible;
  const std::size_t index = static_cast<std::size_t>(word - base_word_);
  if (index >= words_.size()) words_.resize(index + 1);
  if ((words_[index] & bit) != 0) return Insert::duplicate;
  words_[index] |= bit;
  ++count_;
  if (words_.size() >= 2 * kTrimWords) {
    const auto first_open = std::find_if(words_.begin(), words_.end(),
                                         [](std::uint64_t bits) { return bits != UINT64_MAX; });
    const auto full = first_open - words_.begin();
    if (static_cast<std::size_t>(full) >= kTrimWords) {
      words_.erase(words_.begin(), first_open);
      base_word_ += static_cast<std::uint64_t>(full);
    }
  }
  return Insert::fresh;
}

std::uint64_t SequenceSet::complete_below() const noexcept {
  std::uint64_t number = base_word_ * kBitsPerWord;
  for (const std::uint64_t bits : words_) {
    const auto ones = static_cast<std::uint64_t>(std::countr_one(bits));
    number += ones;
    if (ones < kBitsPerWord) break;
  }
  return number;
}

}  // namespace perf
