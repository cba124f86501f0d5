// SPDX-License-Identifier: Apache-2.0
// Opening, polling and closing the endpoint of a tool; see the header.
#include "common/transport.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "common/addresses.hpp"
#include "common/failure.hpp"
#include "common/signals.hpp"

namespace apps {
namespace {

constexpr std::size_t kCompletionsPerHarvest = 256;
constexpr std::size_t kPathsMax = 64;

[[noreturn]] void fail(const std::string& what, std::error_code error) {
  const std::string detail = srd::last_error();
  throw Failure(kExitFailure, fmt::format("{}: {}{}{}", what, error.message(),
                                          detail.empty() ? "" : "; ", detail));
}

}  // namespace

Transport::Transport(const TransportConfig& config)
    : completions_(kCompletionsPerHarvest), paths_(kPathsMax) {
  auto context = srd::Context::open(config.device);
  if (!context) {
    fail(
        fmt::format("cannot open device \"{}\" (srd-info lists what this host has)", config.device),
        context.error());
  }
  context_ = std::move(*context);

  auto poller = context_.make_poller();
  if (!poller) fail("cannot create a poller", poller.error());
  poller_ = std::move(*poller);

  srd::EndpointConfig wanted;
  if (config.bind.family != 0) wanted.bind = config.bind;
  wanted.paths = config.paths;
  wanted.max_message_bytes = config.max_message_bytes;
  wanted.receive_pool_bytes = config.receive_pool_bytes;
  wanted.max_peers = config.max_peers;
  wanted.connect_timeout_ms = config.connect_timeout_ms;
  auto endpoint = poller_.make_endpoint(wanted);
  if (!endpoint) {
    fail(config.bind.family != 0
             ? fmt::format("cannot open an endpoint at {}", address_text(config.bind))
             : fmt::format("cannot open an endpoint on \"{}\"", config.device),
         endpoint.error());
  }
  endpoint_ = std::move(*endpoint);
  limits_ = endpoint_.limits();
  wake_on_signal(poller_.handle());
}

Transport::~Transport() {
  wake_on_signal(nullptr);
}

std::span<const srd_completion> Transport::harvest(bool sleep, std::uint64_t timeout_ns) {
  std::error_code error;
  const bool may_sleep = sleep && timeout_ns > 0 && limits_.can_sleep != 0;
  const auto timeout = std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min<std::uint64_t>(timeout_ns, INT64_MAX)));
  const auto found =
      may_sleep ? poller_.wait(completions_, timeout, error) : poller_.poll(completions_, error);
  if (error) fail("the device failed", error);
  return found;
}

srd_peer Transport::resolve(const srd_address& address) {
  const auto peer = endpoint_.resolve(address);
  if (!peer) fail(fmt::format("cannot reach {}", address_text(address)), peer.error());
  return *peer;
}

}  // namespace apps
