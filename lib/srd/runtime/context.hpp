// SPDX-License-Identifier: Apache-2.0
// One device as an application opened it: the driver, what its string said, and the clock its
// pollers go by. It outlives its pollers.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "srd/driver.hpp"
#include "srd/runtime/drivers.hpp"
#include "srd/runtime/fork_guard.hpp"

namespace srd::runtime {

class Context {
 public:
  Context(OpenedDevice device, std::string text, Clock& clock, ProcessStamp stamp)
      : device_(std::move(device)),
        text_(std::move(text)),
        capabilities_(device_.driver->capabilities()),
        clock_(clock),
        stamp_(stamp) {}

  [[nodiscard]] Driver& driver() const noexcept { return *device_.driver; }

  [[nodiscard]] const QueueConfig& queue() const noexcept { return device_.queue; }

  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  [[nodiscard]] Clock& clock() const noexcept { return clock_; }

  [[nodiscard]] ProcessStamp stamp() const noexcept { return stamp_; }

  void add_poller() noexcept { ++pollers_; }

  void remove_poller() noexcept { --pollers_; }

  [[nodiscard]] unsigned pollers() const noexcept { return pollers_; }

 private:
  OpenedDevice device_;
  std::string text_;
  Capabilities capabilities_;
  Clock& clock_;
  ProcessStamp stamp_;
  std::atomic<unsigned> pollers_{0};
};

}  // namespace srd::runtime

struct srd_context final : srd::runtime::Context {
  using Context::Context;
};
