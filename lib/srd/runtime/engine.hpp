// SPDX-License-Identifier: Apache-2.0
// One endpoint at work: a protocol core, its queue of a device, and the order in which they are
// served. The only place where core and driver meet. Production and simulator run the same turn().
#pragma once

#include <array>
#include <memory>

#include "srd/core/core.hpp"
#include "srd/driver.hpp"

#include "base/counter.hpp"

namespace srd::runtime {

class Engine {
 public:
  /// Errors: those of Core::create.
  static Result<std::unique_ptr<Engine>> create(const core::Config& config,
                                                std::unique_ptr<PacketIo> io) noexcept;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One turn of the loop: receive until dry, completions of sends, path events, timers if due,
  /// transmit up to the budget, return receive buffers. Returns true if it did anything.
  bool turn(Clock& clock) noexcept;
  /// Transmit only, for flush without poll.
  void flush(Instant now) noexcept;
  /// Sends CLOSE to all peers. The engine is of no use afterwards.
  void close(Instant now) noexcept;

  [[nodiscard]] core::Core& core() noexcept { return *core_; }

  [[nodiscard]] const core::Core& core() const noexcept { return *core_; }

  [[nodiscard]] PacketIo& io() noexcept { return *io_; }

  [[nodiscard]] const PacketIo& io() const noexcept { return *io_; }

  /// What the driver counted up to the last turn; any thread.
  struct DriverCounters {
    Counter rx_host_drops, rx_starved, rx_truncated, tx_refused, icmp_errors, gso_fallbacks,
        paths_refused;
  };

  [[nodiscard]] const DriverCounters& driver_counters() const noexcept { return driver_counters_; }

  /// Datagrams received in one turn at most, so that timers and sends get their share.
  static constexpr std::size_t kReceiveBudget = 4096;
  /// Datagrams sent in one turn at most, so that ACKs are read in between.
  static constexpr std::size_t kTransmitBudget = 256;
  static constexpr std::size_t kBurst = 128;

 private:
  Engine(std::unique_ptr<core::Core> core, std::unique_ptr<PacketIo> io) noexcept;
  bool receive(Clock& clock) noexcept;
  bool transmit(Instant now, std::size_t budget) noexcept;
  bool collect_done(Instant now) noexcept;
  bool collect_path_events(Instant now) noexcept;
  void return_buffers() noexcept;
  void note_host_state(Instant now) noexcept;

  std::unique_ptr<PacketIo> io_;
  std::unique_ptr<core::Core> core_;
  std::array<RxDatagram, kBurst> rx_{};
  std::array<TxDatagram, kBurst> tx_{};
  // Members, so that a turn in which nothing happened does not pay for clearing them.
  std::array<TxDone, 64> done_{};
  std::array<PathEvent, 16> path_events_{};
  DriverCounters driver_counters_;
};

}  // namespace srd::runtime
