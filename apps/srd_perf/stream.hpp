// SPDX-License-Identifier: Apache-2.0
// One direction of test traffic on one channel, as the session that owns it sees it: something to
// pump, to feed with completions, and to read counters from.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.hpp"
#include "common/transport.hpp"
#include "srd_perf/parameters.hpp"

namespace perf {

inline constexpr std::uint64_t kNeverNs = UINT64_MAX;

/// Free-running: taken apart into omitted, measured and late parts by marks of the session.
struct Meter {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;

  void count(std::uint64_t message_bytes) noexcept {
    bytes += message_bytes;
    ++messages;
  }
};

/// user_data of a send: tells completions apart without pointers, so that one of a session that is
/// gone is recognised.
struct SendToken {
  std::uint32_t session = 0;  ///< serial number, 31 bits
  bool control = false;
  std::uint8_t stream = 0;
  std::uint32_t slot = 0;  ///< 24 bits

  [[nodiscard]] std::uint64_t encode() const noexcept {
    return std::uint64_t{session} << 33 | std::uint64_t{control} << 32 |
           std::uint64_t{stream} << 24 | slot;
  }

  static SendToken decode(std::uint64_t user_data) noexcept {
    return {static_cast<std::uint32_t>(user_data >> 33), (user_data >> 32 & 1) != 0,
            static_cast<std::uint8_t>(user_data >> 24 & 0xff),
            static_cast<std::uint32_t>(user_data & 0xffffff)};
  }
};

/// Bytes that all sending streams of one side may still take (-n).
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t total) noexcept : limited_(total != 0), left_(total) {}

  /// Up to `wanted` bytes, 0 when used up.
  std::uint64_t take(std::uint64_t wanted) noexcept {
    if (!limited_) return wanted;
    const std::uint64_t taken = wanted < left_ ? wanted : left_;
    left_ -= taken;
    return taken;
  }

  void give_back(std::uint64_t bytes) noexcept {
    if (limited_) left_ += bytes;
  }

  [[nodiscard]] bool used_up() const noexcept { return limited_ && left_ == 0; }

 private:
  bool limited_;
  std::uint64_t left_;
};

/// What a stream needs of its session; outlives the stream.
struct StreamContext {
  apps::Transport& transport;
  srd_peer peer;
  std::uint16_t channel;
  SendToken token;  ///< with slot 0
  const Parameters& parameters;
  std::uint32_t stream;  ///< index, for texts: shown as `shown_id`
  std::uint32_t shown_id;
  ByteBudget& budget;
  std::string& failure;  ///< first thing that went wrong; ends the test
};

class Stream {
 public:
  explicit Stream(const StreamContext& context) : context_(context) {}

  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sends what is due and fits. Returns true if it queued anything.
  virtual bool pump(std::uint64_t now_ns) = 0;
  /// A message on this channel; the session releases it afterwards.
  virtual void handle_message(const srd::Message& message, std::uint64_t now_ns) = 0;
  virtual void handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                                std::uint64_t now_ns) = 0;
  /// When pump() has something to do by the clock alone; kNeverNs if by completions only.
  [[nodiscard]] virtual std::uint64_t next_due_ns() const = 0;
  /// No new messages from here on; what is in flight completes.
  virtual void stop() = 0;
  /// Stopped, and nothing is outstanding: sends, answers to requests, requests to answer.
  [[nodiscard]] virtual bool is_drained() const = 0;
  /// The library still refers to memory of this stream.
  [[nodiscard]] virtual bool has_sends_in_flight() const = 0;

  [[nodiscard]] const Meter& meter() const noexcept { return meter_; }

 protected:
  void fail(std::string text) {
    if (context_.failure.empty()) context_.failure = std::move(text);
  }

  StreamContext context_;
  Meter meter_;
};

}  // namespace perf
