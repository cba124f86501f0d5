// SPDX-License-Identifier: Apache-2.0
// C++20 veneer over srd.h: owning handles, spans, std::error_code. Header-only: the ABI is the C
// one, and its comments hold here too. Objects are moved, never copied, and destroyed before what
// made them: messages, endpoint, poller, context. A moved-from object answers every call with
// invalid_argument.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "srd/address.hpp"
#include "srd/error.hpp"
#include "srd/result.hpp"
#include "srd/srd.h"

namespace srd {

using Peer = ::srd_peer;
using Completion = ::srd_completion;
using Iov = ::srd_iov;
using Stats = ::srd_stats;
using EndpointLimits = ::srd_limits;
using PeerInfo = ::srd_peer_info;
using PathInfo = ::srd_path_info;
using DeviceInfo = ::srd_device_info;
using ByteView = std::span<const std::byte>;

inline constexpr Peer kInvalidPeer = SRD_NO_PEER;

/// The error of a completion's status or of a C function's return value; no error if it is >= 0.
inline std::error_code to_error(int status) noexcept {
  return status < 0 ? make_error_code(static_cast<Errc>(-status)) : std::error_code{};
}

/// What was wrong with this thread's last failed call, in words.
inline const char* last_error() noexcept {
  return srd_last_error();
}

/// The characters of a text as bytes to send; they are not copied.
inline ByteView as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// A received message on loan; gives it back at the end of its life. Used by the poller's thread.
class Message {
 public:
  Message() noexcept = default;

  /// Takes over the loan of an SRD_OP_RECEIVE completion: make one Message of it at most. Empty for
  /// other completions.
  explicit Message(const Completion& completion) noexcept {
    if (completion.op == SRD_OP_RECEIVE) completion_ = completion;
  }

  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Message(Message&& other) noexcept : completion_(std::exchange(other.completion_, {})) {}

  Message& operator=(Message&& other) noexcept {
    if (this != &other) {
      release();
      completion_ = std::exchange(other.completion_, {});
    }
    return *this;
  }

  ~Message() { release(); }

  /// The whole message if segment_count() <= 1, else its first piece.
  [[nodiscard]] ByteView data() const noexcept {
    if (completion_.segment_count > 1) return first_piece();
    return {static_cast<const std::byte*>(completion_.data), completion_.bytes};
  }

  /// data() as characters.
  [[nodiscard]] std::string_view text() const noexcept {
    const ByteView bytes = data();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return completion_.bytes; }

  [[nodiscard]] std::uint32_t segment_count() const noexcept { return completion_.segment_count; }

  [[nodiscard]] Peer peer() const noexcept { return completion_.peer; }

  [[nodiscard]] std::uint16_t channel() const noexcept { return completion_.channel; }

  /// False for a default-made, moved-from or released message.
  explicit operator bool() const noexcept { return completion_.buffer != 0; }

  /// The pieces in order, as many as fit into `out`. O(pieces).
  std::span<Iov> segments(std::span<Iov> out) const noexcept {
    const int count =
        srd_buffer_segments(completion_.endpoint, completion_.buffer, out.data(), out.size());
    const std::size_t found = count < 0 ? 0 : static_cast<std::size_t>(count);
    return out.first(found < out.size() ? found : out.size());
  }

  /// Copies from `offset` what fits into `out`; returns how many bytes. O(pieces + bytes).
  std::size_t copy_to(std::span<std::byte> out, std::size_t offset = 0) const noexcept {
    const std::int64_t copied =
        srd_buffer_copy(completion_.endpoint, completion_.buffer, offset, out.data(), out.size());
    return copied < 0 ? 0 : static_cast<std::size_t>(copied);
  }

  /// Gives the memory back, and credit to the sender. The message is empty then.
  void release() noexcept {
    if (completion_.buffer != 0) srd_buffer_release(completion_.endpoint, completion_.buffer);
    completion_ = {};
  }

 private:
  [[nodiscard]] ByteView first_piece() const noexcept {
    Iov piece{};
    const auto found = segments({&piece, 1});
    return {static_cast<const std::byte*>(piece.data), found.empty() ? 0 : piece.bytes};
  }

  Completion completion_{};
};

/// Per message; see the SRD_SEND_* flags.
struct SendOptions {
  std::uint64_t user_data = 0;  ///< comes back in the completion
  std::uint16_t channel = 0;    ///< told to the receiver
  bool copy = false;            ///< payload may be reused at once
  bool unsignaled = false;      ///< no completion on success
  bool one_path = false;        ///< hint: keep it on one path
};

/// 0 or nothing in a field: the default, see srd_endpoint_config.
struct EndpointConfig {
  std::optional<Address> bind = std::nullopt;
  std::optional<std::array<std::uint8_t, 16>> endpoint_id = std::nullopt;
  std::uint16_t paths = 0;
  std::uint16_t max_ack_delay_us = 0;
  std::uint32_t max_message_bytes = 0;
  std::uint64_t receive_pool_bytes = 0;
  std::uint32_t max_peers = 0;
  std::uint32_t max_sends = 0;
  std::uint32_t peer_timeout_ms = 0;
  std::uint32_t connect_timeout_ms = 0;
};

/// One local address that talks to many peers. Used by the poller's thread unless said otherwise.
class Endpoint {
 public:
  Endpoint() noexcept = default;

  /// Errors: no_route, no_memory (max_peers), invalid_argument.
  Result<Peer> resolve(const Address& address) noexcept {
    Peer peer = kInvalidPeer;
    const int status = srd_peer_resolve(handle(), &address, &peer);
    if (status < 0) return static_cast<Errc>(-status);
    return peer;
  }

  /// The same from "192.0.2.1:7000".
  Result<Peer> resolve(std::string_view text) noexcept {
    const Result<Address> address = parse_address(text);
    if (!address) return address.errc();
    return resolve(*address);
  }

  /// What is outstanding to `peer` completes with canceled. Errors: not_found.
  std::error_code forget(Peer peer) noexcept { return to_error(srd_peer_forget(handle(), peer)); }

  /// Keep `payload` until its completion unless options.copy. Errors: would_block (poll, then
  /// retry), message_too_long, not_found, invalid_argument.
  std::error_code send(Peer peer, ByteView payload, const SendOptions& options = {}) noexcept {
    const Iov piece{payload.data(), payload.size()};
    return send(peer, std::span(&piece, 1), options);
  }

  /// One message of several pieces, at most limits().iov_max.
  std::error_code send(Peer peer, std::span<const Iov> pieces,
                       const SendOptions& options = {}) noexcept {
    srd_send_options wanted = SRD_SEND_OPTIONS_INIT;
    wanted.user_data = options.user_data;
    wanted.channel = options.channel;
    wanted.flags = (options.copy ? std::uint32_t{SRD_SEND_COPY} : 0U) |
                   (options.unsignaled ? std::uint32_t{SRD_SEND_UNSIGNALED} : 0U) |
                   (options.one_path ? std::uint32_t{SRD_SEND_ONE_PATH} : 0U);
    return to_error(srd_send(handle(), peer, pieces.data(), pieces.size(), &wanted));
  }

  /// The bound address with its real port; family 0 for an empty endpoint. Any thread.
  [[nodiscard]] Address address() const noexcept {
    Address address{};
    srd_endpoint_address(handle(), &address);
    return address;
  }

  /// Any thread.
  [[nodiscard]] EndpointLimits limits() const noexcept {
    EndpointLimits limits = SRD_LIMITS_INIT;
    srd_endpoint_limits(handle(), &limits);
    return limits;
  }

  /// Any thread.
  [[nodiscard]] Stats stats() const noexcept {
    Stats stats{};
    stats.struct_bytes = sizeof stats;
    srd_endpoint_stats(handle(), &stats);
    return stats;
  }

  /// State and counters of one peer. Errors: not_found. Any thread.
  [[nodiscard]] Result<PeerInfo> peer_info(Peer peer) const noexcept {
    PeerInfo info{};
    info.struct_bytes = sizeof info;
    const int status = srd_peer_query(handle(), peer, &info);
    if (status < 0) return static_cast<Errc>(-status);
    return info;
  }

  /// As many of the peer's paths as fit into `out`; empty for an unknown peer. Any thread.
  std::span<PathInfo> paths(Peer peer, std::span<PathInfo> out) const noexcept {
    const int count = srd_peer_paths(handle(), peer, out.data(), out.size(), sizeof(PathInfo));
    const std::size_t found = count < 0 ? 0 : static_cast<std::size_t>(count);
    return out.first(found < out.size() ? found : out.size());
  }

  /// What has gone wrong here and can be mended, a line each with the command; "" if nothing. Any
  /// thread.
  [[nodiscard]] std::string advice() const {
    const int bytes = srd_endpoint_advice(handle(), nullptr, 0);
    std::string text(bytes < 0 ? 0 : static_cast<std::size_t>(bytes) + 1, '\0');
    const int written = srd_endpoint_advice(handle(), text.data(), text.size());
    text.resize(written < 0 ? 0 : std::min(text.size(), static_cast<std::size_t>(written) + 1) - 1);
    return text;
  }

  [[nodiscard]] srd_endpoint* handle() const noexcept { return handle_.get(); }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// True if `completion` is of this endpoint.
  [[nodiscard]] bool owns(const Completion& completion) const noexcept {
    return handle() != nullptr && completion.endpoint == handle();
  }

 private:
  friend class Poller;

  struct Destroy {
    void operator()(srd_endpoint* endpoint) const noexcept { srd_endpoint_destroy(endpoint); }
  };

  explicit Endpoint(srd_endpoint* handle) noexcept : handle_(handle) {}

  std::unique_ptr<srd_endpoint, Destroy> handle_;
};

struct PollerConfig {
  bool shared = false;        ///< calls from any thread; a lock inside
  std::uint32_t spin_us = 0;  ///< wait() polls this long before it sleeps
};

/// One thread's progress engine.
class Poller {
 public:
  Poller() noexcept = default;

  /// Errors: address_in_use, address_unavailable, no_memory, too_many_files, invalid_argument.
  Result<Endpoint> make_endpoint(const EndpointConfig& config = {}) noexcept {
    srd_endpoint_config wanted = SRD_ENDPOINT_CONFIG_INIT;
    wanted.bind = config.bind ? &*config.bind : nullptr;
    wanted.endpoint_id = config.endpoint_id ? config.endpoint_id->data() : nullptr;
    wanted.paths = config.paths;
    wanted.max_ack_delay_us = config.max_ack_delay_us;
    wanted.max_message_bytes = config.max_message_bytes;
    wanted.receive_pool_bytes = config.receive_pool_bytes;
    wanted.max_peers = config.max_peers;
    wanted.max_sends = config.max_sends;
    wanted.peer_timeout_ms = config.peer_timeout_ms;
    wanted.connect_timeout_ms = config.connect_timeout_ms;
    srd_endpoint* endpoint = nullptr;
    const int status = srd_endpoint_create(handle(), &wanted, &endpoint);
    if (status < 0) return static_cast<Errc>(-status);
    return Endpoint(endpoint);
  }

  /// Progress, then the completions, at the front of `out`. Never blocks. Nothing after an error,
  /// which `error` then tells: busy (another thread drives a shared poller), not_permitted (after
  /// fork).
  std::span<Completion> poll(std::span<Completion> out, std::error_code& error) noexcept {
    return harvested(out, srd_poller_poll(handle(), out.data(), out.size()), error);
  }

  /// As poll(), but sleeps until there is a completion, a wake() or the timeout. Further error:
  /// not_supported (the device cannot sleep).
  std::span<Completion> wait(std::span<Completion> out, std::chrono::nanoseconds timeout,
                             std::error_code& error) noexcept {
    const std::uint64_t ns = timeout == std::chrono::nanoseconds::max() ? UINT64_MAX
                             : timeout.count() < 0                      ? 0
                                                   : static_cast<std::uint64_t>(timeout.count());
    return harvested(out, srd_poller_wait(handle(), out.data(), out.size(), ns), error);
  }

  /// The same without a timeout.
  std::span<Completion> wait(std::span<Completion> out, std::error_code& error) noexcept {
    return wait(out, std::chrono::nanoseconds::max(), error);
  }

  /// Sends what is queued, without receiving.
  std::error_code flush() noexcept { return to_error(srd_poller_flush(handle())); }

  /// For foreign event loops: true = may sleep until fd() is readable, false without an error =
  /// poll() first. Errors: not_supported (the device cannot sleep), not_permitted (after fork).
  bool arm(std::error_code& error) noexcept {
    const int status = srd_poller_arm(handle());
    error = to_error(std::min(status, 0));
    return status == 0;
  }

  /// Pollable for arrivals, timers and wakes; negative if the device cannot sleep. Any thread.
  [[nodiscard]] int fd() const noexcept { return srd_poller_fd(handle()); }

  /// Ends a current or the next wait(). Any thread, signal handlers too.
  std::error_code wake() noexcept { return to_error(srd_poller_wake(handle())); }

  [[nodiscard]] srd_poller* handle() const noexcept { return handle_.get(); }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  friend class Context;

  struct Destroy {
    void operator()(srd_poller* poller) const noexcept { srd_poller_destroy(poller); }
  };

  explicit Poller(srd_poller* handle) noexcept : handle_(handle) {}

  static std::span<Completion> harvested(std::span<Completion> out, int count,
                                         std::error_code& error) noexcept {
    error = to_error(count);
    return out.first(count < 0 ? 0 : static_cast<std::size_t>(count));
  }

  std::unique_ptr<srd_poller, Destroy> handle_;
};

/// An opened device.
class Context {
 public:
  Context() noexcept = default;

  /// "udp:", "udp:0.0.0.0:7000?paths=16". Errors: no_device, invalid_argument. Any thread.
  static Result<Context> open(const std::string& device) noexcept {
    srd_context* context = nullptr;
    const int status = srd_context_open(device.c_str(), nullptr, &context);
    if (status < 0) return static_cast<Errc>(-status);
    return Context(context);
  }

  /// Errors: too_many_files, no_memory. Any thread.
  Result<Poller> make_poller(const PollerConfig& config = {}) noexcept {
    srd_poller_config wanted = SRD_POLLER_CONFIG_INIT;
    wanted.flags = config.shared ? std::uint64_t{SRD_POLLER_SHARED} : 0U;
    wanted.spin_us = config.spin_us;
    srd_poller* poller = nullptr;
    const int status = srd_poller_create(handle(), &wanted, &poller);
    if (status < 0) return static_cast<Errc>(-status);
    return Poller(poller);
  }

  [[nodiscard]] srd_context* handle() const noexcept { return handle_.get(); }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  struct Destroy {
    void operator()(srd_context* context) const noexcept { srd_context_close(context); }
  };

  explicit Context(srd_context* handle) noexcept : handle_(handle) {}

  std::unique_ptr<srd_context, Destroy> handle_;
};

/// The devices of this host, and drivers that cannot work here with the reason. Any thread.
inline std::vector<DeviceInfo> devices() {
  const int count = srd_devices(nullptr, 0, sizeof(DeviceInfo));
  std::vector<DeviceInfo> found(count < 0 ? 0 : static_cast<std::size_t>(count));
  const int filled = srd_devices(found.data(), found.size(), sizeof(DeviceInfo));
  found.resize(filled < 0 ? 0 : std::min(found.size(), static_cast<std::size_t>(filled)));
  return found;
}

}  // namespace srd
