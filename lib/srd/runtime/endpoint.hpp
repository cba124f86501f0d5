// SPDX-License-Identifier: Apache-2.0
// One endpoint of an application: an engine, and what can be read of it from any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "srd/runtime/context.hpp"
#include "srd/runtime/engine.hpp"

namespace srd::runtime {

class Poller;

class Endpoint {
 public:
  Endpoint(Poller& poller, std::unique_ptr<Engine> engine, const core::Config& config,
           const Address& address, ProcessStamp stamp) noexcept;

  [[nodiscard]] Poller& poller() const noexcept { return poller_; }

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }

  [[nodiscard]] core::Core& core() noexcept { return engine_->core(); }

  [[nodiscard]] const core::Core& core() const noexcept { return engine_->core(); }

  [[nodiscard]] ProcessStamp stamp() const noexcept { return stamp_; }

  [[nodiscard]] const Address& address() const noexcept { return address_; }

  [[nodiscard]] const core::Config& config() const noexcept { return config_; }

  /// Why srd_send() says -EAGAIN, ready-made, because that answer is part of normal work.
  [[nodiscard]] const char* full_text() const noexcept { return full_text_.data(); }

  /// Any thread.
  void read_stats(srd_stats& out) const noexcept;

  /// What has gone wrong here and can be mended, a line each. Any thread.
  [[nodiscard]] std::vector<std::string> advice() const;

  /// Something has gone wrong for the first time that the log should tell of: take_warnings().
  [[nodiscard]] bool has_warnings() const noexcept {
    for (std::size_t i = 0; i < kAdvised.size(); ++i) {
      if (!told_[i] && (engine_->driver_counters().*kAdvised[i].counted).value() != 0) return true;
    }
    return false;
  }

  /// Appends its lines, ready for the log. Each thing that goes wrong is told of once.
  void take_warnings(std::vector<std::string>& out);

 private:
  /// What a driver has advice on once it counts.
  struct Advised {
    Counter Engine::DriverCounters::*counted;
    std::uint64_t IoCounters::*in_driver;
  };

  static constexpr std::array<Advised, 3> kAdvised{{
      {&Engine::DriverCounters::rx_host_drops, &IoCounters::rx_host_drops},
      {&Engine::DriverCounters::gso_fallbacks, &IoCounters::gso_fallbacks},
      {&Engine::DriverCounters::paths_refused, &IoCounters::paths_refused},
  }};

  Poller& poller_;
  std::unique_ptr<Engine> engine_;
  core::Config config_;
  Address address_;
  ProcessStamp stamp_;
  std::array<char, 192> full_text_{};
  std::array<bool, kAdvised.size()> told_{};
};

/// The core's configuration for an endpoint of `context`. Errors: invalid_argument, not_supported,
/// with this thread's error text set.
Errc make_core_config(const Context& context, const srd_endpoint_config& wanted,
                      core::Config& out) noexcept;

}  // namespace srd::runtime

struct srd_endpoint final : srd::runtime::Endpoint {
  using Endpoint::Endpoint;
};
