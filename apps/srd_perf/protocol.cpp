// SPDX-License-Identifier: Apache-2.0
// Control messages as JSON. Unknown keys are ignored and missing ones take their default, so that a
// field can be added without a new version.
#include "srd_perf/protocol.hpp"

#include <array>
#include <exception>
#include <string>

#include <nlohmann/json.hpp>

namespace perf {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StreamResult, stream, sender, bytes, messages,
                                                all_bytes, all_messages, seconds, retransmits,
                                                max_window_bytes, max_peer_window_bytes, max_rtt_us,
                                                min_rtt_us, mean_rtt_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PathResult, slot, state, local_host, remote_host,
                                                local_port, remote_port, bytes, datagrams,
                                                received_datagrams, lost, ce, rerolls, retransmits,
                                                rtt_min_us, rtt_p50_us, rtt_p99_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(BinLog, bin_ms, start_monotonic_ns, bytes)

NLOHMANN_JSON_SERIALIZE_ENUM(Direction, {{Direction::forward, "forward"},
                                         {Direction::reverse, "reverse"},
                                         {Direction::bidirectional, "bidirectional"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Mode, {{Mode::throughput, "throughput"},
                                    {Mode::latency_closed, "latency-closed"},
                                    {Mode::latency_open, "latency-open"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Parameters, mode, direction, streams, message_bytes,
                                                window_bytes, duration_s, omit_s, total_bytes,
                                                rate_bits_per_s, verify, request_bytes,
                                                response_bytes, requests_per_s, depth, bins_ms,
                                                want_server_output, cookie)

namespace {

constexpr std::array<const char*, 10> kTypeNames{"open", "accept", "refuse",  "start", "sent",
                                                 "stop", "totals", "results", "alive", "failed"};

nlohmann::json encode_results(const SideResults& results) {
  nlohmann::json out;
  out["streams"] = results.streams;
  out["paths"] = results.paths;
  out["retransmitted"] = results.retransmitted;
  out["spurious"] = results.spurious;
  out["rerolls"] = results.rerolls;
  out["counters"] = results.counters;
  out["endpoint_counters"] = results.endpoint_counters;
  out["advice"] = results.advice;
  out["verified_messages"] = results.verified_messages;
  out["cpu_user_s"] = results.cpu_user_s;
  out["cpu_system_s"] = results.cpu_system_s;
  out["wall_s"] = results.wall_s;
  out["congestion"] = results.congestion;
  out["error"] = results.error;
  if (results.bins) out["bins"] = *results.bins;
  return out;
}

SideResults decode_results(const nlohmann::json& in) {
  SideResults results;
  results.streams = in.value("streams", results.streams);
  results.paths = in.value("paths", results.paths);
  results.retransmitted = in.value("retransmitted", results.retransmitted);
  results.spurious = in.value("spurious", results.spurious);
  results.rerolls = in.value("rerolls", results.rerolls);
  results.counters = in.value("counters", results.counters);
  results.endpoint_counters = in.value("endpoint_counters", results.endpoint_counters);
  results.advice = in.value("advice", results.advice);
  results.verified_messages = in.value("verified_messages", results.verified_messages);
  results.cpu_user_s = in.value("cpu_user_s", 0.0);
  results.cpu_system_s = in.value("cpu_system_s", 0.0);
  results.wall_s = in.value("wall_s", 0.0);
  results.congestion = in.value("congestion", results.congestion);
  results.error = in.value("error", std::string{});
  if (in.contains("bins")) results.bins = in.at("bins").get<BinLog>();
  return results;
}

std::optional<ControlType> type_from_name(const std::string& name) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (name == kTypeNames[i]) return static_cast<ControlType>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string encode_control(const ControlMessage& message) {
  nlohmann::json out;
  out["type"] = kTypeNames[static_cast<std::size_t>(message.type)];
  if (message.tag != 0) out["session"] = message.tag;
  if (!message.cookie.empty()) out["cookie"] = message.cookie;
  if (!message.text.empty()) out["text"] = message.text;
  if (message.type == ControlType::open) {
    out["version"] = message.version;
    out["parameters"] = message.parameters;
  }
  if (message.type == ControlType::totals || message.type == ControlType::results) {
    out["results"] = encode_results(message.results);
  }
  if (!message.server_output.empty()) out["server_output"] = message.server_output;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<ControlMessage> decode_control(std::string_view text) noexcept {
  try {
    const nlohmann::json in = nlohmann::json::parse(text);
    const auto type = type_from_name(in.at("type").get<std::string>());
    if (!type) return std::nullopt;
    ControlMessage message;
    message.type = *type;
    message.tag = in.value("session", message.tag);
    message.cookie = in.value("cookie", message.cookie);
    message.text = in.value("text", message.text);
    message.version = in.value("version", 0U);
    message.server_output = in.value("server_output", message.server_output);
    // A later version may have other parameters; its open is refused by number, not misread.
    if (message.type == ControlType::open && message.version == kProtocolVersion) {
      message.parameters = in.at("parameters").get<Parameters>();
    }
    if (in.contains("results")) message.results = decode_results(in.at("results"));
    return message;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace perf
