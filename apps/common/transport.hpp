// SPDX-License-Identifier: Apache-2.0
// The one OpenSRD endpoint of a tool: context, poller and endpoint opened together and closed in
// the right order, with errors as Failure. For programs with one endpoint and one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "srd/srd.hpp"

namespace apps {

struct TransportConfig {
  std::string device = "udp:";
  srd_address bind{};                   ///< family 0: the address in the device string
  std::uint16_t paths = 0;              ///< 0: the library's default
  std::uint32_t max_message_bytes = 0;  ///< 0: the library's default
  std::uint64_t receive_pool_bytes = 64U << 20;
  std::uint32_t max_peers = 0;           ///< 0: the library's default
  std::uint32_t connect_timeout_ms = 0;  ///< 0: the library's default
};

/// One thread at a time. Owns what it opens.
class Transport {
 public:
  /// Throws Failure with the library's own explanation.
  explicit Transport(const TransportConfig& config);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Polls once, or waits up to `timeout_ns` where the device can sleep and `sleep` is set. The
  /// completions are valid until the next call. Throws Failure if the device failed.
  std::span<const srd_completion> harvest(bool sleep, std::uint64_t timeout_ns);

  void flush() noexcept { poller_.flush(); }

  [[nodiscard]] srd::Endpoint& endpoint() noexcept { return endpoint_; }

  [[nodiscard]] const srd_limits& limits() const noexcept { return limits_; }

  /// Paths of a peer into storage of the transport, valid until the next call.
  [[nodiscard]] std::span<const srd_path_info> paths(srd_peer peer) noexcept {
    return endpoint_.paths(peer, paths_);
  }

  /// Throws Failure.
  srd_peer resolve(const srd_address& address);

 private:
  srd::Context context_;
  srd::Poller poller_;
  srd::Endpoint endpoint_;
  srd_limits limits_{};
  std::vector<srd_completion> completions_;
  std::vector<srd_path_info> paths_;
};

}  // namespace apps
