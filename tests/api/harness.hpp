// SPDX-License-Identifier: Apache-2.0
// What API tests share: two endpoints on one poller over the in-memory driver, and waiting with a
// limit for what must happen.
#pragma once

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "srd/srd.hpp"

#include "support/pair_driver.hpp"

namespace srd::test {

/// Long enough for loaded machines and sanitizers; only a failing test waits for it.
inline constexpr std::chrono::seconds kPatience{20};

/// True if srd_last_error() contains `part`; prints the text if not.
inline ::testing::AssertionResult error_says(const std::string& part) {
  const std::string text = srd_last_error();
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << part << "\" is not in \"" << text << "\"";
}

/// No faults before and after each test.
class PairTest : public ::testing::Test {
 protected:
  PairTest() {
    register_pair_driver();
    heal();
  }

  ~PairTest() override { heal(); }

  static void heal() {
    pair_faults().drop_one_in = 0;
    pair_faults().dead_port = 0;
    pair_faults().host_drops = 0;
  }
};

/// What there is; an error fails the test.
inline std::span<Completion> harvest(Poller& poller, std::span<Completion> out) {
  std::error_code error;
  const auto found = poller.poll(out, error);
  EXPECT_FALSE(error) << last_error();
  return found;
}

/// The same, after waiting for it.
inline std::span<Completion> harvest(Poller& poller, std::span<Completion> out,
                                     std::chrono::nanoseconds timeout) {
  std::error_code error;
  const auto found = poller.wait(out, timeout, error);
  EXPECT_FALSE(error) << last_error();
  return found;
}

/// alice and bob on one poller. Messages and sends that ended are collected by run_until().
class TwoEndpoints {
 public:
  explicit TwoEndpoints(const EndpointConfig& config = {}, const PollerConfig& poller_config = {},
                        const char* device = "pair:") {
    register_pair_driver();
    context = Context::open(device).value();
    poller = context.make_poller(poller_config).value();
    alice = poller.make_endpoint(config).value();
    bob = poller.make_endpoint(config).value();
    to_bob = alice.resolve(bob.address()).value();
  }

  template <class Done>
  ::testing::AssertionResult run_until(Done done) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    std::array<Completion, 64> completions;
    while (!done()) {
      if (std::chrono::steady_clock::now() > give_up) {
        return ::testing::AssertionFailure() << "did not happen within the time limit";
      }
      for (const Completion& c : harvest(poller, completions, std::chrono::milliseconds(10)))
        take(c);
    }
    return ::testing::AssertionSuccess();
  }

  void take(const Completion& c) {
    if (c.op == SRD_OP_RECEIVE) messages.emplace_back(c);
    if (c.op == SRD_OP_SEND) sends.push_back(c);
    if (c.op == SRD_OP_PEER) peers.push_back(c);
  }

  /// Both sides know each other afterwards.
  ::testing::AssertionResult connect() {
    messages.clear();
    sends.clear();
    if (alice.send(to_bob, as_bytes("hi"))) return ::testing::AssertionFailure() << last_error();
    const auto result = run_until([&] { return !messages.empty() && !sends.empty(); });
    messages.clear();
    sends.clear();
    return result;
  }

  Context context;
  Poller poller;
  Endpoint alice, bob;
  Peer to_bob = kInvalidPeer;
  std::vector<Message> messages;  // before the endpoints in destruction
  std::vector<Completion> sends, peers;
};

/// Bytes that tell where they come from.
inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> out(bytes);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : out) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return out;
}

inline std::vector<std::byte> contents(const Message& message) {
  std::vector<std::byte> out(message.bytes());
  EXPECT_EQ(message.copy_to(out), out.size());
  return out;
}

}  // namespace srd::test
