// SPDX-License-Identifier: Apache-2.0
// Judge of a simulated run: knows every message, its content and what may happen to it, and writes
// down each broken promise. Content comes from the message's number, so receivers verify every
// byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "srd/error.hpp"

#include "sim/train.hpp"

namespace srd::sim {

/// Number of a message in the world; also its user_data.
using MessageNumber = std::uint64_t;

struct SendSpec {
  HostId to = kNoHost;
  std::uint64_t bytes = 0;
  std::uint16_t channel = 0;
  bool copy = false;
  bool unsignaled = false;
  bool one_path = false;
  bool reply = false;  ///< to the handle by which the receiver's messages came, not to its address
  std::uint8_t pieces = 1;  ///< scatter-gather, 1..8
};

struct MessageRecord {
  SendSpec spec;
  HostId from = kNoHost;
  TimeNs sent_at = kNeverNs;  ///< when the core accepted it
  TimeNs completed_at = kNeverNs;
  TimeNs delivered_at = kNeverNs;
  Errc status = Errc::ok;
  std::uint32_t deliveries = 0;
  bool sender_died = false;        ///< its endpoint was destroyed: no completion will come
  bool payload_pinned = false;     ///< kept until the end of the run
  std::vector<std::byte> payload;  ///< until the completion
};

/// A reason for which messages may fail. Faults register what they justify.
struct Excuse {
  Errc status = Errc::ok;
  HostId host = kNoHost;    ///< the receiver; kNoHost: any
  bool either_end = false;  ///< `host` may be the sender as well
  TimeNs since = 0;         ///< completions from then on
  TimeNs until = kNeverNs;
};

class Checker {
 public:
  explicit Checker(std::uint64_t seed) : seed_(seed) {}

  // --- applications report ---
  MessageNumber add(HostId from, const SendSpec& spec);
  /// Fills `out` with the bytes at `offset` of a message.
  void fill(MessageNumber number, std::uint64_t offset, std::span<std::byte> out) const noexcept;
  void handle_sent(MessageNumber number, TimeNs now);
  void handle_completion(HostId host, MessageNumber number, Errc status, std::uint64_t bytes,
                         TimeNs now);
  /// `pieces` are the message's bytes in order. Returns who sent it, kNoHost if that cannot be
  /// told.
  HostId handle_delivery(HostId host, std::uint16_t channel, std::uint64_t bytes,
                         std::span<const std::span<const std::byte>> pieces, TimeNs now);
  /// The endpoint of `host` is gone: what it had outstanding gets no completion, and what it had
  /// accepted may never have been seen by its application.
  void handle_endpoint_loss(HostId host, TimeNs now);

  // --- faults report ---
  void excuse(const Excuse& excuse) { excuses_.push_back(excuse); }

  // --- verdicts ---
  void fail(TimeNs now, const std::string& text);
  /// After everything had time to finish: nothing outstanding, every success delivered.
  void finish(TimeNs now);

  [[nodiscard]] bool all_done() const noexcept { return outstanding_ == 0; }

  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

  [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }

  [[nodiscard]] std::uint64_t failure_count() const noexcept { return failure_count_; }

  [[nodiscard]] const std::vector<MessageRecord>& messages() const noexcept { return messages_; }

  [[nodiscard]] MessageRecord& message(MessageNumber number) { return messages_[number]; }

  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }

  [[nodiscard]] std::uint64_t succeeded() const noexcept { return succeeded_; }

  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

  [[nodiscard]] std::uint64_t delivered_bytes_at(HostId host) const noexcept;

  /// Shorter messages cannot name themselves; they are counted by receiver, channel and length.
  static constexpr std::uint64_t kNamedBytes = 8;

 private:
  struct TinyKey {
    std::uint32_t host;
    std::uint16_t channel;
    std::uint64_t bytes;
    auto operator<=>(const TinyKey&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  struct TinyCount {
    std::uint64_t sent = 0, succeeded = 0, delivered = 0;
    bool excused = false;
  };

  [[nodiscard]] bool is_excused(const MessageRecord& message, Errc status, TimeNs now) const;
  void settle(MessageRecord& message);
  void deliver_tiny(HostId host, std::uint16_t channel, std::uint64_t bytes,
                    std::span<const std::span<const std::byte>> pieces, TimeNs now);
  [[nodiscard]] bool content_matches(MessageNumber number,
                                     std::span<const std::span<const std::byte>> pieces) const;
  [[nodiscard]] std::string describe(MessageNumber number) const;

  std::uint64_t seed_;
  std::vector<MessageRecord> messages_;
  std::map<TinyKey, TinyCount> tiny_;
  std::vector<Excuse> excuses_;
  std::map<std::uint32_t, std::vector<TimeNs>> endpoint_losses_;  // by host
  std::map<std::uint32_t, std::uint64_t> bytes_at_;
  std::vector<std::string> failures_;
  std::uint64_t failure_count_ = 0;
  std::uint64_t outstanding_ = 0, delivered_ = 0, succeeded_ = 0, failed_ = 0;
};

}  // namespace srd::sim
