// SPDX-License-Identifier: Apache-2.0
// Receiving side of one context's PSN space: which PSNs arrived, which carried CE, and which parts
// of that the peer has not been told often enough. It does not decide when to acknowledge. Source:
// PROTOCOL.md 5.2, 5.3.
#pragma once

#include <array>
#include <cstdint>

#include "srd/wire/packet.hpp"

#include "base/seqno.hpp"

namespace srd::core {

class RecvWindow {
 public:
  enum class Verdict : std::uint8_t { fresh, duplicate, beyond };

  /// `window` in PSNs: a power of two, 256..8192.
  void reset(std::uint32_t first_psn, std::uint32_t window) noexcept;

  /// What an arriving PSN is; changes nothing.
  [[nodiscard]] Verdict check(std::uint32_t psn) const noexcept;

  /// Marks a fresh PSN. O(1) amortised.
  void accept(std::uint32_t psn, bool ce) noexcept;

  /// First PSN not received: everything before it arrived. The cumulative ack.
  [[nodiscard]] std::uint32_t base() const noexcept { return base_; }

  /// One past the highest PSN received.
  [[nodiscard]] std::uint32_t end() const noexcept { return end_; }

  [[nodiscard]] bool has_hole() const noexcept { return base_ != end_; }

  /// A word changed since it was last told: at least one more ACK is due.
  [[nodiscard]] bool has_news() const noexcept { return news_ != 0; }

  /// Some word with a CE mark is untold.
  [[nodiscard]] bool has_ce_news() const noexcept { return ce_news_; }

  /// The peer was told the cumulative ack, and there is no hole: nothing else is left to tell.
  void told_cumulative() noexcept;

  /// Fills bitmap base, words and bitmaps of one ACK and its CE flag: everything from the
  /// cumulative ack if that fits into one ACK, else from the first untold word on; call again while
  /// has_news().
  void fill_ack(wire::AckHeader& header, std::array<std::uint64_t, wire::kAckWordsMax>& received,
                std::array<std::uint64_t, wire::kAckWordsMax>& ce) noexcept;

  /// Marks the whole span from the cumulative ack to the highest PSN as untold: the answer to a
  /// probe.
  void retell_all() noexcept;

 private:
  static constexpr std::uint32_t kWords = 256;   // ring: window ahead and as much behind, for CE
  static constexpr std::uint8_t kTellTimes = 2;  // each change rides in two ACKs: one may get lost

  static std::uint32_t word_of(std::uint32_t psn) noexcept { return psn >> 6U; }

  void touch(std::uint32_t word) noexcept;
  [[nodiscard]] std::int32_t word_diff(std::uint32_t a, std::uint32_t b) const noexcept;
  [[nodiscard]] std::uint32_t first_word_to_tell() const noexcept;

  std::uint32_t base_ = 0, end_ = 0, window_ = 0;
  std::uint32_t top_word_ = 0;   // words above it are not cleared yet
  std::uint32_t low_dirty_ = 0;  // no word below it has anything left to tell
  std::uint32_t news_ = 0;       // words at kTellTimes
  bool ce_news_ = false;
  std::array<std::uint64_t, kWords> received_{};
  std::array<std::uint64_t, kWords> ce_{};
  std::array<std::uint8_t, kWords> untold_{};
};

}  // namespace srd::core
