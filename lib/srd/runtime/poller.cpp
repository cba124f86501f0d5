// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/poller.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/error_text.hpp"
#include "base/log.hpp"

namespace srd::runtime {
namespace {

Errc from_errno(int error) noexcept {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return Errc::too_many_files;
    case ENOSPC:  // fs.epoll.max_user_watches
    case ENOMEM:
      return Errc::no_memory;
    default:
      return Errc::internal;
  }
}

timespec to_timespec(std::uint64_t ns) noexcept {
  timespec time{};
  time.tv_sec = static_cast<time_t>(ns / 1'000'000'000U);
  time.tv_nsec = static_cast<long>(ns % 1'000'000'000U);
  return time;
}

bool watch(int epoll, int fd) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Sleeps on `epoll` for `timeout_ns` at most, UINT64_MAX: for ever. False if a signal ended it.
bool epoll_sleep(int epoll, std::uint64_t timeout_ns) noexcept {
  epoll_event event{};
  if (timeout_ns == UINT64_MAX) return epoll_wait(epoll, &event, 1, -1) >= 0;
#if defined(SYS_epoll_pwait2)
  const timespec timeout = to_timespec(timeout_ns);
  const long count = syscall(SYS_epoll_pwait2, epoll, &event, 1, &timeout, nullptr, 0);
  if (count >= 0) return true;
  if (errno == EINTR) return false;
#endif
  // Linux before 5.11 knows milliseconds only; rounded up, or a short wait would spin.
  constexpr std::uint64_t kLongestMs = 1'000'000'000;
  const std::uint64_t ms = timeout_ns / 1'000'000 + (timeout_ns % 1'000'000 != 0 ? 1 : 0);
  return epoll_wait(epoll, &event, 1, static_cast<int>(std::min(ms, kLongestMs))) >= 0;
}

void fill(srd_completion& out, srd_endpoint* endpoint, const core::Event& event) noexcept {
  out = {};
  out.channel = event.channel;
  out.status = -static_cast<int>(event.status);
  out.peer = static_cast<srd_peer>(event.peer);
  out.endpoint = endpoint;
  out.bytes = event.bytes;
  switch (event.kind) {
    case core::Event::Kind::message:
      out.op = SRD_OP_RECEIVE;
      out.segment_count = event.segment_count;
      out.data = event.data;
      out.buffer = static_cast<srd_buffer>(event.message);
      break;
    case core::Event::Kind::send_done:
      out.op = SRD_OP_SEND;
      out.user_data = event.user_data;
      break;
    case core::Event::Kind::peer:
      out.op = SRD_OP_PEER;
      break;
  }
}

}  // namespace

Result<Poller::Descriptors> Poller::open_descriptors() noexcept {
  Descriptors made;
  made.epoll = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!made.epoll.is_open()) return from_errno(errno);
  made.timer = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!made.timer.is_open()) return from_errno(errno);
  made.event = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.event.is_open()) return from_errno(errno);
  for (const UniqueFd* fd : {&made.timer, &made.event}) {
    if (!watch(made.epoll.get(), fd->get())) return from_errno(errno);
  }
  return made;
}

Poller::Poller(Context& context, const Config& config, Descriptors descriptors, ProcessStamp stamp)
    : context_(context),
      shared_(config.shared),
      spin_ns_(config.spin_ns),
      descriptors_(std::move(descriptors)),
      stamp_(stamp) {
  context_.add_poller();
}

Poller::~Poller() {
  context_.remove_poller();
}

// ---- progress
// -------------------------------------------------------------------------------------

int Poller::poll(std::span<srd_completion> out) noexcept {
  if (!shared_) {
    std::size_t count = 0;
    {
      const Hold hold(*this);
      drain_signal();
      turn_all();
      count = harvest(out);
    }
    if (warnings_.load(std::memory_order_relaxed)) [[unlikely]]
      warn();
    return static_cast<int>(count);
  }
  // The kick stands before the attempt: if that fails, whoever drives has not yet looked for kicks.
  kick_.store(true);
  if (driving_.exchange(true)) {
    return fail_with(Errc::busy,
                     "srd_poller_poll: another thread is driving this shared poller and "
                     "will look at the queues again before it returns");
  }
  std::size_t count = 0;
  {
    const Hold hold(*this);
    kick_.store(false);
    if (note_awake()) drain_signal();  // else it is the sleeper's to see
    turn_all();
    count = harvest(out);
  }
  driving_.store(false);
  serve_kicks();
  if (warnings_.load(std::memory_order_relaxed)) [[unlikely]]
    warn();
  return static_cast<int>(count);
}

// Threads that were turned away rely on this one to send what they queued.
void Poller::serve_kicks() noexcept {
  while (kick_.load() && !driving_.exchange(true)) {
    {
      const Hold hold(*this);
      kick_.store(false);
      flush_all();
    }
    driving_.store(false);
  }
}

void Poller::flush() noexcept {
  const Hold hold(*this);
  flush_all();
}

bool Poller::turn_all() noexcept {
  bool worked = false;
  for (srd_endpoint* endpoint : endpoints_) {
    worked |= endpoint->engine().turn(clock());
    if (endpoint->has_warnings()) [[unlikely]]
      warnings_.store(true, std::memory_order_relaxed);
  }
  return worked;
}

// The sink of the log may take its time, or look at an endpoint: nobody else must wait for it.
void Poller::warn() noexcept {
  try {
    std::vector<std::string> lines;
    {
      const Hold hold(*this);
      warnings_.store(false, std::memory_order_relaxed);
      for (srd_endpoint* endpoint : endpoints_) {
        if (endpoint->has_warnings()) endpoint->take_warnings(lines);
      }
    }
    for (const std::string& line : lines) log(LogLevel::warning, "%s", line.c_str());
  } catch (const std::exception&) {
    // No memory for a warning: the counters and srd_endpoint_advice() tell the same.
  }
}

void Poller::flush_all() noexcept {
  const Instant now = clock().now();
  for (srd_endpoint* endpoint : endpoints_) endpoint->engine().flush(now);
}

// A share per visit, so that one busy endpoint cannot starve the others of a small `out`.
std::size_t Poller::harvest(std::span<srd_completion> out) noexcept {
  std::size_t count = 0;
  for (std::size_t idle = 0; count < out.size() && idle < endpoints_.size();) {
    next_ = next_ < endpoints_.size() ? next_ : 0;
    srd_endpoint* endpoint = endpoints_[next_++];
    const std::size_t n = endpoint->core().poll_events(
        std::span(events_).first(std::min(events_.size(), out.size() - count)));
    for (std::size_t i = 0; i < n; ++i) fill(out[count++], endpoint, events_[i]);
    idle = n == 0 ? idle + 1 : 0;
  }
  return count;
}

// ---- sleeping
// -------------------------------------------------------------------------------------

int Poller::wait(std::span<srd_completion> out, std::uint64_t timeout_ns) noexcept {
  Instant now = clock().now();
  const Instant give_up = timeout_ns < UINT64_MAX - now.ns ? Instant{now.ns + timeout_ns} : kNever;
  Instant spin_until{now.ns + spin_ns_};
  bool slept = false;
  for (bool interrupted = false;;) {
    const bool drives = !driving_.exchange(true);
    std::size_t count = 0;
    bool worked = false;
    {
      const Hold hold(*this);
      if (slept) --sleepers_;
      note_awake();
      if (drives) kick_.store(false);
      drain_signal();
      worked = turn_all();
      count = harvest(out);
    }
    slept = false;
    if (warnings_.load(std::memory_order_relaxed)) [[unlikely]]
      warn();
    if (drives) {
      driving_.store(false);
      if (shared_) serve_kicks();
    }
    const bool woken = wake_requested_.exchange(false);
    now = clock().now();
    if (count > 0 || woken || interrupted || now >= give_up) return static_cast<int>(count);
    if (worked) spin_until = Instant{now.ns + spin_ns_};
    if (now < spin_until) continue;
    {
      const Hold hold(*this);
      // A thread in poll() may have drained the signal of a wake that came since the last look.
      if (wake_requested_.load()) continue;
      const int armed = arm_locked();
      if (armed < 0) return armed;
      if (armed > 0) continue;
      ++sleepers_;
      slept = true;
    }
    interrupted = !epoll_sleep(fd(), give_up == kNever ? UINT64_MAX : give_up.ns - now.ns);
  }
}

int Poller::arm() noexcept {
  const Hold hold(*this);
  // A thread in poll() may have drained the signal of a wake that this one has not seen.
  if (shared_ && wake_requested_.exchange(false)) return 1;
  const int armed = arm_locked();
  if (armed == 0) armed_by_ = std::this_thread::get_id();
  return armed;
}

int Poller::arm_locked() noexcept {
  if (signaled_.load()) return 1;
  const Instant now = clock().now();
  Instant deadline = kNever;
  for (srd_endpoint* endpoint : endpoints_) {
    core::Core& core = endpoint->core();
    if (core.has_events() || core.has_transmit()) return 1;
    deadline = std::min(deadline, core.next_deadline());
    switch (endpoint->engine().io().arm()) {
      case Arm::armed:
        break;
      case Arm::work_pending:
        return 1;
      case Arm::unsupported:
        return fail(Errc::not_supported,
                    "srd_poller_arm: device \"%s\" cannot sleep; call srd_poller_poll() in a loop",
                    context_.text().c_str());
    }
  }
  if (deadline <= now) return 1;
  set_timer(now, deadline);
  return 0;
}

// Deadlines mostly move away. A timer that fires early costs one needless wake-up, setting it at
// every sleep costs a system call each time. A timer that has fired is set anew in any case: that
// is what makes its descriptor unreadable again.
void Poller::set_timer(Instant now, Instant deadline) noexcept {
  if (armed_ > now && armed_ <= deadline) return;
  itimerspec setting{};  // zero: disarmed
  if (deadline != kNever) setting.it_value = to_timespec(deadline.ns);
  timerfd_settime(descriptors_.timer.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
  armed_ = deadline;
}

void Poller::inform_sleepers() noexcept {
  if (arm_locked() != 0) signal();
}

void Poller::wake() noexcept {
  wake_requested_.store(true);
  signal();
}

void Poller::signal() noexcept {
  if (signaled_.exchange(true)) return;
  const std::uint64_t one = 1;
  const int saved = errno;  // wake() may run in a signal handler
  [[maybe_unused]] const auto written = ::write(descriptors_.event.get(), &one, sizeof one);
  errno = saved;
}

// The flag falls before the counter is read: a signal in between leaves the flag up, and
// arm_locked() goes by the flag.
void Poller::drain_signal() noexcept {
  if (!signaled_.load(std::memory_order_relaxed)) return;
  signaled_.store(false);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptors_.event.get(), &count, sizeof count);
}

// ---- endpoints
// ------------------------------------------------------------------------------------

Errc Poller::attach(srd_endpoint& endpoint) noexcept {
  const Hold hold(*this);
  const int fd_of_device = endpoint.engine().io().event_fd();
  try {
    endpoints_.push_back(&endpoint);
  } catch (const std::bad_alloc&) {
    return Errc::no_memory;
  }
  if (can_sleep() && fd_of_device >= 0 && !watch(fd(), fd_of_device)) {
    endpoints_.pop_back();
    return from_errno(errno);
  }
  return Errc::ok;
}

void Poller::detach(srd_endpoint& endpoint) noexcept {
  const Hold hold(*this);
  const int fd_of_device = endpoint.engine().io().event_fd();
  if (can_sleep() && fd_of_device >= 0) {
    epoll_ctl(fd(), EPOLL_CTL_DEL, fd_of_device, nullptr);
  }
  std::erase(endpoints_, &endpoint);
  endpoint.engine().close(clock().now());
}

std::size_t Poller::endpoints() const noexcept {
  const std::unique_lock lock(mutex_);
  return endpoints_.size();
}

}  // namespace srd::runtime
