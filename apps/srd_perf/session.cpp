// SPDX-License-Identifier: Apache-2.0
// The course of a test; see the header.
#include "srd_perf/session.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/text.hpp"

namespace perf {
namespace {

std::uint64_t to_ns(double seconds) {
  return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

/// Sends outstanding of one session at most: half of the endpoint's queue, so that answers, control
/// messages and other sessions find room.
std::uint32_t messages_per_stream(const apps::Transport& transport, std::uint32_t senders) {
  return std::max<std::uint32_t>(1, transport.limits().max_sends / 2 / std::max(1U, senders));
}

}  // namespace

Session::Session(apps::Transport& transport, const Identity& identity, const TestInfo& info,
                 double interval_s, Reporter& reporter)
    : transport_(transport),
      identity_(identity),
      reporter_(reporter),
      control_(transport, identity.peer, SendToken{.session = identity.serial}),
      monitor_(transport, identity.peer),
      budget_(info.parameters.omit_s > 0 ? 0 : info.parameters.total_bytes),
      interval_ns_(to_ns(interval_s)) {
  record_.info = info;
  make_streams();
}

void Session::make_streams() {
  const TestInfo& info = record_.info;
  const Parameters& parameters = info.parameters;
  const std::uint32_t messages_max = messages_per_stream(transport_, parameters.streams);
  if (parameters.bins_ms != 0) bins_.emplace(parameters.bins_ms, apps::monotonic_ns());
  Bins* const bins = bins_ ? &*bins_ : nullptr;
  for (std::uint32_t index = 0; index < info.stream_count(); ++index) {
    const auto number = static_cast<std::uint8_t>(index);
    const StreamContext context{transport_,
                                identity_.peer,
                                to_channel({identity_.tag, number}),
                                SendToken{.session = identity_.serial, .stream = number},
                                parameters,
                                index,
                                info.first_stream_id + index,
                                budget_,
                                failure_};
    StreamState& state = streams_.emplace_back();
    state.sender = info.sends(index);
    if (parameters.is_latency()) {
      if (state.sender) {
        auto requester = std::make_unique<Requester>(context, messages_max);
        requester_ = requester.get();
        state.stream = std::move(requester);
      } else {
        state.stream = std::make_unique<Responder>(context, messages_max, bins);
      }
    } else if (state.sender) {
      state.stream = std::make_unique<BulkSender>(context, messages_max);
    } else {
      state.stream = std::make_unique<BulkReceiver>(context, bins);
    }
  }
}

void Session::start(std::uint64_t now_ns) {
  if (is_started()) return;
  start_ns_ = now_ns;
  measure_start_ns_ = now_ns;
  omitting_ = record_.info.parameters.omit_s > 0;
  cpu_.emplace();
  next_sample_ns_ = now_ns;
  begin_interval(now_ns);
}

void Session::begin_interval(std::uint64_t now_ns) {
  for (StreamState& state : streams_) state.at_interval_start = state.stream->meter();
  retransmits_at_interval_start_ = monitor_.retransmits();
  interval_start_ns_ = now_ns;
  if (interval_ns_ == 0) return;
  // On the grid of the test's start, so that a late report does not shift all that follow.
  next_interval_ns_ =
      measure_start_ns_ + ((now_ns - measure_start_ns_) / interval_ns_ + 1) * interval_ns_;
}

void Session::handle_message(std::uint8_t stream, const srd::Message& message,
                             std::uint64_t now_ns) {
  if (stream >= streams_.size()) {
    fail(fmt::format("the peer sent a message on stream {} of {}", stream, streams_.size()));
    return;
  }
  start(now_ns);  // messages are not ordered: data may come before the word to start
  streams_[stream].stream->handle_message(message, now_ns);
}

void Session::handle_send_done(const SendToken& token, const srd_completion& done,
                               std::uint64_t now_ns) {
  if (token.control) {
    control_.handle_send_done(token.slot, done.status);
    return;
  }
  if (token.stream >= streams_.size()) return;
  streams_[token.stream].stream->handle_send_done(token.slot, done.status, done.bytes, now_ns);
}

bool Session::pump(std::uint64_t now_ns) {
  control_.pump();
  if (!is_started() || !failure_.empty()) return false;
  bool queued = false;
  for (StreamState& state : streams_) queued = state.stream->pump(now_ns) || queued;
  return queued;
}

void Session::tick(std::uint64_t now_ns) {
  if (!is_started()) return;
  if (now_ns >= next_sample_ns_) {
    monitor_.sample();
    next_sample_ns_ = now_ns + FlowMonitor::kSamplePeriodNs;
  }
  if (is_stopped()) return;
  if (omitting_ && now_ns >= start_ns_ + to_ns(record_.info.parameters.omit_s)) {
    end_omitted_time(now_ns);
  } else if (now_ns >= next_interval_ns_) {
    end_interval(now_ns);
  }
}

void Session::end_omitted_time(std::uint64_t now_ns) {
  end_interval(now_ns);
  omitting_ = false;
  measure_start_ns_ = now_ns;
  budget_ = ByteBudget(record_.info.parameters.total_bytes);  // -n counts from here
  for (StreamState& state : streams_) state.at_measure_start = state.stream->meter();
  retransmits_at_measure_start_ = monitor_.retransmits();
  monitor_.reset_extremes();
  if (requester_ != nullptr) requester_->reset();
  begin_interval(now_ns);
}

std::uint32_t Session::first_sender() const {
  std::uint32_t index = 0;
  while (index < streams_.size() && !streams_[index].sender) ++index;
  return index;
}

std::uint64_t Session::share_of(std::uint64_t retransmits, std::uint32_t stream,
                                std::uint64_t bytes, std::uint64_t all_bytes) const {
  const auto part = [&](std::uint64_t own) {
    return all_bytes == 0 ? 0
                          : static_cast<std::uint64_t>(
                                static_cast<double>(retransmits) *
                                (static_cast<double>(own) / static_cast<double>(all_bytes)));
  };
  if (stream != first_sender()) return part(bytes);
  // The first sender takes the remainder, so that the parts add up.
  return retransmits - std::min(retransmits, part(all_bytes - bytes));
}

void Session::end_interval(std::uint64_t now_ns) {
  if (interval_ns_ == 0 || now_ns <= interval_start_ns_) return;
  Interval& interval = record_.intervals.emplace_back();
  interval.start_s = apps::to_seconds(interval_start_ns_ - measure_start_ns_);
  interval.end_s = apps::to_seconds(now_ns - measure_start_ns_);
  interval.omitted = omitting_;
  const FlowSample flow = monitor_.read();
  const std::uint64_t retransmits = flow.retransmits - retransmits_at_interval_start_;
  std::uint64_t sent_bytes = 0;
  for (const StreamState& state : streams_) {
    if (state.sender) sent_bytes += state.stream->meter().bytes - state.at_interval_start.bytes;
  }
  for (std::uint32_t index = 0; index < streams_.size(); ++index) {
    const StreamState& state = streams_[index];
    StreamInterval& entry = interval.streams.emplace_back();
    entry.stream = index;
    entry.sender = state.sender;
    entry.bytes = state.stream->meter().bytes - state.at_interval_start.bytes;
    entry.messages = state.stream->meter().messages - state.at_interval_start.messages;
    entry.flow = flow;
    if (state.sender) entry.retransmits = share_of(retransmits, index, entry.bytes, sent_bytes);
  }
  if (requester_ != nullptr) interval.latency = requester_->take_interval();
  reporter_.interval(record_);
  begin_interval(now_ns);
}

std::uint64_t Session::next_deadline_ns() const {
  if (!is_started()) return kNeverNs;
  std::uint64_t deadline = next_sample_ns_;
  if (!is_stopped()) {
    deadline = std::min(deadline, next_interval_ns_);
    if (omitting_) {
      deadline = std::min(deadline, start_ns_ + to_ns(record_.info.parameters.omit_s));
    } else if (record_.info.parameters.duration_s > 0) {
      deadline = std::min(deadline, measure_start_ns_ + to_ns(record_.info.parameters.duration_s));
    }
  }
  for (const StreamState& state : streams_) {
    deadline = std::min(deadline, state.stream->next_due_ns());
  }
  return deadline;
}

bool Session::has_sent_all() const {
  if (!budget_.used_up()) return false;
  return std::all_of(streams_.begin(), streams_.end(), [](const StreamState& state) {
    return !state.sender || state.stream->is_drained();
  });
}

bool Session::has_reached_end(std::uint64_t now_ns) const {
  if (!is_started() || is_stopped()) return false;
  const Parameters& parameters = record_.info.parameters;
  if (parameters.duration_s > 0) {
    return !omitting_ && now_ns >= measure_start_ns_ + to_ns(parameters.duration_s);
  }
  return has_sent_all();
}

void Session::stop(std::uint64_t now_ns) {
  if (is_stopped()) return;
  start(now_ns);
  for (StreamState& state : streams_) {
    state.stream->stop();
    state.at_end = state.stream->meter();
  }
  end_interval(now_ns);
  retransmits_at_end_ = monitor_.read().retransmits;
  // A test that ends within its omitted time measured nothing; say so instead of showing all of it.
  if (omitting_) {
    for (StreamState& state : streams_) state.at_measure_start = state.at_end;
    measure_start_ns_ = now_ns;
  }
  end_ns_ = now_ns;
  cpu_times_ = cpu_->elapsed();
}

bool Session::is_drained() const {
  return is_stopped() && std::all_of(streams_.begin(), streams_.end(),
                                     [](const StreamState& s) { return s.stream->is_drained(); });
}

bool Session::has_sends_in_flight() const {
  return !control_.is_drained() ||
         std::any_of(streams_.begin(), streams_.end(),
                     [](const StreamState& state) { return state.stream->has_sends_in_flight(); });
}

bool Session::has_received_all(const SideResults& sender) {
  bool complete = true;
  for (const StreamResult& sent : sender.streams) {
    if (!sent.sender || sent.stream >= streams_.size() || streams_[sent.stream].sender) continue;
    const Meter& got = streams_[sent.stream].stream->meter();
    if (got.messages < sent.all_messages) complete = false;
    if (got.messages > sent.all_messages ||
        (got.messages == sent.all_messages && got.bytes != sent.all_bytes)) {
      fail(
          fmt::format("verification failed: stream {}: the sender counts {} messages with {} "
                      "bytes, the receiver got {} with {} bytes",
                      record_.info.first_stream_id + sent.stream, sent.all_messages, sent.all_bytes,
                      got.messages, got.bytes));
    }
  }
  return complete;
}

std::uint64_t Session::progress() const noexcept {
  std::uint64_t sum = 0;
  for (const StreamState& state : streams_) sum += state.stream->meter().messages;
  return sum;
}

void Session::fail(const std::string& text) {
  if (failure_.empty()) failure_ = text;
}

SideResults Session::results() {
  SideResults out;
  const std::uint64_t now_ns = apps::monotonic_ns();
  const std::uint64_t end_ns = is_stopped() ? end_ns_ : now_ns;
  const double seconds = is_started() ? apps::to_seconds(end_ns - measure_start_ns_) : 0;
  out.paths = monitor_.path_results();
  const std::uint64_t retransmits =
      (is_stopped() ? retransmits_at_end_ : monitor_.retransmits()) - retransmits_at_measure_start_;
  const auto measured = [&](const StreamState& state) {
    const Meter& end = is_stopped() ? state.at_end : state.stream->meter();
    return Meter{end.bytes - state.at_measure_start.bytes,
                 end.messages - state.at_measure_start.messages};
  };
  std::uint64_t sent_bytes = 0;
  for (const StreamState& state : streams_) {
    if (state.sender) sent_bytes += measured(state).bytes;
  }
  for (std::uint32_t index = 0; index < streams_.size(); ++index) {
    const StreamState& state = streams_[index];
    StreamResult& result = out.streams.emplace_back();
    result.stream = index;
    result.sender = state.sender;
    const Meter meter = measured(state);
    result.bytes = meter.bytes;
    result.messages = meter.messages;
    result.all_bytes = state.stream->meter().bytes;
    result.all_messages = state.stream->meter().messages;
    result.seconds = seconds;
    if (state.sender) {
      result.retransmits = share_of(retransmits, index, result.bytes, sent_bytes);
      monitor_.fill_extremes(result);
    }
    if (const auto* receiver = dynamic_cast<const BulkReceiver*>(state.stream.get())) {
      out.verified_messages += receiver->verified_messages();
    } else if (const auto* responder = dynamic_cast<const Responder*>(state.stream.get())) {
      out.verified_messages += responder->verified_messages();
    }
  }
  out.retransmitted = monitor_.retransmits();
  out.counters = monitor_.counters();
  out.endpoint_counters = monitor_.endpoint_counters();
  out.spurious = out.counters.at("tx_spurious");
  out.advice = apps::split(transport_.endpoint().advice(), '\n');
  for (const PathResult& path : out.paths) out.rerolls += path.rerolls;
  const CpuTimes cpu = !is_stopped() && cpu_ ? cpu_->elapsed() : cpu_times_;
  out.cpu_user_s = cpu.user_s;
  out.cpu_system_s = cpu.system_s;
  out.wall_s = cpu.wall_s;
  if (requester_ != nullptr) out.latency = requester_->summary();
  if (bins_) out.bins = bins_->log();
  out.error = failure_;
  return out;
}

}  // namespace perf
