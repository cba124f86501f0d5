// SPDX-License-Identifier: Apache-2.0
// Requests and answers of fixed sizes over kernel TCP, one epoll thread at each end: the peer that
// perf/compare.py sets beside `srd-perf --latency`. Closed loop (each connection has one request
// outstanding) or open loop (--rate: requests leave on a schedule, in turns over the connections,
// and latencies count from the scheduled time, so that a stall delays all that it held up).
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kSpinNs = 200'000;            // as srd-perf does before a request
constexpr std::uint64_t kDrainNs = 3 * kNsPerSecond;  // for answers after the last request
constexpr std::size_t kPendingBytesMax = std::size_t{1} << 30;  // requests waiting for the kernel
constexpr std::size_t kReadBytes = 64 << 10;

constexpr const char* kUsage = R"(Usage: tcp_exchange -s|-c HOST [options]
  -s                   server: answers until it is ended
  -c HOST              client of the server at HOST; prints one JSON object
  -p #                 TCP port (default 5221)
  -t #                 seconds (default 10)
  --connections #      connections (default 1)
  --rate #             open loop: requests per second, all connections together
                       (default 0: closed loop, one request outstanding per connection)
  --size #             bytes of a request (default 64), the same at both ends
  --response-size #    bytes of an answer (default 64), the same at both ends
)";

struct Options {
  bool server = false;
  std::string host;
  std::string port = "5221";
  double seconds = 10;
  std::size_t connections = 1;
  double requests_per_s = 0;
  std::size_t request_bytes = 64;
  std::size_t response_bytes = 64;
};

[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("tcp_exchange: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::exit(1);
}

[[noreturn]] void fail_system(const char* call) {
  fail("%s: %s", call, std::strerror(errno));
}

[[noreturn]] void refuse(std::string_view argument) {
  std::fprintf(stderr, "tcp_exchange: cannot use '%s'\n%s", std::string(argument).c_str(), kUsage);
  std::exit(2);
}

double number(std::string_view option, const char* text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most)) {
    std::fprintf(stderr, "tcp_exchange: %s %s: not a number from %g to %g\n",
                 std::string(option).c_str(), text, least, most);
    std::exit(2);
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "-s") {
      options.server = true;
      continue;
    }
    if (++i == argc) refuse(option);
    const char* value = argv[i];
    if (option == "-c") {
      options.host = value;
    } else if (option == "-p") {
      options.port = value;
    } else if (option == "-t") {
      options.seconds = number(option, value, 0.01, 3600);
    } else if (option == "--connections") {
      options.connections = static_cast<std::size_t>(number(option, value, 1, 10'000));
    } else if (option == "--rate") {
      options.requests_per_s = number(option, value, 0, 1e8);
    } else if (option == "--size") {
      options.request_bytes = static_cast<std::size_t>(number(option, value, 1, 1 << 20));
    } else if (option == "--response-size") {
      options.response_bytes = static_cast<std::size_t>(number(option, value, 1, 1 << 20));
    } else {
      refuse(option);
    }
  }
  if (options.server != options.host.empty()) refuse("-s and -c: exactly one of them is needed");
  return options;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// One non-blocking connection: counts what comes in, keeps what the kernel does not take yet.
class Connection {
 public:
  Connection(int fd, int epoll_fd) : fd_(fd), epoll_fd_(epoll_fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) fail_system("epoll_ctl");
  }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ~Connection() { close(fd_); }

  /// Reads once; returns how many whole units of `unit_bytes` that completed, -1 at the end of the
  /// connection.
  long receive(std::size_t unit_bytes) {
    static std::array<std::byte, kReadBytes> room;
    const ssize_t got = recv(fd_, room.data(), room.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) return -1;
    partial_bytes_ += static_cast<std::size_t>(got);
    const std::size_t units = partial_bytes_ / unit_bytes;
    partial_bytes_ %= unit_bytes;
    return static_cast<long>(units);
  }

  /// Sends `bytes` zero bytes, now or when the kernel has room. False: the connection is broken.
  bool send(std::size_t bytes) {
    pending_bytes_ += bytes;
    return is_waiting_ || flush();
  }

  bool flush() {
    static const std::array<std::byte, kReadBytes> kZeros{};
    while (pending_bytes_ > 0) {
      const ssize_t sent =
          ::send(fd_, kZeros.data(), std::min(pending_bytes_, kZeros.size()), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent < 0) break;
      pending_bytes_ -= static_cast<std::size_t>(sent);
    }
    if (pending_bytes_ > kPendingBytesMax) fail("the connection takes no more requests");
    wait_for_room(pending_bytes_ > 0);
    return true;
  }

  /// When the requests were due whose answers are outstanding, oldest first (client).
  std::deque<std::uint64_t> due_ns;

 private:
  void wait_for_room(bool wait) {
    if (wait == is_waiting_) return;
    is_waiting_ = wait;
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    if (wait) event.events |= EPOLLOUT;
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd_, &event) != 0) fail_system("epoll_ctl");
  }

  int fd_;
  int epoll_fd_;
  std::size_t partial_bytes_ = 0;
  std::size_t pending_bytes_ = 0;
  bool is_waiting_ = false;
};

addrinfo* resolve(const char* host, const Options& options) {
  addrinfo hints{};
  hints.ai_family = host == nullptr ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, options.port.c_str(), &hints, &found);
  if (error != 0) {
    fail("%s port %s: %s", options.host.c_str(), options.port.c_str(), gai_strerror(error));
  }
  return found;
}

[[noreturn]] void serve(const Options& options) {
  addrinfo* local = resolve(nullptr, options);
  const int listener = socket(local->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, local->ai_addr, local->ai_addrlen) != 0 || listen(listener, 1024) != 0) {
    fail("port %s: %s; another program may have it, choose one with -p", options.port.c_str(),
         std::strerror(errno));
  }
  freeaddrinfo(local);
  const int epoll_fd = epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};  // nullptr: the listener
  if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) != 0)
    fail_system("epoll");

  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_fd, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& ready = events[static_cast<std::size_t>(i)];
      auto* connection = static_cast<Connection*>(ready.data.ptr);
      if (connection == nullptr) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        if (fd >= 0) new Connection(fd, epoll_fd);  // deletes itself below, at its end
        continue;
      }
      bool alive = (ready.events & EPOLLOUT) == 0 || connection->flush();
      if (alive && (ready.events & ~std::uint32_t{EPOLLOUT}) != 0) {
        const long requests = connection->receive(options.request_bytes);
        alive = requests >= 0 &&
                (requests == 0 ||
                 connection->send(static_cast<std::size_t>(requests) * options.response_bytes));
      }
      if (!alive) delete connection;
    }
  }
}

class Client {
 public:
  explicit Client(const Options& options) : options_(options), epoll_fd_(epoll_create1(0)) {
    if (epoll_fd_ < 0) fail_system("epoll_create1");
    addrinfo* remote = resolve(options.host.c_str(), options);
    for (std::size_t i = 0; i < options.connections; ++i) {
      const int fd = socket(remote->ai_family, SOCK_STREAM, 0);
      if (fd < 0 || connect(fd, remote->ai_addr, remote->ai_addrlen) != 0) {
        fail("%s port %s: %s; is tcp_exchange -s running there?", options.host.c_str(),
             options.port.c_str(), std::strerror(errno));
      }
      if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) fail_system("fcntl");
      connections_.push_back(std::make_unique<Connection>(fd, epoll_fd_));
    }
    freeaddrinfo(remote);
  }

  void run() {
    const std::uint64_t start = now_ns();
    const std::uint64_t end = start + seconds_ns(options_.seconds);
    const bool open_loop = options_.requests_per_s > 0;
    if (!open_loop) {
      for (const auto& connection : connections_) request(*connection, start);
    }
    std::uint64_t next_due = open_loop ? start : end;
    std::uint64_t now = start;
    for (; now < end; now = now_ns()) {
      while (next_due <= now && next_due < end) {
        request(*connections_[scheduled_++ % connections_.size()], next_due);
        next_due = start + seconds_ns(static_cast<double>(scheduled_) / options_.requests_per_s);
      }
      take_answers(std::min(next_due, end), open_loop ? Answer::count : Answer::ask_again);
    }
    const double seconds = static_cast<double>(now - start) / static_cast<double>(kNsPerSecond);
    const std::size_t answered = latencies_ns_.size();
    while (outstanding_ > 0 && now_ns() < now + kDrainNs)
      take_answers(now + kDrainNs, Answer::count);
    report(seconds, answered);
  }

 private:
  enum class Answer { count, ask_again };

  static std::uint64_t seconds_ns(double seconds) {
    return static_cast<std::uint64_t>(seconds * static_cast<double>(kNsPerSecond));
  }

  void request(Connection& connection, std::uint64_t due_ns) {
    connection.due_ns.push_back(due_ns);
    ++outstanding_;
    if (!connection.send(options_.request_bytes)) fail("the server ended a connection");
  }

  /// Waits until `until_ns` at most, spinning in the last moments before it.
  void take_answers(std::uint64_t until_ns, Answer what) {
    std::array<epoll_event, 64> events;
    const std::uint64_t now = now_ns();
    const std::uint64_t rest = until_ns > now + kSpinNs ? until_ns - now - kSpinNs : 0;
    const timespec timeout{.tv_sec = static_cast<time_t>(rest / kNsPerSecond),
                           .tv_nsec = static_cast<long>(rest % kNsPerSecond)};
    const int count =
        epoll_pwait2(epoll_fd_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    if (count < 0 && errno != EINTR) fail_system("epoll_pwait2");
    for (int i = 0; i < count; ++i) {
      const epoll_event& ready = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<Connection*>(ready.data.ptr);
      if ((ready.events & EPOLLOUT) != 0 && !connection.flush()) {
        fail("the server ended a connection");
      }
      if ((ready.events & ~std::uint32_t{EPOLLOUT}) == 0) continue;
      const long answers = connection.receive(options_.response_bytes);
      if (answers < 0) fail("the server ended a connection");
      for (long j = 0; j < answers; ++j) take_answer(connection, what);
    }
  }

  void take_answer(Connection& connection, Answer what) {
    if (connection.due_ns.empty()) fail("an answer came that nobody asked for; same sizes there?");
    const std::uint64_t now = now_ns();
    latencies_ns_.push_back(now - connection.due_ns.front());
    connection.due_ns.pop_front();
    --outstanding_;
    if (what == Answer::ask_again) request(connection, now);
  }

  /// Requests without an answer count with the time they have waited.
  void report(double seconds, std::size_t answered) {
    const std::size_t unanswered = outstanding_;
    const std::uint64_t now = now_ns();
    for (const auto& connection : connections_) {
      for (const std::uint64_t due : connection->due_ns) latencies_ns_.push_back(now - due);
    }
    if (latencies_ns_.empty()) fail("no request was sent within %g s", options_.seconds);
    std::sort(latencies_ns_.begin(), latencies_ns_.end());
    const auto percentile_us = [&](double percent) {
      const auto count = static_cast<double>(latencies_ns_.size());
      const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * count));
      return static_cast<double>(latencies_ns_[std::max<std::size_t>(rank, 1) - 1]) / 1e3;
    };
    std::printf(
        "{\"seconds\": %.6f, \"answered_in_time\": %zu, \"exchanges_per_s\": %.1f, "
        "\"latency_us\": {\"count\": %zu, \"unanswered\": %zu, \"min\": %.3f, \"p50\": %.3f, "
        "\"p90\": %.3f, \"p99\": %.3f, \"p99.9\": %.3f, \"p99.99\": %.3f, \"max\": %.3f}}\n",
        seconds, answered, static_cast<double>(answered) / seconds, latencies_ns_.size(),
        unanswered, percentile_us(0), percentile_us(50), percentile_us(90), percentile_us(99),
        percentile_us(99.9), percentile_us(99.99), percentile_us(100));
  }

  const Options& options_;
  int epoll_fd_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::uint64_t> latencies_ns_;
  std::uint64_t scheduled_ = 0;
  std::size_t outstanding_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.server) serve(options);
  Client(options).run();
  return 0;
}
