// SPDX-License-Identifier: Apache-2.0
// One endpoint of an application: an engine, and what can be read of it from any thread.
#pragma once

#include <memory>

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

 private:
  Poller& poller_;
  std::unique_ptr<Engine> engine_;
  core::Config config_;
  Address address_;
  ProcessStamp stamp_;
  std::array<char, 192> full_text_{};
};

/// The core's configuration for an endpoint of `context`. Errors: invalid_argument, not_supported,
/// with this thread's error text set.
Errc make_core_config(const Context& context, const srd_endpoint_config& wanted,
                      core::Config& out) noexcept;

}  // namespace srd::runtime

struct srd_endpoint final : srd::runtime::Endpoint {
  using Endpoint::Endpoint;
};
