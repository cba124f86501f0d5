// SPDX-License-Identifier: Apache-2.0
// The two ends of a throughput stream: a sender that keeps a window of messages outstanding,
// optionally paced, and a receiver that counts, optionally checks every byte, and gives the memory
// back.
#pragma once

#include <cstdint>

#include "srd_perf/bins.hpp"
#include "srd_perf/message_pool.hpp"
#include "srd_perf/pattern.hpp"
#include "srd_perf/stream.hpp"

namespace perf {

class BulkSender final : public Stream {
 public:
  /// `messages_max`: outstanding at most, besides the window in bytes.
  BulkSender(const StreamContext& context, std::uint32_t messages_max);

  bool pump(std::uint64_t now_ns) override;
  void handle_message(const srd::Message& message, std::uint64_t now_ns) override;
  void handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                        std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t next_due_ns() const override;

  void stop() override { stopped_ = true; }

  [[nodiscard]] bool is_drained() const override { return pool_.in_flight() == 0; }

  [[nodiscard]] bool has_sends_in_flight() const override { return pool_.in_flight() != 0; }

 private:
  enum class Step : std::uint8_t { sent, blocked };
  Step send_one(std::uint64_t now_ns);

  MessagePool pool_;
  std::uint64_t next_number_ = 0;
  std::uint64_t next_due_ns_ = 0;  ///< paced: when the next message may go; 0: at once
  bool stopped_ = false;
  bool window_full_ = false;
};

class BulkReceiver final : public Stream {
 public:
  /// `bins` may be nullptr; else it outlives the stream.
  BulkReceiver(const StreamContext& context, Bins* bins);

  bool pump(std::uint64_t now_ns) override;
  void handle_message(const srd::Message& message, std::uint64_t now_ns) override;
  void handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                        std::uint64_t now_ns) override;

  [[nodiscard]] std::uint64_t next_due_ns() const override { return kNeverNs; }

  void stop() override {}

  [[nodiscard]] bool is_drained() const override { return true; }

  [[nodiscard]] bool has_sends_in_flight() const override { return false; }

  [[nodiscard]] std::uint64_t verified_messages() const noexcept { return seen_.count(); }

 private:
  Bins* bins_;
  std::uint64_t key_;
  SequenceSet seen_;
};

/// Checks the content of a message against its number and stream. "" or what is wrong with it.
std::string check_content(const srd::Message& message, std::uint64_t key);
/// The number a message begins with, however it is cut into pieces.
std::uint64_t number_of(const srd::Message& message) noexcept;

}  // namespace perf
