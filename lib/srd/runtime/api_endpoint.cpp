// SPDX-License-Identifier: Apache-2.0
// C ABI: endpoints and peers.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "srd/core/path_set.hpp"
#include "srd/runtime/arguments.hpp"
#include "srd/runtime/poller.hpp"
#include "srd/srd.h"

using namespace srd;
using namespace srd::runtime;

namespace {

constexpr const char* kCreate = "srd_endpoint_create";

int create_endpoint(Poller& poller, const srd_endpoint_config& wanted, srd_endpoint** out) {
  Context& context = poller.context();
  core::Config config;
  if (const Errc status = make_core_config(context, wanted, config); status != Errc::ok) {
    return -static_cast<int>(status);
  }
  QueueConfig queue = context.queue();
  if (wanted.bind != nullptr) queue.bind = *wanted.bind;
  queue.paths = static_cast<std::uint16_t>(config.limits.paths);
  queue.seed = config.seed;
  auto io = context.driver().open_queue(queue);
  if (!io) return fail(io.errc(), "%s: %s", kCreate, context.driver().last_error().c_str());
  auto address = (*io)->local_address();
  if (!address)
    return fail(address.errc(), "%s: the driver does not know its own address", kCreate);
  auto engine = Engine::create(config, std::move(*io));
  if (!engine && engine.errc() != Errc::no_memory) {
    return fail(engine.errc(),
                "%s: the protocol refuses device \"%s\" with datagrams of %u bytes; at least 1232 "
                "are needed",
                kCreate, context.text().c_str(), config.driver.datagram_bytes_max);
  }
  if (!engine) {
    return fail(engine.errc(),
                "%s: no memory for receive_pool_bytes %llu, max_peers %u, max_sends %u; lower them",
                kCreate, static_cast<unsigned long long>(config.limits.receive_pool_bytes),
                config.limits.peers, config.limits.send_messages);
  }
  auto endpoint =
      std::make_unique<srd_endpoint>(poller, std::move(*engine), config, *address, poller.stamp());
  if (const Errc status = poller.attach(*endpoint); status != Errc::ok) {
    return fail(status,
                "%s: the poller cannot watch another descriptor; see fs.epoll.max_user_watches",
                kCreate);
  }
  *out = endpoint.release();
  return 0;
}

int check_bind(const srd_address* bind) noexcept {
  if (bind == nullptr || bind->family == 0 || bind->family == 4 || bind->family == 6) return 0;
  return fail(Errc::invalid_argument,
              "%s: config->bind->family is %u; it must be 4, 6, or 0 for the device's own address",
              kCreate, bind->family);
}

int check_destination(const char* function, const srd_address& address) noexcept {
  if (address.family != 4 && address.family != 6) {
    return fail(Errc::invalid_argument,
                "%s: address->family is %u; it must be 4 or 6 (srd_address_parse() fills it)",
                function, address.family);
  }
  if (address.port == 0) {
    return fail(Errc::invalid_argument,
                "%s: address->port is 0; give the port that the peer's endpoint is bound to",
                function);
  }
  const auto* end = address.bytes + (address.family == 4 ? 4 : 16);
  if (std::all_of(address.bytes, end, [](std::uint8_t byte) { return byte == 0; })) {
    return fail(Errc::invalid_argument,
                "%s: address is the wildcard, which is for binding only; give the peer's address",
                function);
  }
  return 0;
}

int no_peer(const char* function, srd_peer peer) noexcept {
  return fail(Errc::not_found,
              "%s: peer %u is not a handle of this endpoint (any more); get one from "
              "srd_peer_resolve() or from a completion",
              function, peer);
}

}  // namespace

extern "C" {

int srd_endpoint_create(srd_poller* poller, const srd_endpoint_config* config,
                        srd_endpoint** out) noexcept {
  if (const int status = check_object(kCreate, "poller", poller); status != 0) return status;
  if (const int status = check_pointer(kCreate, "out", out); status != 0) return status;
  srd_endpoint_config wanted = SRD_ENDPOINT_CONFIG_INIT;
  if (const int status = read_config(kCreate, config, wanted); status != 0) return status;
  if (const int status = check_flags(kCreate, wanted.flags, 0); status != 0) return status;
  if (const int status = check_bind(wanted.bind); status != 0) return status;
  return without_exceptions(kCreate, [&] { return create_endpoint(*poller, wanted, out); });
}

void srd_endpoint_destroy(srd_endpoint* endpoint) noexcept {
  if (endpoint == nullptr) return;
  if (check_object("srd_endpoint_destroy", "endpoint", endpoint) != 0) return;
  endpoint->poller().detach(*endpoint);
  delete endpoint;
}

int srd_endpoint_address(const srd_endpoint* endpoint, srd_address* out) noexcept {
  constexpr const char* kFunction = "srd_endpoint_address";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_pointer(kFunction, "out", out); status != 0) return status;
  *out = endpoint->address();
  return 0;
}

int srd_endpoint_limits(const srd_endpoint* endpoint, srd_limits* out) noexcept {
  constexpr const char* kFunction = "srd_endpoint_limits";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_struct(kFunction, out); status != 0) return status;
  const core::Config& config = endpoint->config();
  srd_limits limits = SRD_LIMITS_INIT;
  limits.datagram_bytes_max = config.driver.datagram_bytes_max;
  limits.paths_max = config.limits.paths;
  limits.max_message_bytes = config.limits.max_message_bytes;
  limits.copy_bytes_max = config.limits.copy_bytes_max;
  limits.iov_max = core::kIovMax;
  limits.max_peers = config.limits.peers;
  limits.max_sends = config.limits.send_messages;
  limits.can_sleep = config.driver.can_sleep ? 1 : 0;
  fill_struct(out, limits);
  return 0;
}

int srd_endpoint_stats(const srd_endpoint* endpoint, srd_stats* out) noexcept {
  constexpr const char* kFunction = "srd_endpoint_stats";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_struct(kFunction, out); status != 0) return status;
  srd_stats stats{};
  endpoint->read_stats(stats);
  fill_struct(out, stats);
  return 0;
}

int srd_endpoint_advice(const srd_endpoint* endpoint, char* out, std::size_t capacity) noexcept {
  constexpr const char* kFunction = "srd_endpoint_advice";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_array(kFunction, "out", out, capacity); status != 0) return status;
  return without_exceptions(kFunction, [&] {
    std::string text;
    for (const std::string& line : endpoint->advice()) {
      text.append(text.empty() ? "" : "\n").append(line);
    }
    if (capacity > 0) std::snprintf(out, capacity, "%s", text.c_str());
    return static_cast<int>(text.size());
  });
}

int srd_peer_resolve(srd_endpoint* endpoint, const srd_address* address, srd_peer* out) noexcept {
  constexpr const char* kFunction = "srd_peer_resolve";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_pointer(kFunction, "address", address); status != 0) return status;
  if (const int status = check_pointer(kFunction, "out", out); status != 0) return status;
  if (const int status = check_destination(kFunction, *address); status != 0) return status;
  const Poller::Hold hold(endpoint->poller());
  const auto peer = endpoint->core().add_peer(endpoint->poller().clock().now(), *address);
  if (peer) {
    *out = static_cast<srd_peer>(*peer);
    return 0;
  }
  char text[64] = "";
  srd_address_format(address, text, sizeof text);
  if (peer.errc() == Errc::no_memory) {
    return fail(peer.errc(),
                "%s: no room for %s; the endpoint has max_peers %u: forget some or raise it",
                kFunction, text, endpoint->config().limits.peers);
  }
  if (peer.errc() == Errc::too_many_files) {
    return fail(peer.errc(),
                "%s: asking for the route to %s needs a descriptor and the limit is reached; close "
                "some or raise ulimit -n",
                kFunction, text);
  }
  char own[64] = "";
  srd_address_format(&endpoint->address(), own, sizeof own);
  return fail(peer.errc(),
              "%s: no route from %s to %s; check ip route get, and that both are of one family",
              kFunction, own, text);
}

int srd_peer_forget(srd_endpoint* endpoint, srd_peer peer) noexcept {
  constexpr const char* kFunction = "srd_peer_forget";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  const Poller::Hold hold(endpoint->poller());
  const Errc status =
      endpoint->core().remove_peer(endpoint->poller().clock().now(), core::PeerId{peer});
  return status == Errc::ok ? 0 : no_peer(kFunction, peer);
}

int srd_peer_query(const srd_endpoint* endpoint, srd_peer peer, srd_peer_info* out) noexcept {
  constexpr const char* kFunction = "srd_peer_query";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_struct(kFunction, out); status != 0) return status;
  srd_peer_info info{};
  {
    const Poller::Look look(endpoint->poller());
    if (!endpoint->core().peer_info(core::PeerId{peer}, info)) return no_peer(kFunction, peer);
  }
  fill_struct(out, info);
  return 0;
}

int srd_peer_paths(const srd_endpoint* endpoint, srd_peer peer, srd_path_info* out,
                   std::size_t capacity, std::size_t entry_bytes) noexcept {
  constexpr const char* kFunction = "srd_peer_paths";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_array(kFunction, "out", out, capacity); status != 0) return status;
  if (const int status = check_size<srd_path_info>(kFunction, "entry_bytes", entry_bytes);
      status != 0) {
    return status;
  }
  std::array<srd_path_info, core::kSlotsMax> paths;
  std::size_t count = 0;
  {
    const Poller::Look look(endpoint->poller());
    srd_peer_info info{};
    if (!endpoint->core().peer_info(core::PeerId{peer}, info)) return no_peer(kFunction, peer);
    count = endpoint->core().path_info(core::PeerId{peer},
                                       std::span(paths).first(std::min(capacity, paths.size())));
  }
  fill_array(out, entry_bytes,
             std::span<const srd_path_info>(paths).first(std::min(capacity, count)));
  return static_cast<int>(count);
}

}  // extern "C"
