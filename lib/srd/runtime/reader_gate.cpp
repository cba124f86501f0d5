// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/reader_gate.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace srd::runtime {
namespace {

bool membarrier(int command) noexcept {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

// A turn of the worker takes microseconds, milliseconds under load.
void pause_for(unsigned tries) noexcept {
  constexpr unsigned kYields = 100;
  const timespec nap{0, tries < kYields ? 0 : 20'000};
  ::nanosleep(&nap, nullptr);
}

}  // namespace

// Registered anew for each: a forked child may have lost it.
ReaderGate::ReaderGate(bool may_use_membarrier) noexcept
    : light_(may_use_membarrier && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {}

// After the barrier either the worker's store to inside_ is seen here, or its load of reading_
// comes after the store here, and it waits in let_read().
void ReaderGate::begin_reading() noexcept {
  for (unsigned tries = 0; worker_waits_.load(std::memory_order_relaxed); ++tries) pause_for(tries);
  mutex_.lock();
  reading_.store(true, std::memory_order_seq_cst);
  if (light_.load() && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
    // A sandbox took the call away. Fences from now on; a store of before is seen long before the
    // end of the nap.
    constexpr timespec kNap{0, 10'000'000};
    light_.store(false);
    ::nanosleep(&kNap, nullptr);
  }
  for (unsigned tries = 0; inside_.load(std::memory_order_seq_cst); ++tries) pause_for(tries);
}

void ReaderGate::end_reading() noexcept {
  reading_.store(false, std::memory_order_release);
  mutex_.unlock();
}

void ReaderGate::let_read() noexcept {
  inside_.store(false, std::memory_order_release);
  worker_waits_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);  // its holder has read what it wanted
  worker_waits_.store(false, std::memory_order_relaxed);
  inside_.store(true, std::memory_order_relaxed);
}

}  // namespace srd::runtime
