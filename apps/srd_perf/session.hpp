// SPDX-License-Identifier: Apache-2.0
// One test on one side, from agreement to results: its streams, its clock (omitted time, intervals,
// end), its measurement. Client and server run the same class; who says what to whom is theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/transport.hpp"
#include "srd_perf/bins.hpp"
#include "srd_perf/bulk.hpp"
#include "srd_perf/control_channel.hpp"
#include "srd_perf/cpu_usage.hpp"
#include "srd_perf/flow_monitor.hpp"
#include "srd_perf/latency.hpp"
#include "srd_perf/reporter.hpp"
#include "srd_perf/results.hpp"
#include "srd_perf/stream.hpp"

namespace perf {

class Session {
 public:
  struct Identity {
    srd_peer peer = SRD_NO_PEER;
    std::uint8_t tag = 0;      ///< in the channels
    std::uint32_t serial = 0;  ///< in the tokens of sends
  };

  /// `transport` and `reporter` outlive it. `interval_s` 0: no intervals.
  Session(apps::Transport& transport, const Identity& identity, const TestInfo& info,
          double interval_s, Reporter& reporter);

  /// The clock starts, senders begin with the next pump(). A second call does nothing.
  void start(std::uint64_t now_ns);
  /// A message on channel `stream` of this session; the caller releases it.
  void handle_message(std::uint8_t stream, const srd::Message& message, std::uint64_t now_ns);
  void handle_send_done(const SendToken& token, const srd_completion& done, std::uint64_t now_ns);
  /// Sends what may be sent. Returns true if it queued anything.
  bool pump(std::uint64_t now_ns);
  /// Intervals, end of omitted time, samples.
  void tick(std::uint64_t now_ns);
  /// When tick() or pump() has something to do by the clock.
  [[nodiscard]] std::uint64_t next_deadline_ns() const;
  /// Ends the measurement; senders stop, what is in flight completes.
  void stop(std::uint64_t now_ns);

  /// Time is up, or all of -n is sent and acknowledged.
  [[nodiscard]] bool has_reached_end(std::uint64_t now_ns) const;
  /// This side has sent and got acknowledged all of -n.
  [[nodiscard]] bool has_sent_all() const;

  [[nodiscard]] bool is_started() const noexcept { return start_ns_ != 0; }

  [[nodiscard]] bool is_stopped() const noexcept { return end_ns_ != 0; }

  /// Stopped and nothing of its streams in flight.
  [[nodiscard]] bool is_drained() const;
  /// The library still refers to memory of this session: it must not be destroyed before the
  /// endpoint.
  [[nodiscard]] bool has_sends_in_flight() const;
  /// Everything that `sender` sent has arrived. More than that: fails the session.
  [[nodiscard]] bool has_received_all(const SideResults& sender);
  /// Messages so far of all streams; grows while there is progress.
  [[nodiscard]] std::uint64_t progress() const noexcept;

  /// Of the time so far, or up to stop().
  SideResults results();

  /// "" or the first thing that went wrong.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  void fail(const std::string& text);

  [[nodiscard]] const Identity& identity() const noexcept { return identity_; }

  [[nodiscard]] TestRecord& record() noexcept { return record_; }

  [[nodiscard]] ControlChannel& control() noexcept { return control_; }

 private:
  struct StreamState {
    std::unique_ptr<Stream> stream;
    bool sender = false;
    Meter at_measure_start, at_interval_start, at_end;
  };

  void make_streams();
  void end_omitted_time(std::uint64_t now_ns);
  void end_interval(std::uint64_t now_ns);
  void begin_interval(std::uint64_t now_ns);
  /// This sender's part of `retransmits` of the flow, by bytes.
  std::uint64_t share_of(std::uint64_t retransmits, std::uint32_t stream, std::uint64_t bytes,
                         std::uint64_t all_bytes) const;
  [[nodiscard]] std::uint32_t first_sender() const;

  apps::Transport& transport_;
  Identity identity_;
  TestRecord record_;
  Reporter& reporter_;
  std::string failure_;
  ControlChannel control_;
  FlowMonitor monitor_;
  std::optional<CpuUsage> cpu_;  ///< from start()
  CpuTimes cpu_times_;           ///< at stop()
  std::optional<Bins> bins_;
  ByteBudget budget_;
  std::vector<StreamState> streams_;
  Requester* requester_ = nullptr;  ///< latency modes, client

  std::uint64_t interval_ns_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t measure_start_ns_ = 0;  ///< after the omitted time
  std::uint64_t end_ns_ = 0;
  std::uint64_t interval_start_ns_ = 0;
  std::uint64_t next_interval_ns_ = kNeverNs;
  std::uint64_t next_sample_ns_ = kNeverNs;
  bool omitting_ = false;
  std::uint64_t retransmits_at_measure_start_ = 0;
  std::uint64_t retransmits_at_interval_start_ = 0;
  std::uint64_t retransmits_at_end_ = 0;
};

}  // namespace perf
