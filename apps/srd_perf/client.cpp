// SPDX-License-Identifier: Apache-2.0
// The client's side of the conversation in protocol.hpp.
#include "srd_perf/client.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/addresses.hpp"
#include "common/failure.hpp"
#include "common/signals.hpp"
#include "common/transport.hpp"
#include "srd_perf/protocol.hpp"
#include "srd_perf/reporter.hpp"
#include "srd_perf/session.hpp"
#include "srd_perf/system_info.hpp"

namespace perf {
namespace {

constexpr std::uint32_t kOpeningSerial = 0;  // tokens of what is sent before there is a session
constexpr std::uint32_t kSerial = 1;         // one session per client
constexpr std::uint64_t kAnswerTimeoutNs = 5 * apps::kNsPerSecond;  // of a server that is up
constexpr std::uint64_t kDrainTimeoutNs = 10 * apps::kNsPerSecond;  // without any progress
constexpr std::uint64_t kInterruptGraceNs = apps::kNsPerSecond;     // for results after Ctrl-C
constexpr std::uint64_t kLongestWaitNs = 100 * apps::kNsPerMs;
constexpr std::uint64_t kSpinBeforeNs = 200 * apps::kNsPerUs;  // open loop: a wake-up is this late

class Client {
 public:
  Client(const Options& options, Output& output, const srd_address& server);

  /// The endpoint goes first: until then it may refer to messages of the session.
  ~Client() { transport_.reset(); }

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// To the end of the test. Returns the exit code.
  int run();

  /// The server never gave an answer, and another of its addresses may.
  [[nodiscard]] bool found_nobody() const noexcept { return found_nobody_; }

  /// Not reported yet, if found_nobody(): the caller may try another address first.
  void report_nobody(const std::string& text);

  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  enum class Phase : std::uint8_t { opening, running, draining, collecting, done };

  static apps::TransportConfig transport_config(const Options& options, const srd_address& server);
  void step();
  std::uint64_t wait_ns(std::uint64_t now_ns) const;
  void dispatch(const srd_completion& completion, std::uint64_t now_ns);
  void handle_peer(int status);
  void handle_control(const srd::Message& message, std::uint64_t now_ns);
  void handle_accept(const ControlMessage& message, std::uint64_t now_ns);
  void advance(std::uint64_t now_ns);
  void check_signals(std::uint64_t now_ns);
  void send_control(ControlType type, const std::string& text = "");
  void stop(std::uint64_t now_ns);
  void fail(const std::string& text);
  std::string no_answer_text() const;
  void report();

  Options options_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<apps::Transport> transport_;
  srd_peer peer_;
  TestInfo info_;
  ControlChannel opening_;  ///< before there is a session
  std::unique_ptr<Session> session_;
  std::optional<SideResults> server_results_;
  std::string server_output_;
  Phase phase_ = Phase::opening;
  std::string error_;
  bool found_nobody_ = false;
  bool peer_up_ = false;
  std::string lost_text_;  ///< the server is gone: why; what it said before still counts
  bool server_sent_all_ = false;
  int signals_seen_ = 0;
  bool interrupted_ = false;
  std::uint64_t begin_ns_;
  std::uint64_t hello_tries_ = 0;
  std::uint64_t deadline_ns_ = kNeverNs;  ///< of the phase, if nothing moves
  std::uint64_t last_progress_ = 0;
};

apps::TransportConfig Client::transport_config(const Options& options, const srd_address& server) {
  apps::TransportConfig config;
  config.device = options.device;
  config.paths = options.paths;
  config.connect_timeout_ms = options.connect_timeout_ms;
  if (!options.bind_host.empty()) {
    const auto family = server.family == 4 ? apps::Family::v4 : apps::Family::v6;
    config.bind = apps::resolve_host(options.bind_host, options.client_port, family).front();
  } else {
    config.bind = apps::wildcard_address(server.family, options.client_port);
  }
  return config;
}

Client::Client(const Options& options, Output& output, const srd_address& server)
    : options_(options),
      reporter_(make_reporter(options, output)),
      transport_(std::make_unique<apps::Transport>(transport_config(options, server))),
      peer_(transport_->resolve(server)),
      opening_(*transport_, peer_, SendToken{.session = kOpeningSerial}),
      begin_ns_(apps::monotonic_ns()) {
  info_.is_client = true;
  info_.parameters = options.parameters;
  info_.parameters.cookie = make_cookie();
  info_.target_host = options.host;
  info_.remote = server;
  info_.local = transport_->endpoint().address();
  info_.wall_clock_s = wall_clock_s();
  info_.receive_pool_bytes = apps::TransportConfig{}.receive_pool_bytes;
  info_.title = options.title;
}

int Client::run() {
  TestRecord announced;
  announced.info = info_;
  reporter_->connecting(announced);
  const std::string wrong =
      validate_parameters(info_.parameters, transport_->limits().max_message_bytes);
  if (!wrong.empty()) throw apps::Failure(apps::kExitUsage, wrong);
  ControlMessage open;
  open.type = ControlType::open;
  open.parameters = info_.parameters;
  open.cookie = info_.parameters.cookie;
  opening_.send(open);
  while (phase_ != Phase::done) step();
  if (found_nobody_) return apps::kExitFailure;
  report();
  return error_.empty() || interrupted_ ? apps::kExitSuccess : apps::kExitFailure;
}

void Client::step() {
  const auto harvested = transport_->harvest(!options_.busy_poll, wait_ns(apps::monotonic_ns()));
  const std::uint64_t now_ns = apps::monotonic_ns();
  for (const srd_completion& completion : harvested) dispatch(completion, now_ns);
  if (session_ != nullptr) {
    session_->tick(now_ns);
    if (session_->pump(now_ns) && options_.parameters.is_latency()) transport_->flush();
    if (!session_->failure().empty()) fail(session_->failure());
  }
  check_signals(now_ns);
  advance(now_ns);
}

std::uint64_t Client::wait_ns(std::uint64_t now_ns) const {
  std::uint64_t until = now_ns + kLongestWaitNs;
  if (session_ != nullptr) until = std::min(until, session_->next_deadline_ns());
  if (until <= now_ns) return 0;
  const std::uint64_t wait = until - now_ns;
  if (options_.parameters.mode != Mode::latency_open) return wait;
  // A sleeper wakes up late; the schedule of an open loop must not suffer from that.
  return wait > kSpinBeforeNs ? wait - kSpinBeforeNs : 0;
}

void Client::dispatch(const srd_completion& completion, std::uint64_t now_ns) {
  if (completion.op == SRD_OP_RECEIVE) {
    const srd::Message message(completion);
    const Channel channel = from_channel(completion.channel);
    if (completion.peer != peer_) return;  // a stranger's; given back
    if (completion.channel == kControlChannel) {
      handle_control(message, now_ns);
    } else if (session_ != nullptr && channel.tag == session_->identity().tag) {
      session_->handle_message(channel.stream, message, now_ns);
    }
  } else if (completion.op == SRD_OP_SEND) {
    const SendToken token = SendToken::decode(completion.user_data);
    if (token.session == kOpeningSerial) {
      opening_.handle_send_done(token.slot, completion.status);
      if (phase_ == Phase::opening) deadline_ns_ = now_ns + kAnswerTimeoutNs;
    } else if (session_ != nullptr) {
      session_->handle_send_done(token, completion, now_ns);
    }
  } else if (completion.op == SRD_OP_PEER && completion.peer == peer_) {
    handle_peer(completion.status);
  }
}

std::string Client::no_answer_text() const {
  return fmt::format(
      "no answer from {} port {}: {} tries in {:.1f} s. Check that a server runs there "
      "(srd-perf -s -p {}), that firewalls on the way let UDP port {} through in both directions, "
      "and that the address is right",
      apps::host_text(info_.remote), info_.remote.port, std::max<std::uint64_t>(1, hello_tries_),
      apps::to_seconds(apps::monotonic_ns() - begin_ns_), info_.remote.port, info_.remote.port);
}

void Client::handle_peer(int status) {
  if (status >= 0) {
    peer_up_ = true;
    return;
  }
  if (!peer_up_) {
    found_nobody_ = true;
    fail(no_answer_text());
    return;
  }
  lost_text_ = fmt::format("lost the server {}: {}", apps::address_text(info_.remote),
                           srd_error_string(status));
}

void Client::handle_control(const srd::Message& message, std::uint64_t now_ns) {
  std::string text(message.bytes(), '\0');
  message.copy_to({reinterpret_cast<std::byte*>(text.data()), text.size()});
  const auto control = decode_control(text);
  if (!control) return;
  const bool ours = session_ != nullptr && control->tag == session_->identity().tag;
  switch (control->type) {
    case ControlType::accept:
      handle_accept(*control, now_ns);
      break;
    case ControlType::refuse:
      if (control->cookie == info_.parameters.cookie) {
        fail(fmt::format("the server refuses the test: {}", control->text));
      }
      break;
    case ControlType::sent:
      server_sent_all_ = server_sent_all_ || ours;
      break;
    case ControlType::results:
      if (ours) {
        server_results_ = control->results;
        server_output_ = control->server_output;
      }
      break;
    case ControlType::failed:
      if (ours) fail(fmt::format("the server reports: {}", control->text));
      break;
    default:
      break;
  }
}

void Client::handle_accept(const ControlMessage& message, std::uint64_t now_ns) {
  if (phase_ != Phase::opening || message.cookie != info_.parameters.cookie) return;
  const auto paths = transport_->paths(peer_);
  if (!paths.empty() && paths.front().local.family != 0) info_.local = paths.front().local;
  if (const auto peer = transport_->endpoint().peer_info(peer_)) {
    info_.payload_bytes = peer->payload_bytes;
  }
  const Session::Identity identity{peer_, message.tag, kSerial};
  session_ =
      std::make_unique<Session>(*transport_, identity, info_, options_.interval_s, *reporter_);
  session_->record().accepted = true;
  reporter_->started(session_->record());
  phase_ = Phase::running;
  deadline_ns_ = kNeverNs;
  send_control(ControlType::start);
  session_->start(now_ns);
}

void Client::send_control(ControlType type, const std::string& text) {
  ControlMessage message;
  message.type = type;
  message.tag = session_->identity().tag;
  message.text = text;
  if (type == ControlType::totals) message.results = session_->results();
  session_->control().send(message);
}

void Client::stop(std::uint64_t now_ns) {
  session_->stop(now_ns);
  send_control(ControlType::stop);
  phase_ = Phase::draining;
  deadline_ns_ = now_ns + kDrainTimeoutNs;
}

void Client::check_signals(std::uint64_t now_ns) {
  const int signals = apps::signals_received();
  if (signals == signals_seen_ || phase_ == Phase::done) return;
  const bool again = signals_seen_ > 0;
  signals_seen_ = signals;
  interrupted_ = true;
  if (error_.empty()) {
    error_ = fmt::format("interrupt - the client has terminated by {}", apps::last_signal_name());
  }
  if (session_ == nullptr || again) {
    phase_ = Phase::done;
    return;
  }
  if (phase_ == Phase::running) stop(now_ns);
  deadline_ns_ = now_ns + kInterruptGraceNs;
}

void Client::fail(const std::string& text) {
  if (phase_ == Phase::done) return;
  if (!interrupted_) error_ = text;  // after Ctrl-C, what breaks off is no failure of the network
  if (session_ != nullptr) {
    session_->stop(apps::monotonic_ns());
    // So that the server does not wait for more; if it is gone, this goes nowhere.
    send_control(ControlType::failed, text);
    transport_->flush();
  }
  phase_ = Phase::done;
}

void Client::advance(std::uint64_t now_ns) {
  if (phase_ == Phase::done) return;
  if (const std::error_code lost =
          session_ != nullptr ? session_->control().failure() : opening_.failure()) {
    handle_peer(-lost.value());
  }
  if (phase_ == Phase::collecting && server_results_ &&
      session_->has_received_all(*server_results_)) {
    if (!session_->failure().empty()) {
      fail(session_->failure());
    } else if (!server_results_->error.empty()) {
      fail("the server reports: " + server_results_->error);
    }
    phase_ = Phase::done;
    return;
  }
  if (!lost_text_.empty()) fail(lost_text_);
  if (phase_ == Phase::done) return;
  if (phase_ == Phase::opening) {
    opening_.pump();
    if (const auto peer = transport_->endpoint().peer_info(peer_)) {
      hello_tries_ = std::max(hello_tries_, peer->hello_tries);
    }
    if (now_ns > deadline_ns_) {
      fail(
          fmt::format("{} port {} speaks OpenSRD but does not answer as srd-perf: is another "
                      "program listening there?",
                      apps::host_text(info_.remote), info_.remote.port));
    }
    return;
  }
  session_->control().keep_alive(now_ns, session_->identity().tag);
  if (phase_ == Phase::running) {
    const Parameters& parameters = info_.parameters;
    const bool own_end = session_->has_reached_end(now_ns) || !parameters.client_sends();
    const bool server_end = server_sent_all_ || !parameters.server_sends();
    const bool timed = parameters.duration_s > 0;
    if (timed ? session_->has_reached_end(now_ns) : own_end && server_end) stop(now_ns);
    return;
  }
  if (phase_ == Phase::draining && session_->is_drained()) {
    send_control(ControlType::totals);
    phase_ = Phase::collecting;
  }
  if (!interrupted_ && session_->progress() != last_progress_) {
    last_progress_ = session_->progress();
    deadline_ns_ = now_ns + kDrainTimeoutNs;
  }
  if (now_ns <= deadline_ns_) return;
  if (interrupted_) {
    phase_ = Phase::done;
  } else if (phase_ == Phase::draining) {
    fail(
        "messages or requests are still outstanding 10 s after the end of the test, without "
        "progress");
  } else {
    fail(server_results_ ? "messages of the server are missing 10 s after the end of the test"
                         : "no results from the server 10 s after the end of the test");
  }
}

void Client::report_nobody(const std::string& text) {
  error_ = text;
  report();
}

void Client::report() {
  TestRecord bare;
  bare.info = info_;
  TestRecord& record = session_ != nullptr ? session_->record() : bare;
  if (session_ != nullptr) {
    record.local = session_->results();
    if (record.local->latency && record.local->latency->unanswered > 0 && error_.empty()) {
      error_ = fmt::format("{} requests were never answered", record.local->latency->unanswered);
    }
  }
  record.remote = server_results_;
  record.server_output = server_output_;
  record.error = error_;
  reporter_->finished(record);
  if (!error_.empty() && !options_.json) {
    complain(interrupted_ ? error_ : fmt::format("error - {}", error_));
  }
}

}  // namespace

int run_client(const Options& options, Output& output) {
  const auto addresses = apps::resolve_host(options.host, options.port, options.family);
  std::string errors;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Client client(options, output, addresses[i]);
    const int exit_code = client.run();
    if (!client.found_nobody()) return exit_code;
    errors += (errors.empty() ? "" : "; ") + client.error();
    if (i + 1 == addresses.size()) client.report_nobody(errors);
  }
  return apps::kExitFailure;
}

}  // namespace perf
