// SPDX-License-Identifier: Apache-2.0
// Host facts for reports.
#include "srd_perf/system_info.hpp"

#include <sys/utsname.h>
#include <time.h>

#include <array>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace perf {

std::string system_info() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {} {} {}", name.sysname, name.nodename, name.release, name.version,
                     name.machine);
}

std::int64_t wall_clock_s() {
  return time(nullptr);
}

std::string gmt_text(std::int64_t wall_clock_s) {
  const time_t seconds = wall_clock_s;
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text.data();
}

std::string make_cookie() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr std::size_t kCookieLength = 36;
  std::random_device random;
  std::uniform_int_distribution<std::size_t> pick(0, kLetters.size() - 1);
  std::string cookie(kCookieLength, ' ');
  for (char& letter : cookie) letter = kLetters[pick(random)];
  return cookie;
}

}  // namespace perf
