// SPDX-License-Identifier: Apache-2.0
// Keeps the one thread that works on a poller's endpoints and others that want to look at them
// apart, at the worker's least cost: two plain stores and a load per call, no lock, no fence. Who
// looks pays: it has membarrier(2) put the missing fence into every running thread of the process
// (microseconds), then waits until the worker is out, which it is between two calls and while it
// sleeps.
#pragma once

#include <atomic>
#include <mutex>

namespace srd::runtime {

class ReaderGate {
 public:
  /// `may_use_membarrier` false: as on a kernel without it; the worker then has a fence per call.
  explicit ReaderGate(bool may_use_membarrier = true) noexcept;
  ReaderGate(const ReaderGate&) = delete;
  ReaderGate& operator=(const ReaderGate&) = delete;
  ~ReaderGate() = default;

  /// The worker, one thread at a time. Waits while somebody looks.
  void enter() noexcept {
    if (light_.load(std::memory_order_relaxed)) [[likely]] {
      inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // against the compiler
    } else {
      inside_.exchange(true, std::memory_order_seq_cst);
    }
    if (reading_.load(std::memory_order_seq_cst)) [[unlikely]]
      let_read();
  }

  void leave() noexcept { inside_.store(false, std::memory_order_release); }

  /// Any other thread, and the worker where it is not inside.
  void begin_reading() noexcept;
  void end_reading() noexcept;

 private:
  void let_read() noexcept;

  std::atomic<bool> light_;
  std::atomic<bool> inside_{false};
  std::atomic<bool> reading_{false};
  std::atomic<bool> worker_waits_{false};  // it comes before the next reader
  std::mutex mutex_;  // of the readers; the worker takes it only to wait for one
};

}  // namespace srd::runtime
