// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/rate_limit.hpp"

namespace srd {
namespace {

using Sink = void (*)(void* user, int level, const char* text);

constexpr std::array<const char*, 4> kNames = {"error", "warning", "info", "debug"};
constexpr std::size_t kLineBytes = 1024;

void write_to_stderr(void*, int level, const char* text) {
  char line[kLineBytes + 32];
  const int length = std::snprintf(line, sizeof line, "srd: %s: %s\n",
                                   kNames[static_cast<std::size_t>(level)], text);
  if (length <= 0) return;
  // One write, so that lines of several threads do not mix; nothing can be done if it fails.
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
}

int level_from_environment() noexcept {
  const char* wanted = std::getenv("SRD_LOG");  // NOLINT(concurrency-mt-unsafe): read once
  if (wanted == nullptr) return SRD_LOG_WARNING;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (std::strcmp(wanted, kNames[i]) == 0) return static_cast<int>(i);
  }
  write_to_stderr(nullptr, SRD_LOG_WARNING,
                  "SRD_LOG must be error, warning, info or debug; using warning");
  return SRD_LOG_WARNING;
}

constexpr std::uint64_t kBurst = 50;
constexpr std::uint64_t kIntervalNs = 100'000'000;

struct Log {
  std::atomic<int> level{level_from_environment()};
  // Held while the sink runs, so that none is in use after srd_log_set() has replaced it.
  // Recursive, because a sink may call srd_log_set().
  std::recursive_mutex mutex;
  Sink sink = write_to_stderr;
  void* user = nullptr;
  std::array<RateLimit, kNames.size()> limits{
      RateLimit{kBurst, kIntervalNs}, RateLimit{kBurst, kIntervalNs},
      RateLimit{kBurst, kIntervalNs}, RateLimit{kBurst, kIntervalNs}};
};

Log& the_log() noexcept {
  static Log log;
  return log;
}

std::uint64_t now_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

thread_local bool in_sink = false;

void pass_on(Log& log, LogLevel level, const char* text) noexcept {
  if (log.sink == nullptr) return;
  in_sink = true;
  log.sink(log.user, static_cast<int>(level), text);
  in_sink = false;
}

}  // namespace

bool is_logged(LogLevel level) noexcept {
  return static_cast<int>(level) <= the_log().level.load(std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) noexcept {
  if (!is_logged(level) || in_sink) return;
  char text[kLineBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  RateLimit& limit = log.limits[static_cast<std::size_t>(level)];
  if (!limit.take(now_ns())) return;
  if (const std::uint64_t refused = limit.take_refused(); refused > 0) {
    char note[kLineBytes];
    std::snprintf(note, sizeof note, "%llu messages of this level were left out before this one",
                  static_cast<unsigned long long>(refused));
    pass_on(log, level, note);
  }
  pass_on(log, level, text);
}

}  // namespace srd

extern "C" void srd_log_set(int level, void (*sink)(void* user, int level, const char* text),
                            void* user) noexcept {
  srd::Log& log = srd::the_log();
  const std::lock_guard lock(log.mutex);
  log.level.store(level, std::memory_order_relaxed);
  log.sink = sink;
  log.user = user;
}
