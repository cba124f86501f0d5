// SPDX-License-Identifier: Apache-2.0
#include "srd/core/recv_window.hpp"

#include <algorithm>
#include <bit>

namespace srd::core {

namespace {
// Word numbers are PSN >> 6: a 26-bit number space.
constexpr std::uint32_t kWordMask = (1U << 26U) - 1;
}  // namespace

std::int32_t RecvWindow::word_diff(std::uint32_t a, std::uint32_t b) const noexcept {
  return seq_diff(a << 6U, b << 6U) >> 6;
}

void RecvWindow::reset(std::uint32_t first_psn, std::uint32_t window) noexcept {
  base_ = end_ = first_psn;
  window_ = window;
  top_word_ = low_dirty_ = word_of(first_psn);
  news_ = 0;
  ce_news_ = false;
  received_.fill(0);
  ce_.fill(0);
  untold_.fill(0);
  // Bits below the first PSN count as received, so that the cumulative ack never has to skip them.
  const std::uint32_t bit = first_psn & 63U;
  if (bit != 0) received_[top_word_ % kWords] = (std::uint64_t{1} << bit) - 1;
}

RecvWindow::Verdict RecvWindow::check(std::uint32_t psn) const noexcept {
  const std::int32_t ahead = seq_diff(psn, base_);
  if (ahead < 0) return Verdict::duplicate;
  if (ahead >= static_cast<std::int32_t>(window_)) return Verdict::beyond;
  if (word_diff(word_of(psn), top_word_) > 0) return Verdict::fresh;
  const bool set = (received_[word_of(psn) % kWords] >> (psn & 63U) & 1U) != 0;
  return set ? Verdict::duplicate : Verdict::fresh;
}

void RecvWindow::touch(std::uint32_t word) noexcept {
  std::uint8_t& untold = untold_[word % kWords];
  if (untold != kTellTimes) ++news_;
  untold = kTellTimes;
  if (word_diff(word, low_dirty_) < 0) low_dirty_ = word;
}

void RecvWindow::accept(std::uint32_t psn, bool ce) noexcept {
  const std::uint32_t word = word_of(psn);
  while (word_diff(word, top_word_) > 0) {
    top_word_ = (top_word_ + 1) & kWordMask;
    const std::uint32_t ring = top_word_ % kWords;
    received_[ring] = ce_[ring] = 0;
    if (untold_[ring] == kTellTimes) --news_;
    untold_[ring] = 0;
    // Words skipped here are holes: told as well, since silence about a word is no evidence.
    if (top_word_ != word) touch(top_word_);
  }
  const std::uint64_t bit = std::uint64_t{1} << (psn & 63U);
  received_[word % kWords] |= bit;
  if (ce) {
    ce_[word % kWords] |= bit;
    ce_news_ = true;
  }
  touch(word);
  if (seq_less(end_, psn + 1)) end_ = psn + 1;
  if (psn != base_) return;
  while (base_ != end_) {
    const std::uint64_t rest = ~received_[word_of(base_) % kWords] >> (base_ & 63U);
    const std::uint32_t left_in_word = 64 - (base_ & 63U);
    const std::uint32_t run =
        rest == 0 ? left_in_word
                  : std::min<std::uint32_t>(left_in_word,
                                            static_cast<std::uint32_t>(std::countr_zero(rest)));
    base_ += run;
    if (run < left_in_word) break;
  }
}

std::uint32_t RecvWindow::first_word_to_tell() const noexcept {
  const std::uint32_t cumulative_word = word_of(base_);
  // From the cumulative ack if the whole span fits: then every ACK is complete evidence.
  if (word_diff(top_word_, cumulative_word) < static_cast<std::int32_t>(wire::kAckWordsMax)) {
    // CE marks below the cumulative ack still have to be told.
    std::uint32_t word = low_dirty_;
    while (word_diff(word, cumulative_word) < 0 &&
           (untold_[word % kWords] == 0 || ce_[word % kWords] == 0)) {
      word = (word + 1) & kWordMask;
    }
    if (word_diff(cumulative_word, word) > 0 &&
        word_diff(top_word_, word) < static_cast<std::int32_t>(wire::kAckWordsMax)) {
      return word;
    }
    return cumulative_word;
  }
  std::uint32_t word = low_dirty_;
  while (word != top_word_ && untold_[word % kWords] != kTellTimes) word = (word + 1) & kWordMask;
  return word;
}

void RecvWindow::fill_ack(wire::AckHeader& header,
                          std::array<std::uint64_t, wire::kAckWordsMax>& received,
                          std::array<std::uint64_t, wire::kAckWordsMax>& ce) noexcept {
  const std::uint32_t start = first_word_to_tell();
  std::uint32_t words = 0;
  bool any_ce = false;
  std::uint32_t word = start;
  for (; words < wire::kAckWordsMax && word_diff(word, top_word_) <= 0;
       word = (word + 1) & kWordMask) {
    const std::uint32_t ring = word % kWords;
    received[words] = received_[ring];
    ce[words] = ce_[ring];
    any_ce |= ce_[ring] != 0;
    ++words;
    if (untold_[ring] == kTellTimes) --news_;
    if (untold_[ring] > 0) --untold_[ring];
  }
  // Words below `start` that were skipped lie under the cumulative ack without CE: told by that.
  for (std::uint32_t skipped = low_dirty_; word_diff(skipped, start) < 0;
       skipped = (skipped + 1) & kWordMask) {
    if (word_diff(skipped, word_of(base_)) >= 0) break;
    if (untold_[skipped % kWords] == kTellTimes) --news_;
    untold_[skipped % kWords] = 0;
  }
  while (low_dirty_ != top_word_ && untold_[low_dirty_ % kWords] == 0) {
    low_dirty_ = (low_dirty_ + 1) & kWordMask;
  }
  // Nothing above the cumulative ack and no CE to tell: the header says it all.
  if (!has_hole() && !any_ce) words = 0;
  if (news_ == 0) ce_news_ = false;
  header.bitmap_base = static_cast<std::int16_t>(seq_diff(start << 6U, base_));
  header.words = static_cast<std::uint8_t>(words);
  if (any_ce) header.flags |= wire::kAckCeBitmap;
}

void RecvWindow::told_cumulative() noexcept {
  for (; low_dirty_ != top_word_; low_dirty_ = (low_dirty_ + 1) & kWordMask) {
    untold_[low_dirty_ % kWords] = 0;
  }
  untold_[top_word_ % kWords] = 0;
  news_ = 0;
}

void RecvWindow::retell_all() noexcept {
  for (std::uint32_t word = word_of(base_); word_diff(word, top_word_) <= 0;
       word = (word + 1) & kWordMask) {
    touch(word);
  }
}

}  // namespace srd::core
