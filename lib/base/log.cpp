// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

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

struct Log {
  std::atomic<int> level{level_from_environment()};
  std::mutex mutex;  // keeps `sink` and `user` together
  Sink sink = write_to_stderr;
  void* user = nullptr;
};

Log& the_log() noexcept {
  static Log log;
  return log;
}

}  // namespace

bool is_logged(LogLevel level) noexcept {
  return static_cast<int>(level) <= the_log().level.load(std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) noexcept {
  if (!is_logged(level)) return;
  char text[kLineBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Sink sink = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(the_log().mutex);
    sink = the_log().sink;
    user = the_log().user;
  }
  if (sink != nullptr) sink(user, static_cast<int>(level), text);
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
