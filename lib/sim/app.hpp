// SPDX-License-Identifier: Apache-2.0
// The application on a simulated host: sends what it is told, verifies what it receives, and has
// the bad habits of real ones: holds messages, stops reading, stops releasing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "srd/core/core.hpp"

#include "sim/checker.hpp"

namespace srd::sim {

class Host;
class World;

struct AppConfig {
  TimeNs hold_ns = 0;         ///< a message is released so long after its delivery
  bool reads = true;          ///< false: events pile up in the core
  bool releases = true;       ///< false: messages stay on loan
  bool keeps_events = false;  ///< what happened is kept in events() for a test to look at
  double copy_out = 0.3;      ///< share of messages read by copy_out() instead of segments()
};

struct AppEvent {
  TimeNs at = 0;
  core::Event event{};
};

class App {
 public:
  App(World& world, Host& host, const AppConfig& habits)
      : config(habits), world_(world), host_(host) {}

  /// Queues a message; it goes to the core in the host's next turn, or later while the core is
  /// full.
  MessageNumber send(const SendSpec& spec);

  /// One turn of the application: events, releases, sends. Returns true if it did anything.
  bool turn();
  /// When it next wants a turn on its own account.
  [[nodiscard]] TimeNs next_at() const noexcept;
  /// The endpoint is gone, and with it every loan and everything queued.
  void handle_endpoint_loss();

  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }

  [[nodiscard]] std::size_t on_loan() const noexcept { return loans_.size(); }

  [[nodiscard]] const std::vector<AppEvent>& events() const noexcept { return events_; }

  /// Handle of another host in the current endpoint.
  core::PeerId peer(HostId to);

  /// Handles in use, by host.
  [[nodiscard]] const std::map<std::uint32_t, core::PeerId>& peers() const noexcept {
    return peers_;
  }

  /// Messages that the core refused for a full queue, so far.
  AppConfig config;
  /// Called for every event after it was checked; may send.
  std::function<void(const core::Event&)> on_event;

 private:
  struct Loan {
    core::MessageId message = core::kNoMessage;
    TimeNs release_at = 0;
  };

  [[nodiscard]] core::PeerId reply_peer(HostId to) const;
  bool harvest();
  bool release_due();
  bool pump();
  Errc submit(MessageNumber number);
  void receive(const core::Event& event);

  World& world_;
  Host& host_;
  std::deque<MessageNumber> queue_;
  std::deque<Loan> loans_;
  std::map<std::uint32_t, core::PeerId> peers_;  // by host
  std::map<std::uint32_t, core::PeerId> reply_peers_;
  std::vector<AppEvent> events_;
  std::vector<srd_iov> segments_;
  std::vector<std::byte> copied_;
  bool blocked_ = false;
};

}  // namespace srd::sim
