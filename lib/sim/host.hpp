// SPDX-License-Identifier: Apache-2.0
// A simulated host: one endpoint (an unchanged runtime::Engine), its application, a CPU that costs
// time and is taken away now and then, and a clock that runs at its own rate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "srd/runtime/engine.hpp"

#include "base/prng.hpp"
#include "sim/app.hpp"
#include "sim/sim_io.hpp"

namespace srd::sim {

/// What the host's CPU pays, ns. Orders of magnitude of a kernel UDP backend.
struct CpuConfig {
  TimeNs turn_ns = 400;
  TimeNs rx_buffer_ns = 700;  ///< per GRO buffer
  TimeNs rx_datagram_ns = 60;
  TimeNs tx_train_ns = 1'200;  ///< per GSO send
  TimeNs tx_datagram_ns = 60;
  TimeNs event_ns = 60;
  TimeNs wake_ns = 3'000;  ///< from arrival to running, when asleep
};

/// The host does not run: other processes or a hypervisor have its CPU.
struct GapConfig {
  double per_second = 0;
  TimeNs min_ns = 2 * kMs;
  TimeNs max_ns = 8 * kMs;
  double in_turn = 0.3;  ///< share of gaps that fall between reading and the timers of one turn

  /// Two busy pollers and a third process on two cores of a virtual machine.
  static GapConfig crowded_vm() { return {80, 2 * kMs, 16 * kMs, 0.3}; }
};

struct HostConfig {
  std::string name;                 ///< default: "h<number>"
  std::uint32_t leaf = UINT32_MAX;  ///< default: hosts are dealt round
  core::Limits limits{};
  core::Timing timing = core::Timing::kernel();
  bool full_check = true;
  bool kernel_path = true;
  bool stable_id = true;  ///< the endpoint id survives a restart
  IoConfig io{};
  LinkConfig access{};  ///< from the leaf; the uplink is io.nic_rate_bps
  CpuConfig cpu{};
  GapConfig gaps{};
  AppConfig app{};
  std::int32_t clock_ppm = 0;
  std::uint8_t family = 4;
};

class Host {
 public:
  Host(World& world, HostId id, const HostConfig& config);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // --- life ---
  /// Creates the endpoint, with a new incarnation each time.
  void start();
  /// The process dies: no CLOSE.
  void crash();
  /// The application destroys its endpoint: CLOSE to all peers.
  void close();

  void restart() {
    crash();
    start();
  }

  /// The host does not run until `until`.
  void suspend(TimeNs until);

  [[nodiscard]] bool alive() const noexcept { return engine_ != nullptr; }

  // --- running, called by the world ---
  void run_turn(TimeNs now);
  /// Asks for a turn at `at` or soon after.
  void wake(TimeNs at);
  void handle_input();

  // --- parts ---
  [[nodiscard]] HostId id() const noexcept { return id_; }

  [[nodiscard]] const std::string& name() const noexcept { return config_.name; }

  [[nodiscard]] const CpuConfig& cpu() const noexcept { return config_.cpu; }

  [[nodiscard]] HostConfig& config() noexcept { return config_; }

  [[nodiscard]] App& app() noexcept { return app_; }

  [[nodiscard]] core::Core& core() noexcept { return engine_->core(); }

  [[nodiscard]] SimIo& io() noexcept { return *io_; }

  [[nodiscard]] const Address& address() const noexcept { return address_; }

  /// What peers call it: its own address, or that of a balancer in front of it.
  [[nodiscard]] const Address& public_address() const noexcept { return public_address_; }

  void set_public_address(const Address& address) noexcept { public_address_ = address; }

  /// Two processes behind a balancer may share one identity.
  void set_endpoint_id(const wire::EndpointId& id) noexcept { endpoint_id_ = id; }

  [[nodiscard]] const wire::EndpointId& endpoint_id() const noexcept { return endpoint_id_; }

  // --- time ---
  [[nodiscard]] Instant to_local(TimeNs at) const noexcept;
  /// First world time at which the local clock shows `at` or more.
  [[nodiscard]] TimeNs to_world(Instant at) const noexcept;
  /// World time within the current turn: CPU spent so far included.
  [[nodiscard]] TimeNs busy_time() const noexcept;

  [[nodiscard]] Instant local_now() const noexcept { return to_local(busy_time()); }

  void charge(TimeNs ns) noexcept { spent_ns_ += ns; }

  [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

 private:
  class TurnClock;
  void plan_gap(TimeNs now);
  void plan_next_turn(bool worked);
  /// What holds after every turn, whatever peers and network do.
  void check_limits();
  void watch_for_spin(bool moved);
  void drop_endpoint();

  World& world_;
  HostId id_;
  HostConfig config_;
  Prng prng_;
  Address address_{};
  Address public_address_{};
  wire::EndpointId endpoint_id_{};
  std::uint64_t clock_offset_ns_ = 0;
  App app_;
  std::unique_ptr<runtime::Engine> engine_;
  SimIo* io_ = nullptr;  // owned by engine_

  TimeNs turn_start_ = 0, spent_ns_ = 0;
  TimeNs busy_until_ = 0, suspended_until_ = 0;
  TimeNs next_turn_ = kNeverNs;
  TimeNs next_gap_ = kNeverNs, gap_in_turn_ns_ = 0;
  TimeNs idle_since_ = 0;
  Instant latest_{};  // that the engine was told
  std::uint32_t lives_ = 0, idle_turns_ = 0;
  std::uint64_t turns_ = 0;
  std::map<std::uint32_t, std::uint64_t> in_flight_;  // bytes after the last turn, by host
};

}  // namespace srd::sim
