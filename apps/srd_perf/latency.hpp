// SPDX-License-Identifier: Apache-2.0
// Request and response with latencies (--latency). The requester keeps a number of requests
// outstanding (closed loop) or sends on schedule whether answers come or not (open loop); in open
// loop a latency counts from the scheduled time, so that a stall delays all requests that it held
// up, not one
// ("coordinated omission"). The responder answers each request with its number.
#pragma once

#include <cstdint>
#include <deque>
#include <system_error>
#include <vector>

#include "common/histogram.hpp"
#include "srd_perf/bins.hpp"
#include "srd_perf/message_pool.hpp"
#include "srd_perf/pattern.hpp"
#include "srd_perf/stream.hpp"

namespace perf {

LatencySummary summarize(const apps::Histogram& histogram, std::uint64_t unanswered);

/// Sends messages with a number on one channel: short ones by copy, long ones from a pool.
class NumberedSender {
 public:
  NumberedSender(const StreamContext& context, std::uint64_t message_bytes, std::uint32_t slots);
  /// would_block: nothing more fits now.
  std::error_code send(std::uint64_t number);
  void handle_send_done(std::uint32_t slot);

  [[nodiscard]] bool is_drained() const noexcept { return pool_.in_flight() == 0; }

  /// user_data slot of sends without a pool slot.
  static constexpr std::uint32_t kCopySlot = 0xffffff;

 private:
  const StreamContext& context_;
  std::uint64_t message_bytes_;
  std::uint64_t key_;
  bool copies_;
  MessagePool pool_;
  std::vector<std::byte> scratch_;
};

class Requester final : public Stream {
 public:
  Requester(const StreamContext& context, std::uint32_t messages_max);

  bool pump(std::uint64_t now_ns) override;
  void handle_message(const srd::Message& message, std::uint64_t now_ns) override;
  void handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                        std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t next_due_ns() const override;
  void stop() override;
  /// All requests are answered.
  [[nodiscard]] bool is_drained() const override;

  [[nodiscard]] bool has_sends_in_flight() const override { return !sender_.is_drained(); }

  /// Forgets what was measured so far (end of the omitted time).
  void reset();
  /// Of the time since the last call.
  LatencySummary take_interval();
  [[nodiscard]] LatencySummary summary() const;

  [[nodiscard]] std::uint64_t unanswered() const noexcept { return outstanding_; }

 private:
  /// Requests outstanding at once, a power of two. At 100,000/s: 0.6 s of silence; beyond that the
  /// schedule goes on counting, and requests follow late with their scheduled time.
  static constexpr std::uint64_t kOutstandingMax = 1U << 16;

  [[nodiscard]] std::uint64_t scheduled_ns(std::uint64_t number) const noexcept;

  [[nodiscard]] bool is_open_loop() const noexcept {
    return context_.parameters.mode == Mode::latency_open;
  }

  [[nodiscard]] std::uint64_t limit() const noexcept;
  bool send_one(std::uint64_t intended_ns);

  NumberedSender sender_;
  std::uint64_t key_;
  std::uint64_t next_number_ = 0;
  std::uint64_t outstanding_ = 0;
  std::uint64_t start_ns_ = 0;              ///< open loop: scheduled time of request 0
  std::uint64_t stop_number_ = UINT64_MAX;  ///< open loop: first number that is not sent any more
  bool stopped_ = false;
  bool blocked_ = false;                    ///< nothing fits until a completion
  std::vector<std::uint64_t> intended_ns_;  ///< by number modulo kOutstandingMax; 0: answered
  apps::Histogram total_;
  apps::Histogram interval_;
};

class Responder final : public Stream {
 public:
  Responder(const StreamContext& context, std::uint32_t messages_max, Bins* bins);

  bool pump(std::uint64_t now_ns) override;
  void handle_message(const srd::Message& message, std::uint64_t now_ns) override;
  void handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                        std::uint64_t now_ns) override;

  [[nodiscard]] std::uint64_t next_due_ns() const override { return kNeverNs; }

  void stop() override {}

  [[nodiscard]] bool is_drained() const override {
    return waiting_.empty() && sender_.is_drained();
  }

  [[nodiscard]] bool has_sends_in_flight() const override { return !sender_.is_drained(); }

  [[nodiscard]] std::uint64_t verified_messages() const noexcept { return seen_.count(); }

 private:
  NumberedSender sender_;
  std::uint64_t key_;
  Bins* bins_;
  SequenceSet seen_;
  std::deque<std::uint64_t> waiting_;  ///< numbers of requests whose answer did not fit yet
};

}  // namespace perf
