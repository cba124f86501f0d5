// SPDX-License-Identifier: Apache-2.0
// What the protocol core costs per datagram: messages of one size through two cores in virtual
// time. The time of one side only is counted; items are datagrams that carry messages.
#include <chrono>

#include <benchmark/benchmark.h>

#include "core_pair.hpp"

namespace srd::perf {
namespace {

constexpr std::uint64_t kWarmUpMessages = 20'000;

enum class Half { sender, receiver };

void run(benchmark::State& state, Half half) {
  const auto message_bytes = static_cast<std::uint32_t>(state.range(0));
  CorePair pair(message_bytes);
  pair.run_until_received(kWarmUpMessages);
  const std::uint64_t received_before = pair.received_messages();
  std::uint64_t datagrams = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t sent = pair.turn_sender();
    const auto middle = std::chrono::steady_clock::now();
    const std::size_t taken = pair.turn_receiver();
    const auto end = std::chrono::steady_clock::now();
    pair.advance();
    datagrams += half == Half::sender ? sent : taken;
    const std::chrono::duration<double> seconds =
        half == Half::sender ? middle - start : end - middle;
    state.SetIterationTime(seconds.count());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(datagrams));
  state.SetBytesProcessed(
      static_cast<std::int64_t>((pair.received_messages() - received_before) * message_bytes));
}

void BM_CoreTransmit(benchmark::State& state) {
  run(state, Half::sender);
}

void BM_CoreReceive(benchmark::State& state) {
  run(state, Half::receiver);
}

BENCHMARK(BM_CoreTransmit)
    ->ArgName("message_bytes")
    ->Arg(64)
    ->Arg(1408)
    ->Arg(65536)
    ->UseManualTime();
BENCHMARK(BM_CoreReceive)
    ->ArgName("message_bytes")
    ->Arg(64)
    ->Arg(1408)
    ->Arg(65536)
    ->UseManualTime();

}  // namespace
}  // namespace srd::perf
