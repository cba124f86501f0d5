// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/endpoint.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "srd/runtime/poller.hpp"

#include "base/error_text.hpp"

namespace srd::runtime {
namespace {

// Bounds of what an application may ask for (docs/TUNING.md, Endpoint). They keep sums and products
// of the core within its types and catch units mistaken for others.
constexpr std::uint64_t kPathsMax = 64;
constexpr std::uint64_t kAckDelayMaxUs = 10'000;
constexpr std::uint64_t kMessageBytesMax = 1U << 30;
constexpr std::uint64_t kPoolBytesMin = 1U << 20;
constexpr std::uint64_t kPoolBytesMax = std::uint64_t{1} << 40;
constexpr std::uint64_t kPeersMax =
    13'107;  // with a quarter more contexts: what a context id can name
constexpr std::uint64_t kSendsMax = (1U << 20) - 2;  // what a cookie can name
constexpr std::uint64_t kTimeoutMinMs = 100;
constexpr std::uint64_t kTimeoutMaxMs = 3'600'000;

Errc check_range(const char* field, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  if (value >= min && value <= max) return Errc::ok;
  fail(Errc::invalid_argument,
       "srd_endpoint_create: config->%s is %" PRIu64 "; it must be 0 (default) or %" PRIu64
       " to %" PRIu64,
       field, value, min, max);
  return Errc::invalid_argument;
}

// Sets `out` to the wanted value unless that is 0, which leaves the default.
template <class Field>
Errc choose(const char* field, std::uint64_t wanted, std::uint64_t min, std::uint64_t max,
            Field& out) {
  if (wanted == 0) return Errc::ok;
  const Errc status = check_range(field, wanted, min, max);
  if (status == Errc::ok) out = static_cast<Field>(wanted);
  return status;
}

Errc choose_limits(const Context& context, const srd_endpoint_config& wanted, core::Limits& out) {
  const Capabilities& can = context.capabilities();
  const std::uint64_t paths_max = std::min<std::uint64_t>(can.paths_max, kPathsMax);
  out.paths = static_cast<std::uint32_t>(std::min<std::uint64_t>(context.queue().paths, paths_max));
  for (const Errc status :
       {choose("paths", wanted.paths, 1, paths_max, out.paths),
        choose("max_message_bytes", wanted.max_message_bytes, 1, kMessageBytesMax,
               out.max_message_bytes),
        choose("receive_pool_bytes", wanted.receive_pool_bytes, kPoolBytesMin, kPoolBytesMax,
               out.receive_pool_bytes),
        choose("max_peers", wanted.max_peers, 1, kPeersMax, out.peers),
        choose("max_sends", wanted.max_sends, 1, kSendsMax, out.send_messages)}) {
    if (status != Errc::ok) return status;
  }
  if (out.max_message_bytes > out.receive_pool_bytes / 2) {
    fail(Errc::invalid_argument,
         "srd_endpoint_create: config->max_message_bytes (%u) is over half of "
         "config->receive_pool_bytes "
         "(%" PRIu64
         "): two of them could wait for each other for ever; raise the pool or lower the message "
         "size",
         out.max_message_bytes, out.receive_pool_bytes);
    return Errc::invalid_argument;
  }
  // A quarter more contexts than peers: old and new one live side by side during a succession.
  out.contexts = out.peers + std::max<std::uint32_t>(out.peers / 4, 4);
  out.half_open = std::min(out.half_open, out.contexts);
  out.half_open_free = std::min(out.half_open_free, out.half_open);
  out.datagram_bytes_max = can.datagram_bytes_max;
  return Errc::ok;
}

Errc choose_timing(const Context& context, const srd_endpoint_config& wanted, core::Timing& out) {
  out = context.capabilities().kernel_path ? core::Timing::kernel() : core::Timing::bypass();
  std::uint64_t ack_delay_us = 0;
  std::uint64_t peer_timeout_ms = 0;
  std::uint64_t connect_timeout_ms = 0;
  for (const Errc status :
       {choose("max_ack_delay_us", wanted.max_ack_delay_us, 1, kAckDelayMaxUs, ack_delay_us),
        choose("peer_timeout_ms", wanted.peer_timeout_ms, kTimeoutMinMs, kTimeoutMaxMs,
               peer_timeout_ms),
        choose("connect_timeout_ms", wanted.connect_timeout_ms, kTimeoutMinMs, kTimeoutMaxMs,
               connect_timeout_ms)}) {
    if (status != Errc::ok) return status;
  }
  if (ack_delay_us != 0) out.max_ack_delay_ns = ack_delay_us * 1'000;
  if (peer_timeout_ms != 0) out.dead_timeout_ns = peer_timeout_ms * 1'000'000;
  if (connect_timeout_ms != 0) out.connect_timeout_ns = connect_timeout_ms * 1'000'000;
  return Errc::ok;
}

Errc choose_identity(const srd_endpoint_config& wanted, core::Config& out) {
  struct {
    std::uint64_t seed, incarnation;
    wire::EndpointId id;
  } random{};

  if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    fail(
        Errc::not_supported,
        "srd_endpoint_create: the kernel gives no random bytes (getrandom failed); without them an "
        "endpoint cannot be told from its predecessor");
    return Errc::not_supported;
  }
  out.seed = random.seed;
  out.incarnation = random.incarnation | 1;  // never 0
  out.endpoint_id = random.id;
  if (wanted.endpoint_id != nullptr) {
    std::memcpy(out.endpoint_id.data(), wanted.endpoint_id, out.endpoint_id.size());
  }
  return Errc::ok;
}

}  // namespace

Errc make_core_config(const Context& context, const srd_endpoint_config& wanted,
                      core::Config& out) noexcept {
  out.driver = context.capabilities();
  if (const Errc status = choose_limits(context, wanted, out.limits); status != Errc::ok) {
    return status;
  }
  if (const Errc status = choose_timing(context, wanted, out.timing); status != Errc::ok) {
    return status;
  }
  return choose_identity(wanted, out);
}

Endpoint::Endpoint(Poller& poller, std::unique_ptr<Engine> engine, const core::Config& config,
                   const Address& address, ProcessStamp stamp) noexcept
    : poller_(poller),
      engine_(std::move(engine)),
      config_(config),
      address_(address),
      stamp_(stamp) {
  std::snprintf(full_text_.data(), full_text_.size(),
                "srd_send: queue full (max_sends %u, or %" PRIu64
                " bytes of copies); nothing was queued: call srd_poller_poll() and retry",
                config.limits.send_messages, config.limits.copy_pool_bytes);
}

std::vector<std::string> Endpoint::advice() const {
  IoCounters io;
  for (const Advised& advised : kAdvised) {
    io.*advised.in_driver = (engine_->driver_counters().*advised.counted).value();
  }
  return poller_.context().driver().advice(io);
}

void Endpoint::take_warnings(std::vector<std::string>& out) {
  IoCounters news;
  for (std::size_t i = 0; i < kAdvised.size(); ++i) {
    if (told_[i]) continue;
    news.*kAdvised[i].in_driver = (engine_->driver_counters().*kAdvised[i].counted).value();
    told_[i] = news.*kAdvised[i].in_driver != 0;
  }
  for (const std::string& line : poller_.context().driver().advice(news)) {
    out.push_back("endpoint " + to_string(address_) + ": " + line);
  }
}

void Endpoint::read_stats(srd_stats& out) const noexcept {
  const core::Counters& c = core().counters();
  const Engine::DriverCounters& d = engine_->driver_counters();
  const auto copy = [](std::uint64_t& to, const Counter& from) { to = from.value(); };
  copy(out.tx_messages, c.tx_messages);
  copy(out.tx_message_bytes, c.tx_message_bytes);
  copy(out.tx_failed_messages, c.tx_failed_messages);
  copy(out.rx_messages, c.rx_messages);
  copy(out.rx_message_bytes, c.rx_message_bytes);
  copy(out.tx_datagrams, c.tx_datagrams);
  copy(out.tx_bytes, c.tx_bytes);
  copy(out.rx_datagrams, c.rx_datagrams);
  copy(out.rx_bytes, c.rx_bytes);
  copy(out.tx_acks, c.tx_acks);
  copy(out.rx_acks, c.rx_acks);
  copy(out.tx_retransmits, c.tx_retransmits);
  copy(out.tx_spurious, c.tx_spurious);
  copy(out.losses_fifo, c.losses_fifo);
  copy(out.losses_rack, c.losses_rack);
  copy(out.tail_probes, c.tail_probes);
  copy(out.rto_probes, c.rto_probes);
  copy(out.rx_duplicates, c.rx_duplicates);
  copy(out.rx_ce, c.rx_ce);
  copy(out.rx_beyond_window, c.rx_beyond_window);
  copy(out.rx_bad_check, c.rx_bad_check);
  copy(out.rx_malformed, c.rx_malformed);
  copy(out.rx_unknown_context, c.rx_unknown_context);
  copy(out.rx_no_memory, c.rx_no_memory);
  copy(out.rx_rejected_messages, c.rx_rejected_messages);
  copy(out.tx_rejected_messages, c.tx_rejected_messages);
  copy(out.path_rerolls, c.path_rerolls);
  copy(out.path_suspects, c.path_suspects);
  copy(out.peers_up, c.peers_up);
  copy(out.peers_lost, c.peers_lost);
  copy(out.peer_restarts, c.peer_restarts);
  copy(out.rx_host_drops, d.rx_host_drops);
  copy(out.tx_refused, d.tx_refused);
  copy(out.icmp_errors, d.icmp_errors);
  copy(out.receive_pool_used_bytes, c.receive_pool_used_bytes);
  copy(out.peers_active, c.peers_active);
  copy(out.sends_active, c.sends_active);
  copy(out.tx_piggybacks, c.tx_piggybacks);
  copy(out.late_timers, c.late_timers);
  copy(out.rx_impossible_acks, c.rx_impossible_acks);
  copy(out.rx_dropped_handshakes, c.rx_dropped_handshakes);
  copy(out.gso_fallbacks, d.gso_fallbacks);
  copy(out.rx_starved, d.rx_starved);
  copy(out.rx_truncated, d.rx_truncated);
  copy(out.paths_refused, d.paths_refused);
}

}  // namespace srd::runtime
