// SPDX-License-Identifier: Apache-2.0
// What the simulator tests share: a world with two hosts and the usual questions to it. A broken
// promise of the protocol fails the test by itself; SRD_SEED=N runs every scenario with another
// seed.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace srd::sim {

using wire::PacketType;

class SimTest : public ::testing::Test {
 protected:
  /// Four paths of 1 Gb/s, 10 us per link: a quiet little fabric.
  static FabricConfig quiet_fabric() {
    FabricConfig fabric;
    fabric.link.rate_bps = 1'000'000'000;
    fabric.link.delay_ns = 10 * kUs;
    fabric.link.queue_bytes = 512U << 10;
    return fabric;
  }

  /// A host whose own links never are the bottleneck.
  static HostConfig fast_host() {
    HostConfig host;
    host.io.nic_rate_bps = host.access.rate_bps = 100'000'000'000;
    host.access.queue_bytes = 8U << 20;
    return host;
  }

  /// Makes the world and hosts a and b.
  World& build(const FabricConfig& fabric = quiet_fabric(), const HostConfig& first = fast_host(),
               const HostConfig& second = fast_host()) {
    const char* text = std::getenv("SRD_SEED");
    const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : 0x5eed;
    world_ = std::make_unique<World>(seed + variant, fabric);
    world_->set_verbose(std::getenv("SRD_SIM_VERBOSE") != nullptr);
    a = world_->add_host(first);
    b = world_->add_host(second);
    return *world_;
  }

  void TearDown() override {
    if (!world_) return;
    for (const std::string& failure : world_->checker().failures()) ADD_FAILURE() << failure;
  }

  World& world() { return *world_; }

  core::Core& core(HostId id) { return world_->host(id).core(); }

  const core::Counters& counters(HostId id) { return core(id).counters(); }

  Fabric& fabric() { return world_->fabric(); }

  const MessageRecord& message(MessageNumber number) { return world_->checker().message(number); }

  MessageNumber send(HostId from, HostId to, std::uint64_t bytes) {
    return world_->send(from, SendSpec{.to = to, .bytes = bytes});
  }

  void send_many(HostId from, HostId to, std::uint64_t bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) send(from, to, bytes);
  }

  /// A context between a and b, with round-trip times known.
  void warm_up() {
    send(a, b, 1000);
    ASSERT_TRUE(world_->run_until_settled(kSecond));
    world_->run_for(10 * kMs);
  }

  /// Keeps `depth` messages on their way until stop_flow().
  void start_flow(HostId from, HostId to, std::uint64_t bytes, std::size_t depth = 64) {
    flowing_ = true;
    world_->host(from).app().on_event = [this, from, to, bytes](const core::Event& event) {
      if (flowing_ && event.kind == core::Event::Kind::send_done) send(from, to, bytes);
    };
    send_many(from, to, bytes, depth);
  }

  void stop_flow() { flowing_ = false; }

  /// Goodput at `to` over the next `span`, bits per second.
  double goodput_bps(HostId to, TimeNs span) {
    const std::uint64_t before = world_->checker().delivered_bytes_at(to);
    world_->run_for(span);
    return static_cast<double>(world_->checker().delivered_bytes_at(to) - before) * 8e9 /
           static_cast<double>(span);
  }

  /// What one path of the quiet fabric carries as payload.
  static constexpr double kPathBps = 1e9 * 1408 / (1408 + 40 + 66);

  /// Everything completes, and nothing is left behind.
  void settle(TimeNs limit = 20 * kSecond) {
    stop_flow();
    EXPECT_TRUE(world_->run_until_settled(limit))
        << world_->checker().outstanding() << " messages outstanding";
    world_->finish();
  }

  HostId a = kNoHost, b = kNoHost;
  std::uint64_t variant =
      0;  ///< another one gives other ports, nonces, ... from the next build() on

 private:
  std::unique_ptr<World> world_;
  bool flowing_ = false;
};

}  // namespace srd::sim
