// SPDX-License-Identifier: Apache-2.0
// Sends control messages to one peer and keeps their memory until they are delivered.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <system_error>

#include "srd_perf/protocol.hpp"
#include "srd_perf/stream.hpp"

namespace perf {

class ControlChannel {
 public:
  /// `token` names the session of all its sends. `transport` must outlive it.
  ControlChannel(apps::Transport& transport, srd_peer peer, SendToken token);

  /// Queues; goes out with the next pump() that finds room.
  void send(const ControlMessage& message);
  void pump();
  /// Completion of one of its sends.
  void handle_send_done(std::uint32_t slot, int status);

  /// All that was sent has been accepted by the peer's endpoint, or never will be.
  [[nodiscard]] bool is_drained() const noexcept {
    return in_flight_.empty() && (waiting_.empty() || failure_);
  }

  /// Set if a message could not be delivered: why.
  [[nodiscard]] std::error_code failure() const noexcept { return failure_; }

  /// Sends `alive` when kAlivePeriodNs has passed and the last one is through: a peer that vanished
  /// without a word is noticed by the library only while something is outstanding to it.
  void keep_alive(std::uint64_t now_ns, std::uint8_t tag);

  [[nodiscard]] std::uint64_t next_alive_ns() const noexcept { return next_alive_ns_; }

  static constexpr std::uint64_t kAlivePeriodNs = apps::kNsPerSecond;

 private:
  apps::Transport& transport_;
  srd_peer peer_;
  SendToken token_;
  std::deque<std::string> waiting_;
  std::map<std::uint32_t, std::string> in_flight_;
  std::uint32_t next_slot_ = 0;
  std::uint64_t next_alive_ns_ = 0;
  std::error_code failure_;
};

}  // namespace perf
