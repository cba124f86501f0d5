// SPDX-License-Identifier: Apache-2.0
// The tree of the JSON report; see the header. Where TCP has a notion that SRD has not, the closest
// one takes its key: tcp_mss_default is the payload of a datagram, sndbuf_actual the bytes a stream
// keeps outstanding, rcvbuf_actual the receive pool, tcp_congestion "srd".
#include "srd_perf/report_json.hpp"

#include <algorithm>
#include <optional>

#include "common/addresses.hpp"
#include "srd_perf/help.hpp"
#include "srd_perf/system_info.hpp"

namespace perf {
namespace {

Json base_start() {
  Json start;
  start["connected"] = Json::array();
  start["version"] = program_version();
  start["system_info"] = system_info();
  return start;
}

Json test_start(const Parameters& parameters) {
  Json out;
  out["protocol"] = "SRD";
  out["num_streams"] = parameters.streams;
  out["blksize"] = parameters.is_latency() ? parameters.request_bytes : parameters.message_bytes;
  out["omit"] = parameters.omit_s;
  out["duration"] = parameters.duration_s;
  out["bytes"] = parameters.total_bytes;
  out["blocks"] = 0;
  out["reverse"] = parameters.direction == Direction::reverse ? 1 : 0;
  out["tos"] = 0;
  out["target_bitrate"] = parameters.rate_bits_per_s;
  out["bidir"] = parameters.direction == Direction::bidirectional ? 1 : 0;
  return out;
}

Json start_of(const TestRecord& record) {
  const TestInfo& info = record.info;
  const Parameters& parameters = info.parameters;
  Json start = base_start();
  if (record.accepted) {
    for (std::uint32_t stream = 0; stream < info.stream_count(); ++stream) {
      start["connected"].push_back({{"socket", info.first_stream_id + stream},
                                    {"local_host", apps::host_text(info.local)},
                                    {"local_port", info.local.port},
                                    {"remote_host", apps::host_text(info.remote)},
                                    {"remote_port", info.remote.port}});
    }
  }
  start["timestamp"] = {{"time", gmt_text(info.wall_clock_s)}, {"timesecs", info.wall_clock_s}};
  if (info.is_client) {
    start["connecting_to"] = {{"host", info.target_host}, {"port", info.remote.port}};
  } else {
    start["accepted_connection"] = {{"host", apps::host_text(info.remote)},
                                    {"port", info.remote.port}};
  }
  start["cookie"] = parameters.cookie;
  start["tcp_mss_default"] = info.payload_bytes;
  start["target_bitrate"] = parameters.rate_bits_per_s;
  start["fq_rate"] = 0;
  start["sock_bufsize"] = parameters.window_bytes;
  start["sndbuf_actual"] = parameters.window_bytes;
  start["rcvbuf_actual"] = info.receive_pool_bytes;
  start["test_start"] = test_start(parameters);
  return start;
}

void put_amount(Json& out, double start, double end, double seconds, std::uint64_t bytes) {
  out["start"] = start;
  out["end"] = end;
  out["seconds"] = seconds;
  out["bytes"] = bytes;
  out["bits_per_second"] = bits_per_second(bytes, seconds);
}

Json latency_of(const LatencySummary& summary) {
  Json out;
  out["count"] = summary.count;
  out["unanswered"] = summary.unanswered;
  out["min"] = summary.min_us;
  out["mean"] = summary.mean_us;
  out["p50"] = summary.p50_us;
  out["p90"] = summary.p90_us;
  out["p99"] = summary.p99_us;
  out["p99.9"] = summary.p999_us;
  out["p99.99"] = summary.p9999_us;
  out["max"] = summary.max_us;
  return out;
}

Json interval_stream(const TestInfo& info, const Interval& interval, const StreamInterval& stream) {
  Json out;
  out["socket"] = info.first_stream_id + stream.stream;
  put_amount(out, interval.start_s, interval.end_s, interval.seconds(), stream.bytes);
  if (stream.sender) {
    out["retransmits"] = stream.retransmits;
    out["snd_cwnd"] = stream.flow.window_bytes;
    out["snd_wnd"] = stream.flow.peer_window_bytes;
    out["rtt"] = stream.flow.rtt_us;
    out["rttvar"] = stream.flow.rtt_var_us;
    out["pmtu"] = stream.flow.pmtu_bytes;
  }
  out["omitted"] = interval.omitted;
  out["sender"] = stream.sender;
  return out;
}

Json interval_sum(const Interval& interval, bool sender) {
  std::uint64_t bytes = 0;
  std::uint64_t retransmits = 0;
  for (const StreamInterval& stream : interval.streams) {
    if (stream.sender != sender) continue;
    bytes += stream.bytes;
    retransmits += stream.retransmits;
  }
  Json out;
  put_amount(out, interval.start_s, interval.end_s, interval.seconds(), bytes);
  if (sender) out["retransmits"] = retransmits;
  out["omitted"] = interval.omitted;
  out["sender"] = sender;
  return out;
}

Json interval_of(const TestInfo& info, const Interval& interval) {
  Json out;
  out["streams"] = Json::array();
  std::uint64_t messages = 0;
  for (const StreamInterval& stream : interval.streams) {
    out["streams"].push_back(interval_stream(info, interval, stream));
    messages += stream.messages;
  }
  // As in iperf3: "sum" is the direction that the client sends in, where there are two.
  const bool bidirectional = info.parameters.direction == Direction::bidirectional;
  out["sum"] = interval_sum(interval, info.sends(0));
  if (bidirectional) out["sum_bidir_reverse"] = interval_sum(interval, !info.sends(0));
  out["srd"]["messages"] = messages;
  if (interval.latency) out["srd"]["latency_us"] = latency_of(*interval.latency);
  return out;
}

Json end_sender(const TestInfo& info, const StreamResult& result, bool local_sends) {
  Json out;
  out["socket"] = info.first_stream_id + result.stream;
  put_amount(out, 0, result.seconds, result.seconds, result.bytes);
  out["retransmits"] = result.retransmits;
  out["max_snd_cwnd"] = result.max_window_bytes;
  out["max_snd_wnd"] = result.max_peer_window_bytes;
  out["max_rtt"] = result.max_rtt_us;
  out["min_rtt"] = result.min_rtt_us;
  out["mean_rtt"] = result.mean_rtt_us;
  out["sender"] = local_sends;
  return out;
}

Json end_receiver(const TestInfo& info, const StreamResult& result, bool local_sends) {
  Json out;
  out["socket"] = info.first_stream_id + result.stream;
  put_amount(out, 0, result.seconds, result.seconds, result.bytes);
  out["sender"] = local_sends;
  return out;
}

/// Sum of the streams of one direction at one end; `streams` may lack those of an unknown end.
Json end_sum(const std::vector<const StreamResult*>& streams, bool sender_end, bool local_sends) {
  std::uint64_t bytes = 0;
  std::uint64_t retransmits = 0;
  double seconds = 0;
  for (const StreamResult* stream : streams) {
    if (stream == nullptr) continue;
    bytes += stream->bytes;
    retransmits += stream->retransmits;
    seconds = std::max(seconds, stream->seconds);
  }
  Json out;
  put_amount(out, 0, seconds, seconds, bytes);
  if (sender_end) out["retransmits"] = retransmits;
  out["sender"] = local_sends;
  return out;
}

void put_cpu(Json& out, const char* prefix, const std::optional<SideResults>& side) {
  const auto percent = [&](double part) {
    return side && side->wall_s > 0 ? 100 * part / side->wall_s : 0;
  };
  const std::string name = prefix;
  const double user = side ? side->cpu_user_s : 0;
  const double system = side ? side->cpu_system_s : 0;
  out[name + "_total"] = percent(user + system);
  out[name + "_user"] = percent(user);
  out[name + "_system"] = percent(system);
}

Json end_of(const TestRecord& record) {
  const TestInfo& info = record.info;
  Json end = Json::object();
  if (!record.accepted || !record.local) return end;
  end["streams"] = Json::array();
  std::vector<const StreamResult*> sent[2];  // by: client's direction first
  std::vector<const StreamResult*> received[2];
  for (std::uint32_t index = 0; index < info.stream_count(); ++index) {
    const bool local_sends = info.sends(index);
    const StreamResult* sender = find_stream(local_sends ? record.local : record.remote, index);
    const StreamResult* receiver = find_stream(local_sends ? record.remote : record.local, index);
    StreamResult unknown;
    unknown.stream = index;
    Json stream;
    stream["sender"] = end_sender(info, sender != nullptr ? *sender : unknown, local_sends);
    stream["receiver"] = end_receiver(info, receiver != nullptr ? *receiver : unknown, local_sends);
    end["streams"].push_back(std::move(stream));
    const std::size_t direction = local_sends == info.sends(0) ? 0 : 1;
    sent[direction].push_back(sender);
    received[direction].push_back(receiver);
  }
  end["sum_sent"] = end_sum(sent[0], true, info.sends(0));
  end["sum_received"] = end_sum(received[0], false, info.sends(0));
  if (info.parameters.direction == Direction::bidirectional) {
    end["sum_sent_bidir_reverse"] = end_sum(sent[1], true, !info.sends(0));
    end["sum_received_bidir_reverse"] = end_sum(received[1], false, !info.sends(0));
  }
  put_cpu(end["cpu_utilization_percent"], "host", record.local);
  put_cpu(end["cpu_utilization_percent"], "remote", record.remote);
  end["sender_tcp_congestion"] = record.local->congestion;
  end["receiver_tcp_congestion"] = record.local->congestion;
  return end;
}

Json paths_of(const SideResults& side) {
  std::uint64_t all_bytes = 0;
  for (const PathResult& path : side.paths) all_bytes += path.bytes;
  Json out = Json::array();
  for (const PathResult& path : side.paths) {
    Json entry;
    entry["slot"] = path.slot;
    entry["state"] = path.state;
    entry["local_host"] = path.local_host;
    entry["local_port"] = path.local_port;
    entry["remote_host"] = path.remote_host;
    entry["remote_port"] = path.remote_port;
    entry["bytes"] = path.bytes;
    entry["share_percent"] =
        all_bytes == 0 ? 0 : 100 * static_cast<double>(path.bytes) / static_cast<double>(all_bytes);
    entry["datagrams"] = path.datagrams;
    entry["received_datagrams"] = path.received_datagrams;
    entry["rtt_us"] = {
        {"min", path.rtt_min_us}, {"p50", path.rtt_p50_us}, {"p99", path.rtt_p99_us}};
    entry["lost"] = path.lost;
    entry["ce"] = path.ce;
    entry["retransmitted"] = path.retransmits;
    entry["rerolls"] = path.rerolls;
    out.push_back(std::move(entry));
  }
  return out;
}

Json side_of(const SideResults& side) {
  Json out;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const StreamResult& stream : side.streams) {
    (stream.sender ? sent : received) += stream.all_messages;
  }
  out["messages"] = sent + received;
  out["messages_sent"] = sent;
  out["messages_received"] = received;
  out["messages_verified"] = side.verified_messages;
  out["retransmitted"] = side.retransmitted;
  out["spurious"] = side.spurious;
  out["rerolls"] = side.rerolls;
  out["counters"] = side.counters;
  out["endpoint_counters"] = side.endpoint_counters;
  out["advice"] = side.advice;
  out["cpu_seconds"] = {{"user", side.cpu_user_s}, {"system", side.cpu_system_s}};
  out["paths"] = paths_of(side);
  if (side.latency) out["latency_us"] = latency_of(*side.latency);
  if (side.bins) {
    out["bins"] = {{"bin_ms", side.bins->bin_ms},
                   {"start_monotonic_ns", side.bins->start_monotonic_ns},
                   {"bytes", side.bins->bytes}};
  }
  if (!side.error.empty()) out["error"] = side.error;
  return out;
}

}  // namespace

Json make_report(const TestRecord& record) {
  Json report;
  report["start"] = start_of(record);
  if (!record.info.title.empty()) report["title"] = record.info.title;
  report["intervals"] = Json::array();
  for (const Interval& interval : record.intervals) {
    report["intervals"].push_back(interval_of(record.info, interval));
  }
  report["end"] = end_of(record);
  if (record.local) {
    report["srd"] = side_of(*record.local);
    if (record.remote) report["srd"]["remote"] = side_of(*record.remote);
  }
  if (!record.server_output.empty()) {
    const Json parsed = Json::parse(record.server_output, nullptr, false);
    if (parsed.is_discarded()) {
      report["server_output_text"] = record.server_output;
    } else {
      report["server_output_json"] = parsed;
    }
  }
  if (!record.error.empty()) report["error"] = record.error;
  return report;
}

Json make_error_report(const std::string& error) {
  Json report;
  report["start"] = base_start();
  report["intervals"] = Json::array();
  report["end"] = Json::object();
  report["error"] = error;
  return report;
}

std::string to_text(const Json& report) {
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void JsonReporter::finished(const TestRecord& record) {
  const std::string text = to_text(make_report(record));
  output_.write_raw(text);
  if (!record.info.is_client && record.info.parameters.want_server_output) transcript_ = text;
}

}  // namespace perf
