// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace srd::runtime {

Result<std::unique_ptr<Engine>> Engine::create(const core::Config& config,
                                               std::unique_ptr<PacketIo> io) noexcept {
  auto core = core::Core::create(config, *io);
  if (!core) return core.errc();
  std::unique_ptr<Engine> engine(new (std::nothrow) Engine(std::move(*core), std::move(io)));
  if (engine == nullptr) return Errc::no_memory;
  return engine;
}

Engine::Engine(std::unique_ptr<core::Core> core, std::unique_ptr<PacketIo> io) noexcept
    : io_(std::move(io)), core_(std::move(core)) {}

Engine::~Engine() {
  return_buffers();
}

bool Engine::turn(Clock& clock) noexcept {
  bool worked = receive(clock);
  Instant now = clock.now();
  worked |= collect_done(now);
  worked |= collect_path_events(now);
  note_host_state(now);
  if (now >= core_->next_deadline()) {
    core_->handle_timeout(now);
    worked = true;
  }
  worked |= transmit(now, kTransmitBudget);
  return_buffers();
  return worked;
}

void Engine::flush(Instant now) noexcept {
  transmit(now, kTransmitBudget);
}

void Engine::close(Instant now) noexcept {
  core_->close(now);
  while (transmit(now, kTransmitBudget)) {
  }
  return_buffers();
}

void Engine::note_host_state(Instant now) noexcept {
  const IoCounters counted = io_->counters();
  driver_counters_.rx_host_drops.set(counted.rx_host_drops);
  driver_counters_.tx_refused.set(counted.tx_refused);
  driver_counters_.icmp_errors.set(counted.icmp_errors);
  driver_counters_.rx_starved.set(counted.rx_starved);
  driver_counters_.rx_truncated.set(counted.rx_truncated);
  driver_counters_.gso_fallbacks.set(counted.gso_fallbacks);
  driver_counters_.paths_refused.set(counted.paths_refused);
  core_->handle_host_state(now, counted.rx_host_drops, io_->rx_fill());
}

// Reads until the device is dry before any timer runs: a sender that slept finds its ACKs queued,
// and judging losses before reading them would retransmit a whole window (PROTOCOL.md 5.6).
bool Engine::receive(Clock& clock) noexcept {
  std::size_t total = 0;
  while (total < kReceiveBudget) {
    const std::size_t n = io_->rx_burst(rx_);
    if (n == 0) break;
    core_->handle_datagrams(clock.now(), std::span(rx_).first(n));
    return_buffers();
    total += n;
    if (n < rx_.size()) break;  // dry: asking again would delay the answer by two system calls
  }
  return total > 0;
}

bool Engine::transmit(Instant now, std::size_t budget) noexcept {
  std::size_t sent = 0;
  while (sent < budget) {
    const std::size_t n = core_->poll_transmit(now, tx_);
    if (n == 0) break;
    io_->tx_burst(std::span<const TxDatagram>(tx_).first(n));
    collect_done(now);
    sent += n;
    if (!core_->has_transmit()) break;
  }
  return sent > 0;
}

bool Engine::collect_done(Instant now) noexcept {
  bool any = false;
  for (std::size_t n = io_->tx_done(done_); n > 0; n = io_->tx_done(done_)) {
    core_->handle_tx_done(now, std::span<const TxDone>(done_).first(n));
    any = true;
    if (n < done_.size()) break;
  }
  return any;
}

bool Engine::collect_path_events(Instant now) noexcept {
  bool any = false;
  for (std::size_t n = io_->poll_path_events(path_events_); n > 0;
       n = io_->poll_path_events(path_events_)) {
    for (std::size_t i = 0; i < n; ++i) core_->handle_path_event(now, path_events_[i]);
    any = true;
    if (n < path_events_.size()) break;
  }
  return any;
}

void Engine::return_buffers() noexcept {
  std::array<BufferId, 128> buffers;
  for (std::size_t n = core_->poll_release(buffers); n > 0; n = core_->poll_release(buffers)) {
    io_->rx_release(std::span<const BufferId>(buffers).first(n));
  }
}

}  // namespace srd::runtime
