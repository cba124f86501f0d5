// SPDX-License-Identifier: Apache-2.0
// The server's side of the conversation in protocol.hpp. A client that vanishes costs its session
// only.
#include "srd_perf/server.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/addresses.hpp"
#include "common/failure.hpp"
#include "common/signals.hpp"
#include "common/transport.hpp"
#include "srd_perf/protocol.hpp"
#include "srd_perf/report_json.hpp"
#include "srd_perf/reporter.hpp"
#include "srd_perf/session.hpp"
#include "srd_perf/system_info.hpp"

namespace perf {
namespace {

constexpr std::uint64_t kDrainTimeoutNs = 10 * apps::kNsPerSecond;  // without any progress
constexpr std::uint64_t kStartTimeoutNs = 10 * apps::kNsPerSecond;  // from accept to start
constexpr std::size_t kSessionsMax = 1024;
constexpr std::uint32_t kTagMax = 255;

/// One client's test and where it stands.
struct Job {
  std::unique_ptr<Reporter> reporter;
  std::unique_ptr<Session> session;
  std::optional<SideResults> client_results;
  bool told_sent = false;  ///< `sent` has gone out
  bool reported = false;
  bool results_sent = false;
  bool over = false;  ///< waits only until the library has given back its memory
  std::uint64_t deadline_ns = kNeverNs;
  std::uint64_t last_progress = 0;
};

class Server {
 public:
  Server(const Options& options, Output& output);

  /// The endpoint goes first: until then it may refer to messages of the sessions.
  ~Server() { transport_.reset(); }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int run();

 private:
  static std::unique_ptr<apps::Transport> listen(const Options& options);
  void announce();
  void step();
  std::uint64_t wait_ns(std::uint64_t now_ns) const;
  void dispatch(const srd_completion& completion, std::uint64_t now_ns);
  void handle_control(const srd::Message& message, std::uint64_t now_ns);
  void handle_open(srd_peer peer, const ControlMessage& message, std::uint64_t now_ns);
  void refuse(srd_peer peer, const std::string& cookie, const std::string& text);
  void handle_peer(srd_peer peer, int status);
  Job* find(srd_peer peer, std::uint8_t tag);
  Job* find(std::uint32_t serial);
  void advance(Job& job, std::uint64_t now_ns);
  void send(Job& job, ControlType type, const std::string& text = "");
  void report(Job& job, const std::string& error);
  /// Ends it, with `error` if it did not go well.
  void end(Job& job, const std::string& error);
  [[nodiscard]] std::size_t running() const;

  const Options& options_;
  Output& output_;
  std::unique_ptr<apps::Transport> transport_;
  srd_address local_{};
  std::map<std::uint32_t, Job> jobs_;  ///< by serial number
  /// The job of the last message: one flow's messages come in rows.
  std::pair<std::uint64_t, Job*> last_found_{UINT64_MAX, nullptr};
  std::uint32_t next_serial_ = 1;
  std::uint32_t next_tag_ = 1;
  std::uint32_t next_stream_id_ = 1;
  std::uint64_t tests_ = 0;  ///< finished, well or not
  bool reported_any_ = false;
  bool one_off_done_ = false;
  bool one_off_failed_ = false;
};

std::unique_ptr<apps::Transport> Server::listen(const Options& options) {
  apps::TransportConfig config;
  config.device = options.device;
  config.paths = options.paths;
  config.max_peers = 4096;
  if (!options.bind_host.empty()) {
    config.bind = apps::resolve_host(options.bind_host, options.port, options.family).front();
    return std::make_unique<apps::Transport>(config);
  }
  if (options.family != apps::Family::v4) {
    // The IPv6 wildcard takes IPv4 clients, too.
    config.bind = apps::wildcard_address(6, options.port);
    try {
      return std::make_unique<apps::Transport>(config);
    } catch (const apps::Failure& failure) {
      if (options.family == apps::Family::v6) throw;
      config.bind = apps::wildcard_address(4, options.port);
      auto transport = std::make_unique<apps::Transport>(config);
      complain(fmt::format("serving IPv4 only (-4 says so without this line): {}", failure.what()));
      return transport;
    }
  }
  config.bind = apps::wildcard_address(4, options.port);
  return std::make_unique<apps::Transport>(config);
}

Server::Server(const Options& options, Output& output)
    : options_(options), output_(output), transport_(listen(options)) {
  local_ = transport_->endpoint().address();
}

void Server::announce() {
  if (options_.json) return;
  constexpr std::string_view kRule =
      "-----------------------------------------------------------\n";
  output_.write(kRule);
  output_.write(fmt::format("Server listening on {} (test #{})\n", local_.port, tests_ + 1));
  output_.write(kRule);
  output_.flush();
}

int Server::run() {
  announce();
  while (!one_off_done_ && apps::signals_received() == 0) step();
  if (!one_off_done_) {
    const std::string text =
        fmt::format("interrupt - the server has terminated by {}", apps::last_signal_name());
    for (auto& [serial, job] : jobs_) {
      if (job.over) continue;
      send(job, ControlType::failed, text);
      end(job, text);
    }
    if (options_.json && !reported_any_) output_.write_raw(to_text(make_error_report(text)));
    if (!options_.json) complain(text);
  }
  transport_->flush();
  output_.flush();
  return one_off_failed_ ? apps::kExitFailure : apps::kExitSuccess;
}

std::uint64_t Server::wait_ns(std::uint64_t now_ns) const {
  std::uint64_t until = kNeverNs;
  for (const auto& [serial, job] : jobs_) {
    if (job.over) continue;
    until = std::min({until, job.session->next_deadline_ns(), job.deadline_ns,
                      job.session->control().next_alive_ns()});
  }
  return until <= now_ns ? 0 : until - now_ns;
}

void Server::step() {
  const auto harvested = transport_->harvest(!options_.busy_poll, wait_ns(apps::monotonic_ns()));
  const std::uint64_t now_ns = apps::monotonic_ns();
  for (const srd_completion& completion : harvested) dispatch(completion, now_ns);
  bool answered = false;
  for (auto& [serial, job] : jobs_) {
    if (job.over) continue;
    Session& session = *job.session;
    session.tick(now_ns);
    const bool queued = session.pump(now_ns);
    answered = answered || (queued && session.record().info.parameters.is_latency());
    advance(job, now_ns);
    if (job.results_sent && session.control().is_drained()) {
      end(job, session.failure());
    } else if (!session.failure().empty() && !job.results_sent) {
      send(job, ControlType::failed, session.failure());
      end(job, session.failure());
    } else if (const std::error_code lost = session.control().failure()) {
      end(job, fmt::format("lost the client: {}", lost.message()));
    }
  }
  if (answered) transport_->flush();
  const std::size_t gone = std::erase_if(jobs_, [](const auto& entry) {
    return entry.second.over && !entry.second.session->has_sends_in_flight();
  });
  if (gone > 0) last_found_ = {UINT64_MAX, nullptr};
}

std::size_t Server::running() const {
  return static_cast<std::size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& entry) { return !entry.second.over; }));
}

void Server::dispatch(const srd_completion& completion, std::uint64_t now_ns) {
  if (completion.op == SRD_OP_RECEIVE) {
    const srd::Message message(completion);
    if (completion.channel == kControlChannel) {
      handle_control(message, now_ns);
      return;
    }
    const Channel channel = from_channel(completion.channel);
    if (Job* job = find(completion.peer, channel.tag)) {
      job->session->handle_message(channel.stream, message, now_ns);
    }
  } else if (completion.op == SRD_OP_SEND) {
    const SendToken token = SendToken::decode(completion.user_data);
    if (Job* job = find(token.session)) {
      job->session->handle_send_done(token, completion, now_ns);
    }
  } else if (completion.op == SRD_OP_PEER && completion.status < 0) {
    handle_peer(completion.peer, completion.status);
  }
}

Job* Server::find(std::uint32_t serial) {
  const auto found = jobs_.find(serial);
  return found == jobs_.end() ? nullptr : &found->second;
}

Job* Server::find(srd_peer peer, std::uint8_t tag) {
  const std::uint64_t key = std::uint64_t{peer} << 8 | tag;
  if (last_found_.first == key) return last_found_.second;
  for (auto& [serial, job] : jobs_) {
    const Session::Identity& identity = job.session->identity();
    if (job.over || identity.peer != peer || identity.tag != tag) continue;
    last_found_ = {key, &job};
    return &job;
  }
  return nullptr;
}

void Server::handle_peer(srd_peer peer, int status) {
  for (auto& [serial, job] : jobs_) {
    if (job.over || job.session->identity().peer != peer) continue;
    // A client that has its results closes and goes: that is no loss.
    end(job, job.results_sent && status == -SRD_ERR_PEER_CLOSED
                 ? job.session->failure()
                 : fmt::format("lost the client: {}", srd_error_string(status)));
  }
  transport_->endpoint().forget(peer);
}

void Server::handle_control(const srd::Message& message, std::uint64_t now_ns) {
  std::string text(message.bytes(), '\0');
  message.copy_to({reinterpret_cast<std::byte*>(text.data()), text.size()});
  const auto control = decode_control(text);
  if (!control) return;
  if (control->type == ControlType::open) {
    handle_open(message.peer(), *control, now_ns);
    return;
  }
  Job* const job = find(message.peer(), control->tag);
  if (job == nullptr) return;  // of a session that is over
  Session& session = *job->session;
  switch (control->type) {
    case ControlType::start:
      session.start(now_ns);
      job->deadline_ns = kNeverNs;
      break;
    case ControlType::stop:
      session.stop(now_ns);
      job->deadline_ns = now_ns + kDrainTimeoutNs;
      break;
    case ControlType::totals:
      session.stop(now_ns);  // messages are not ordered: this one may come before `stop`
      job->client_results = control->results;
      job->deadline_ns = now_ns + kDrainTimeoutNs;
      break;
    case ControlType::failed:
      session.fail(fmt::format("the client reports: {}", control->text));
      break;
    default:
      break;
  }
}

void Server::refuse(srd_peer peer, const std::string& cookie, const std::string& text) {
  ControlMessage message;
  message.type = ControlType::refuse;
  message.cookie = cookie;
  message.text = text;
  const std::string encoded = encode_control(message);
  // Copied and forgotten: there is no session that could keep it. If it does not fit the client
  // runs into its timeout.
  transport_->endpoint().send(
      peer, srd::as_bytes(encoded),
      {.user_data = 0, .channel = kControlChannel, .copy = true, .unsignaled = true});
}

void Server::handle_open(srd_peer peer, const ControlMessage& message, std::uint64_t now_ns) {
  if (message.version != kProtocolVersion) {
    refuse(peer, message.cookie,
           fmt::format("the client speaks version {} of the test protocol, the server {}: use the "
                       "same release on both sides",
                       message.version, kProtocolVersion));
    return;
  }
  if (options_.one_off && running() > 0) {
    refuse(peer, message.cookie, "the server serves one client only (-1), and it is busy");
    return;
  }
  if (running() >= kSessionsMax) {
    refuse(peer, message.cookie, fmt::format("the server runs {} tests already", kSessionsMax));
    return;
  }
  Parameters parameters = message.parameters;
  if (parameters.bins_ms == 0) parameters.bins_ms = options_.parameters.bins_ms;
  const std::string wrong = validate_parameters(parameters, transport_->limits().max_message_bytes);
  if (!wrong.empty()) {
    refuse(peer, message.cookie, wrong);
    return;
  }
  std::uint8_t tag = 0;
  for (std::uint32_t tries = 0; tries < kTagMax && tag == 0; ++tries) {
    const auto candidate = static_cast<std::uint8_t>(next_tag_);
    next_tag_ = next_tag_ % kTagMax + 1;
    if (find(peer, candidate) == nullptr) tag = candidate;
  }
  if (tag == 0) {
    refuse(peer, message.cookie, "this client runs 255 tests already");
    return;
  }

  TestInfo info;
  info.is_client = false;
  info.parameters = parameters;
  info.first_stream_id = running() == 0 ? 1 : next_stream_id_;
  next_stream_id_ = info.first_stream_id + info.stream_count();
  info.local = local_;
  info.wall_clock_s = wall_clock_s();
  info.receive_pool_bytes = apps::TransportConfig{}.receive_pool_bytes;
  info.title = options_.title;
  if (const auto known = transport_->endpoint().peer_info(peer)) {
    info.remote = known->address;
    info.payload_bytes = known->payload_bytes;
  }
  const auto paths = transport_->paths(peer);
  if (!paths.empty() && paths.front().local.family != 0) info.local = paths.front().local;

  const std::uint32_t serial = next_serial_++;
  Job& job = jobs_[serial];
  job.reporter = make_reporter(options_, output_);
  job.session = std::make_unique<Session>(*transport_, Session::Identity{peer, tag, serial}, info,
                                          options_.interval_s, *job.reporter);
  job.session->record().accepted = true;
  job.deadline_ns = now_ns + kStartTimeoutNs;
  job.reporter->started(job.session->record());
  ControlMessage accept;
  accept.type = ControlType::accept;
  accept.cookie = message.cookie;
  accept.tag = tag;
  job.session->control().send(accept);
}

void Server::send(Job& job, ControlType type, const std::string& text) {
  ControlMessage message;
  message.type = type;
  message.tag = job.session->identity().tag;
  message.text = text;
  if (type == ControlType::results) {
    message.results = *job.session->record().local;
    message.server_output = job.reporter->transcript();
  }
  job.session->control().send(message);
}

void Server::report(Job& job, const std::string& error) {
  if (job.reported) return;
  job.reported = true;
  reported_any_ = true;
  TestRecord& record = job.session->record();
  record.local = job.session->results();
  record.remote = job.client_results;
  record.error = error;
  job.reporter->finished(record);
  if (!error.empty() && !options_.json) {
    complain(fmt::format("client {}: {}", apps::address_text(record.info.remote), error));
  }
}

void Server::advance(Job& job, std::uint64_t now_ns) {
  Session& session = *job.session;
  session.control().keep_alive(now_ns, session.identity().tag);
  const Parameters& parameters = session.record().info.parameters;
  if (!job.told_sent && parameters.server_sends() && session.has_sent_all()) {
    job.told_sent = true;
    send(job, ControlType::sent);
  }
  if (!session.is_started()) {
    if (now_ns > job.deadline_ns) session.fail("the client never started its test");
    return;
  }
  if (!session.is_stopped() || job.results_sent) return;
  if (job.client_results && session.is_drained() && session.has_received_all(*job.client_results)) {
    report(job, job.client_results->error);
    job.results_sent = true;
    send(job, ControlType::results);
    return;
  }
  if (session.progress() != job.last_progress) {
    job.last_progress = session.progress();
    job.deadline_ns = now_ns + kDrainTimeoutNs;
  } else if (now_ns > job.deadline_ns) {
    session.fail("messages are missing 10 s after the end of the test, without progress");
  }
}

void Server::end(Job& job, const std::string& error) {
  job.session->stop(apps::monotonic_ns());
  if (job.reported && !error.empty() && !options_.json) {
    complain(fmt::format("client {}: after its results: {}",
                         apps::address_text(job.session->record().info.remote), error));
  }
  report(job, error);
  job.over = true;
  last_found_ = {UINT64_MAX, nullptr};
  ++tests_;
  if (options_.one_off) {
    one_off_done_ = true;
    one_off_failed_ = !error.empty();
  } else if (running() == 0) {
    announce();
  }
}

}  // namespace

int run_server(const Options& options, Output& output) {
  Server server(options, output);
  return server.run();
}

}  // namespace perf
