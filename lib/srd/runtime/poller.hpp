// SPDX-License-Identifier: Apache-2.0
// Progress of all endpoints of one thread: turns their engines, harvests completions in turn,
// sleeps on one descriptor. With `shared`, a lock inside lets any thread make the calls.
//
// Sleeping: the descriptor is an epoll set of every endpoint's device descriptor, one timer and one
// event counter. arm() says 0 only if nothing can be done now and the timer stands at the earliest
// deadline, so no wake-up is lost between arm() and the sleep: arrivals and wakes are
// level-triggered.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "srd/runtime/context.hpp"
#include "srd/runtime/endpoint.hpp"
#include "srd/runtime/reader_gate.hpp"

#include "base/unique_fd.hpp"

namespace srd::runtime {

class Poller {
 public:
  struct Config {
    bool shared = false;
    std::uint64_t spin_ns = 0;
  };

  /// Its three descriptors; none where the device cannot sleep.
  struct Descriptors {
    UniqueFd epoll, timer, event;
  };

  /// Errors: too_many_files, no_memory.
  static Result<Descriptors> open_descriptors() noexcept;

  Poller(Context& context, const Config& config, Descriptors descriptors, ProcessStamp stamp);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Number of completions, or a negated Errc; as the C functions of the same names.
  int poll(std::span<srd_completion> out) noexcept;
  int wait(std::span<srd_completion> out, std::uint64_t timeout_ns) noexcept;
  int arm() noexcept;
  void flush() noexcept;
  void wake() noexcept;

  /// Errors: those of epoll_ctl (too_many_files, no_memory).
  Errc attach(srd_endpoint& endpoint) noexcept;
  /// Tells its peers (CLOSE) as well; the caller frees it.
  void detach(srd_endpoint& endpoint) noexcept;
  [[nodiscard]] std::size_t endpoints() const noexcept;

  [[nodiscard]] Context& context() const noexcept { return context_; }

  [[nodiscard]] Clock& clock() const noexcept { return context_.clock(); }

  [[nodiscard]] ProcessStamp stamp() const noexcept { return stamp_; }

  [[nodiscard]] int fd() const noexcept { return descriptors_.epoll.get(); }

  [[nodiscard]] bool can_sleep() const noexcept { return descriptors_.epoll.is_open(); }

  /// Exclusive use of the poller's endpoints for one call; not to be nested. On a shared poller it
  /// ends by seeing to it that a thread asleep in wait(), or on fd() after arm(), learns what
  /// changed.
  class Hold {
   public:
    explicit Hold(Poller& poller) noexcept : poller_(poller) {
      if (poller_.shared_) {
        poller_.mutex_.lock();
      } else {
        poller_.gate_.enter();
      }
    }

    ~Hold() {
      if (!poller_.shared_) {
        poller_.gate_.leave();
        return;
      }
      if (poller_.somebody_sleeps()) poller_.inform_sleepers();
      poller_.mutex_.unlock();
    }

    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Poller& poller_;
  };

  /// A look at the poller's endpoints from any thread, outside of a Hold; changes nothing. Waits
  /// for the end of the call that is running, holds the next one up.
  class Look {
   public:
    explicit Look(Poller& poller) noexcept : poller_(poller) {
      if (poller_.shared_) {
        poller_.mutex_.lock();
      } else {
        poller_.gate_.begin_reading();
      }
    }

    ~Look() {
      if (poller_.shared_) {
        poller_.mutex_.unlock();
      } else {
        poller_.gate_.end_reading();
      }
    }

    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    Poller& poller_;
  };

  /// Sends now what was queued if the thread that would do so is asleep. Within a Hold.
  void flush_for_sleepers() noexcept {
    if (somebody_sleeps()) flush_all();
  }

 private:
  [[nodiscard]] bool somebody_sleeps() const noexcept {
    return sleepers_ > 0 || armed_by_ != std::thread::id();
  }

  /// The calling thread is awake: what it armed for itself is over. True if no other one sleeps.
  bool note_awake() noexcept {
    if (armed_by_ == std::this_thread::get_id()) armed_by_ = std::thread::id();
    return !somebody_sleeps();
  }

  bool turn_all() noexcept;
  void flush_all() noexcept;
  std::size_t harvest(std::span<srd_completion> out) noexcept;
  int arm_locked() noexcept;
  void set_timer(Instant now, Instant deadline) noexcept;
  void inform_sleepers() noexcept;
  void signal() noexcept;
  void drain_signal() noexcept;
  void serve_kicks() noexcept;
  /// To the log, what went wrong at an endpoint for the first time. Outside of a Hold.
  void warn() noexcept;

  Context& context_;
  const bool shared_;
  const std::uint64_t spin_ns_;
  Descriptors descriptors_;
  ProcessStamp stamp_;

  ReaderGate gate_;           // of a poller of one thread: what mutex_ is to a shared one
  mutable std::mutex mutex_;  // everything below that is not atomic, and the endpoints' engines
  std::vector<srd_endpoint*> endpoints_;
  std::size_t next_ = 0;                  // whose completions come first
  std::array<core::Event, 32> events_{};  // a member, so that it need not be cleared each time
  Instant armed_ = kNever;                // what the timer is set to; may have passed
  unsigned sleepers_ = 0;                 // threads in epoll_wait
  std::thread::id armed_by_;  // a foreign loop armed the poller and may sleep on its descriptor

  std::atomic<bool> signaled_{false};        // the event counter is, or is about to be, above zero
  std::atomic<bool> wake_requested_{false};  // wake() was called: one wait() shall end
  std::atomic<bool> driving_{false};   // a thread is in poll() or between two sleeps of wait()
  std::atomic<bool> kick_{false};      // another one was turned away meanwhile
  std::atomic<bool> warnings_{false};  // an endpoint has some
};

}  // namespace srd::runtime

struct srd_poller final : srd::runtime::Poller {
  using Poller::Poller;
};
