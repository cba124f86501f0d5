// SPDX-License-Identifier: Apache-2.0
// Reads a socket's error queue (IP_RECVERR) and turns what it finds into PathEvents. On shared,
// unconnected sockets an ICMP error fails the next send, to whomever it goes; so errors are
// fetched, attributed by the address and the quoted bytes they carry, and never taken as the
// verdict on a send.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/counter.hpp"
#include "sock/path_pool.hpp"

namespace srd::sock {

class ErrorQueue {
 public:
  explicit ErrorQueue(const PathPool& pool) noexcept : pool_(pool) {}

  /// Empties the error queue of `socket`, up to kDrainMax entries, and its pending error. Returns
  /// how many entries there were.
  unsigned drain(unsigned socket) noexcept;
  /// Oldest first.
  std::size_t poll(std::span<PathEvent> out) noexcept;

  [[nodiscard]] bool has_events() const noexcept { return head_ != tail_; }

  [[nodiscard]] std::uint64_t errors() const noexcept { return errors_.value(); }

  static constexpr unsigned kDrainMax = 64;
  /// Events kept for poll(); when it is full the newest is dropped. They are hints.
  static constexpr std::uint32_t kEventsMax = 256;

 private:
  bool read_one(unsigned socket) noexcept;
  void push(const PathEvent& event) noexcept;

  const PathPool& pool_;
  std::array<PathEvent, kEventsMax> events_{};
  std::uint32_t head_ = 0;  ///< free-running
  std::uint32_t tail_ = 0;
  Counter errors_;
};

}  // namespace srd::sock
