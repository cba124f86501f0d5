// SPDX-License-Identifier: Apache-2.0
// Signal handling of the tools; see the header.
#include "common/signals.hpp"

#include <signal.h>

#include <atomic>

namespace apps {
namespace {

std::atomic<int> received{0};
std::atomic<int> last_signal{0};
std::atomic<srd_poller*> poller_to_wake{nullptr};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<srd_poller*>::is_always_lock_free);

extern "C" void handle_ending_signal(int number) {
  last_signal.store(number);
  received.fetch_add(1);
  if (srd_poller* poller = poller_to_wake.load()) srd_poller_wake(poller);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};

  action.sa_handler = handle_ending_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void wake_on_signal(srd_poller* poller) noexcept {
  poller_to_wake.store(poller);
}

int signals_received() noexcept {
  return received.load();
}

const char* last_signal_name() noexcept {
  switch (last_signal.load()) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

}  // namespace apps
