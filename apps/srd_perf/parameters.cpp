// SPDX-License-Identifier: Apache-2.0
// The limits of a test; see the header.
#include "srd_perf/parameters.hpp"

#include <fmt/format.h>

namespace perf {
namespace {

std::string check_size(const char* option, std::uint64_t bytes, std::uint64_t least,
                       std::uint64_t most) {
  if (bytes >= least && bytes <= most) return {};
  if (most == kNoMessageLimit) return fmt::format("{} {} is below {} bytes", option, bytes, least);
  return fmt::format("{} {} is outside {} to {} bytes", option, bytes, least, most);
}

std::string validate_latency(const Parameters& p, std::uint64_t message_bytes_max) {
  if (p.direction != Direction::forward || p.streams != 1) {
    return "--latency measures one stream of requests: leave out -P, -R and --bidir "
           "(use --depth for more requests at once)";
  }
  if (std::string text =
          check_size("request size (--size)", p.request_bytes, kNumberBytes, message_bytes_max);
      !text.empty()) {
    return text;
  }
  if (std::string text =
          check_size("--response-size", p.response_bytes, kNumberBytes, message_bytes_max);
      !text.empty()) {
    return text;
  }
  if (p.mode == Mode::latency_open && p.requests_per_s == 0) return "--rate must be at least 1";
  if (p.mode == Mode::latency_closed && (p.depth == 0 || p.depth > 4096)) {
    return fmt::format("--depth {} is outside 1 to 4096", p.depth);
  }
  return {};
}

}  // namespace

std::string validate_parameters(const Parameters& p, std::uint64_t message_bytes_max) {
  if (p.streams == 0 || p.streams > kStreamsMax) {
    return fmt::format("number of streams (-P) {} is outside 1 to {}", p.streams, kStreamsMax);
  }
  if (!(p.omit_s >= 0 && p.omit_s <= 600)) {
    return fmt::format("omitted seconds (-O) {} are outside 0 to 600", p.omit_s);
  }
  if (!(p.duration_s >= 0 && p.duration_s <= 86400 * 30)) {
    return fmt::format("seconds (-t) {} are outside 0 to 2592000", p.duration_s);
  }
  if (p.bins_ms > 1000) return fmt::format("--bins-ms {} is outside 1 to 1000", p.bins_ms);
  if (p.is_latency()) return validate_latency(p, message_bytes_max);
  const std::uint64_t least = p.verify ? kNumberBytes : 1;
  if (std::string text = check_size("message size (-l)", p.message_bytes, least, message_bytes_max);
      !text.empty()) {
    return p.verify ? text + " (--verify puts a number of 8 bytes into each message)" : text;
  }
  if (p.window_bytes == 0) return "window (-w) must be at least 1 byte";
  return {};
}

}  // namespace perf
