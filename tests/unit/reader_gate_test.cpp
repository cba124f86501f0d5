// SPDX-License-Identifier: Apache-2.0
// The gate between a poller's thread and those that read: never both at once, with the barrier of
// the kernel and without.
#include "srd/runtime/reader_gate.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

namespace srd::runtime {
namespace {

class ReaderGateTest : public ::testing::TestWithParam<bool> {};

TEST_P(ReaderGateTest, ReadersSeeNoHalfWrittenState) {
  ReaderGate gate(GetParam());
  std::array<std::uint64_t, 8> state{};  // equal whenever nobody writes
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load()) {
      gate.enter();
      for (std::uint64_t& part : state) ++part;
      gate.leave();
    }
  });
  std::uint64_t last = 0;
  unsigned uneven = 0, backwards = 0;
  const auto read = [&](std::uint64_t& newest) {
    for (int i = 0; i < 2000; ++i) {
      gate.begin_reading();
      const std::array<std::uint64_t, 8> seen = state;
      gate.end_reading();
      for (const std::uint64_t part : seen) uneven += part != seen[0] ? 1U : 0U;
      backwards += seen[0] < newest ? 1U : 0U;
      newest = seen[0];
    }
  };
  read(last);
  stop = true;
  worker.join();
  EXPECT_EQ(uneven, 0U);
  EXPECT_EQ(backwards, 0U);
  EXPECT_LE(last, state[0]);
}

TEST_P(ReaderGateTest, ManyReadersDoNotKeepTheWorkerOut) {
  ReaderGate gate(GetParam());
  std::uint64_t written = 0, read = 0;  // guarded by the gate
  std::atomic<int> readers{3};
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      std::uint64_t seen = 0;
      for (int i = 0; i < 300 || seen < 10; ++i) {  // without a pause
        gate.begin_reading();
        seen = written;
        ++read;
        gate.end_reading();
      }
      --readers;
    });
  }
  while (readers.load() > 0) {
    gate.enter();
    ++written;
    gate.leave();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(read, 900U);
  EXPECT_GE(written, 10U);
}

TEST_P(ReaderGateTest, TheWorkerItselfMayReadOutside) {
  ReaderGate gate(GetParam());
  gate.enter();
  gate.leave();
  gate.begin_reading();
  gate.end_reading();
  gate.enter();
  gate.leave();
}

INSTANTIATE_TEST_SUITE_P(Barriers, ReaderGateTest, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Kernel" : "Fence"; });

}  // namespace
}  // namespace srd::runtime
