// SPDX-License-Identifier: Apache-2.0
// Text lines; see the header. Columns are those of iperf3 3.12.
#include "srd_perf/report_text.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "common/addresses.hpp"
#include "srd_perf/help.hpp"
#include "srd_perf/system_info.hpp"

namespace perf {
namespace {

constexpr std::string_view kSeparator = "- - - - - - - - - - - - - - - - - - - - - - - - -";
constexpr int kSumLine = -1;

std::string id_text(const TestInfo& info, int stream) {
  if (stream == kSumLine) return "[SUM]";
  return fmt::format("[{:3}]", info.first_stream_id + static_cast<std::uint32_t>(stream));
}

/// "[TX-C]" and so on, where lines of both directions stand together.
std::string role_text(const TestInfo& info, bool sender) {
  if (info.parameters.direction != Direction::bidirectional) return {};
  return fmt::format("[{}X-{}]", sender ? 'T' : 'R', info.is_client ? 'C' : 'S');
}

bool any_sender(const TestInfo& info) {
  return info.is_client ? info.parameters.client_sends() : info.parameters.server_sends();
}

}  // namespace

TextReporter::TextReporter(UnitFormat format, bool verbose, Output& output)
    : format_(format), verbose_(verbose), output_(output) {}

void TextReporter::line(std::string_view text) {
  const std::string whole = fmt::format("{}\n", text);
  output_.write(whole);
  if (keep_transcript_) transcript_ += whole;
}

void TextReporter::connecting(const TestRecord& record) {
  const TestInfo& info = record.info;
  if (verbose_) {
    line(program_version());
    line(system_info());
    line(fmt::format("Time: {}", gmt_text(info.wall_clock_s)));
  }
  line(fmt::format("Connecting to host {}, port {}", info.target_host, info.remote.port));
  if (info.parameters.direction == Direction::reverse) {
    line(fmt::format("Reverse mode, remote host {} is sending", info.target_host));
  }
}

void TextReporter::started(const TestRecord& record) {
  const TestInfo& info = record.info;
  const Parameters& parameters = info.parameters;
  keep_transcript_ = !info.is_client && parameters.want_server_output;
  if (!info.is_client) {
    line(fmt::format("Accepted connection from {}, port {}", apps::host_text(info.remote),
                     info.remote.port));
  }
  if (verbose_) {
    line(fmt::format("      Cookie: {}", parameters.cookie));
    line(fmt::format("      Datagram payload: {}", info.payload_bytes));
    if (parameters.rate_bits_per_s != 0) {
      line(fmt::format("      Target Bitrate: {}", parameters.rate_bits_per_s));
    }
  }
  for (std::uint32_t stream = 0; stream < info.stream_count(); ++stream) {
    line(fmt::format("{} local {} port {} connected to {} port {}",
                     id_text(info, static_cast<int>(stream)), apps::host_text(info.local),
                     info.local.port, apps::host_text(info.remote), info.remote.port));
  }
  if (parameters.is_latency()) {
    const std::string load =
        parameters.mode == Mode::latency_open
            ? fmt::format("{} requests/s (open loop)", parameters.requests_per_s)
            : fmt::format("{} outstanding (closed loop)", parameters.depth);
    line(fmt::format("Request/response: {} byte requests, {} byte answers, {}",
                     parameters.request_bytes, parameters.response_bytes, load));
  }
  if (verbose_) {
    const std::string end =
        parameters.duration_s > 0    ? fmt::format("{:g} second test", parameters.duration_s)
        : parameters.total_bytes > 0 ? fmt::format("{} bytes to send", parameters.total_bytes)
                                     : "until it is stopped";
    line(
        fmt::format("Starting Test: protocol: SRD, {} streams, {} byte blocks, omitting {:g} "
                    "seconds, {}{}",
                    parameters.streams,
                    parameters.is_latency() ? parameters.request_bytes : parameters.message_bytes,
                    parameters.omit_s, end, parameters.verify ? ", verified" : ""));
  }
  header_written_ = false;
  output_.end_interval();
}

void TextReporter::interval_header(const TestInfo& info) {
  if (header_written_) return;
  header_written_ = true;
  const std::string roles = info.parameters.direction == Direction::bidirectional ? "[Role]" : "";
  if (info.parameters.is_latency() && info.is_client) {
    line("[ ID] Interval           Requests     Rate          p50        p99        max");
    return;
  }
  line(fmt::format("[ ID]{} Interval           Transfer     Bitrate{}", roles,
                   any_sender(info) ? "         Retr  Cwnd" : ""));
}

void TextReporter::latency_interval(const TestRecord& record) {
  const Interval& interval = record.intervals.back();
  const LatencySummary& latency = *interval.latency;
  line(fmt::format(
      "{} {:6.2f}-{:<6.2f} sec  {:>8}  {:>9.0f}/s  {:>8.1f}us {:>8.1f}us {:>8.1f}us{}",
      id_text(record.info, 0), interval.start_s, interval.end_s, latency.count,
      interval.seconds() > 0 ? static_cast<double>(latency.count) / interval.seconds() : 0,
      latency.p50_us, latency.p99_us, latency.max_us, interval.omitted ? "  (omitted)" : ""));
}

void TextReporter::interval(const TestRecord& record) {
  const TestInfo& info = record.info;
  const Interval& interval = record.intervals.back();
  interval_header(info);
  if (interval.latency) {
    latency_interval(record);
    output_.end_interval();
    return;
  }
  if (record.intervals.size() > 1 && interval.streams.size() > 1) line(kSeparator);
  for (const bool sender : {info.is_client, !info.is_client}) {
    std::uint64_t bytes = 0;
    std::uint64_t retransmits = 0;
    std::uint32_t streams = 0;
    const auto write = [&](int stream, std::uint64_t amount, std::uint64_t retr,
                           const std::string& window) {
      const std::string transfer = format_bytes(static_cast<double>(amount));
      const std::string rate = format_rate(bits_per_second(amount, interval.seconds()), format_);
      const std::string tail =
          sender ? fmt::format("{:3}   {:>11}", retr, window) : std::string(17, ' ');
      line(fmt::format("{}{} {:6.2f}-{:<6.2f} sec  {}  {}/sec  {}       {}", id_text(info, stream),
                       role_text(info, sender), interval.start_s, interval.end_s, transfer, rate,
                       tail, interval.omitted ? "(omitted)" : ""));
    };
    for (const StreamInterval& stream : interval.streams) {
      if (stream.sender != sender) continue;
      write(static_cast<int>(stream.stream), stream.bytes, stream.retransmits,
            format_bytes(static_cast<double>(stream.flow.window_bytes)));
      bytes += stream.bytes;
      retransmits += stream.retransmits;
      ++streams;
    }
    if (streams > 1) write(kSumLine, bytes, retransmits, "");
  }
  output_.end_interval();
}

void TextReporter::summary_line(const TestInfo& info, int stream, const StreamResult& result,
                                bool sender_end, bool local_sends) {
  const std::string retransmits = sender_end ? fmt::format("{:3}", result.retransmits) : "   ";
  line(fmt::format("{}{} {:6.2f}-{:<6.2f} sec  {}  {}/sec  {}             {}",
                   id_text(info, stream), role_text(info, local_sends), 0.0, result.seconds,
                   format_bytes(static_cast<double>(result.bytes)),
                   format_rate(bits_per_second(result.bytes, result.seconds), format_), retransmits,
                   sender_end ? "sender" : "receiver"));
}

void TextReporter::summary_direction(const TestRecord& record, bool sender_is_local) {
  const TestInfo& info = record.info;
  StreamResult sent_sum;
  StreamResult received_sum;
  std::uint32_t streams = 0;
  bool sender_known = false;
  bool receiver_known = false;
  const auto add = [](StreamResult& sum, const StreamResult& part) {
    sum.bytes += part.bytes;
    sum.retransmits += part.retransmits;
    sum.seconds = std::max(sum.seconds, part.seconds);
  };
  for (std::uint32_t index = 0; index < info.stream_count(); ++index) {
    if (info.sends(index) != sender_is_local) continue;
    ++streams;
    const auto& sending = sender_is_local ? record.local : record.remote;
    const auto& receiving = sender_is_local ? record.remote : record.local;
    if (const StreamResult* sent = find_stream(sending, index)) {
      summary_line(info, static_cast<int>(index), *sent, true, sender_is_local);
      add(sent_sum, *sent);
      sender_known = true;
    }
    if (const StreamResult* received = find_stream(receiving, index)) {
      summary_line(info, static_cast<int>(index), *received, false, sender_is_local);
      add(received_sum, *received);
      receiver_known = true;
    }
  }
  if (streams < 2) return;
  if (sender_known) summary_line(info, kSumLine, sent_sum, true, sender_is_local);
  if (receiver_known) summary_line(info, kSumLine, received_sum, false, sender_is_local);
}

void TextReporter::summary(const TestRecord& record) {
  const TestInfo& info = record.info;
  line(kSeparator);
  if (verbose_) line("Test Complete. Summary Results:");
  line(fmt::format("[ ID]{} Interval           Transfer     Bitrate         Retr",
                   info.parameters.direction == Direction::bidirectional ? "[Role]" : ""));
  for (const bool local : {info.is_client, !info.is_client}) summary_direction(record, local);
}

void TextReporter::latency(const LatencySummary& summary) {
  line("");
  line(fmt::format("Latency in us, {} answers{}:", summary.count,
                   summary.unanswered == 0
                       ? ""
                       : fmt::format(", {} requests without answer", summary.unanswered)));
  line("       min      mean       p50       p90       p99     p99.9    p99.99       max");
  line(fmt::format("{:10.1f}{:10.1f}{:10.1f}{:10.1f}{:10.1f}{:10.1f}{:10.1f}{:10.1f}",
                   summary.min_us, summary.mean_us, summary.p50_us, summary.p90_us, summary.p99_us,
                   summary.p999_us, summary.p9999_us, summary.max_us));
}

void TextReporter::paths_of(const SideResults& side, std::string_view whose) {
  std::uint64_t all_bytes = 0;
  std::size_t used = 0;
  for (const PathResult& path : side.paths) {
    all_bytes += path.bytes;
    used += path.datagrams != 0 ? 1 : 0;
  }
  if (used == 0) return;
  line("");
  line(fmt::format("Paths of the {}: {} used; datagrams sent again {} (needlessly {}), re-rolls {}",
                   whose, used, side.retransmitted, side.spurious, side.rerolls));
  line("Path  Local port  Share      Sent     RTT us min/p50/p99    Lost     CE  Re-rolls  State");
  for (const PathResult& path : side.paths) {
    if (path.datagrams == 0) continue;
    const double share =
        all_bytes == 0 ? 0 : 100 * static_cast<double>(path.bytes) / static_cast<double>(all_bytes);
    line(fmt::format(
        "{:4}  {:10}  {:4.1f}%  {:>11}  {:>6.0f}/{:>5.0f}/{:>5.0f}  {:6} {:6}  {:8}  {}", path.slot,
        path.local_port, share, format_bytes(static_cast<double>(path.bytes)), path.rtt_min_us,
        path.rtt_p50_us, path.rtt_p99_us, path.lost, path.ce, path.rerolls, path.state));
  }
}

void TextReporter::paths(const TestRecord& record) {
  const TestInfo& info = record.info;
  if (info.parameters.client_sends()) {
    if (const auto& side = info.is_client ? record.local : record.remote) paths_of(*side, "client");
  }
  if (info.parameters.server_sends()) {
    if (const auto& side = info.is_client ? record.remote : record.local) paths_of(*side, "server");
  }
}

// Whoever reads the client's report may be the only one who looks.
void TextReporter::advice(const TestRecord& record) {
  for (const bool of_client : {true, false}) {
    const auto& side = of_client == record.info.is_client ? record.local : record.remote;
    if (!side || side->advice.empty()) continue;
    line("");
    line(fmt::format("Advice for the {}'s host:", of_client ? "client" : "server"));
    for (const std::string& text : side->advice) line(fmt::format("  {}", text));
  }
}

void TextReporter::details(const TestRecord& record) {
  const auto percent = [](const std::optional<SideResults>& side, double part) {
    return side && side->wall_s > 0 ? 100 * part / side->wall_s : 0;
  };
  const auto both = [&](const std::optional<SideResults>& side) {
    const double user = side ? side->cpu_user_s : 0;
    const double system = side ? side->cpu_system_s : 0;
    return fmt::format("{:.1f}% ({:.1f}%u/{:.1f}%s)", percent(side, user + system),
                       percent(side, user), percent(side, system));
  };
  const bool local_sends = any_sender(record.info);
  line(fmt::format("CPU Utilization: local/{} {}, remote/{} {}",
                   local_sends ? "sender" : "receiver", both(record.local),
                   local_sends ? "receiver" : "sender", both(record.remote)));
}

void TextReporter::finished(const TestRecord& record) {
  if (record.accepted && record.local) {
    summary(record);
    if (record.local->latency) latency(*record.local->latency);
    if (record.info.is_client || verbose_) paths(record);
    if (verbose_) details(record);
    advice(record);
    const std::uint64_t verified =
        record.local->verified_messages + (record.remote ? record.remote->verified_messages : 0);
    if (record.info.parameters.verify) {
      line("");
      line(fmt::format("Verified: {} messages, {}", verified,
                       record.error.empty() ? "each byte right and each message delivered once"
                                            : "then an error"));
    }
  }
  if (!record.server_output.empty()) {
    line("");
    line("Server output:");
    line(record.server_output);
  }
  if (record.info.is_client && record.error.empty()) {
    line("");
    line("srd-perf Done.");
  }
  output_.flush();
}

}  // namespace perf
