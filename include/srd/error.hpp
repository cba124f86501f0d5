// SPDX-License-Identifier: Apache-2.0
// Error codes of OpenSRD as a std::error_category. One list serves the core, the drivers, the C ABI
// (as negated values) and the C++ veneer. Codes below 10000 are errno values.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace srd {

/// Every way an operation or a message can fail. Names are nouns or states, never verbs.
enum class Errc : int {
  ok = 0,
  not_permitted = EPERM,        ///< a call in a forked child, or an operation the kernel denied
  would_block = EAGAIN,         ///< a queue is full: poll, then retry. Nothing was queued
  busy = EBUSY,                 ///< another thread is driving this shared poller
  invalid_argument = EINVAL,    ///< misuse; srd_last_error() names argument, value and limit
  no_device = ENODEV,           ///< no driver or device for that device string
  no_memory = ENOMEM,           ///< a table or pool with a documented limit is exhausted
  not_found = ENOENT,           ///< the named object does not exist (any more)
  address_in_use = EADDRINUSE,  ///< another socket holds the port
  address_unavailable = EADDRNOTAVAIL,  ///< no local interface has the address
  message_too_long = EMSGSIZE,          ///< longer than this endpoint or the peer accepts
  not_supported = ENOTSUP,              ///< the driver or this build lacks the capability
  no_route = EHOSTUNREACH,              ///< no route to the address
  too_many_files = EMFILE,              ///< the process may open no more descriptors (ulimit -n)
  canceled = ECANCELED,                 ///< srd_peer_forget() was called: delivery unknown
  timed_out = ETIMEDOUT,                ///< no answer to the first packets
  peer_unreachable = 10001,             ///< an established peer stopped answering
  peer_restarted = 10002,               ///< proven restart of the peer: delivery unknown
  peer_closed = 10003,                  ///< the peer closed its endpoint: delivery unknown
  context_lost = 10004,  ///< without a restart the peer lost our context, or its route shrank:
                         ///< delivery unknown
  no_such_port = 10005,  ///< reserved: the peer has nothing on that channel; no peer says so yet
  version_mismatch = 10006,  ///< no protocol version in common
  peer_refused = 10007,      ///< the peer has no room for another peer
  internal = 10099,          ///< a bug in OpenSRD; please report it
};

/// Short English text of `code`, static storage. Any thread.
constexpr const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "success";
    case Errc::not_permitted:
      return "not permitted";
    case Errc::would_block:
      return "queue full: poll, then retry";
    case Errc::busy:
      return "busy";
    case Errc::invalid_argument:
      return "invalid argument";
    case Errc::no_device:
      return "no such driver or device";
    case Errc::no_memory:
      return "a table or pool is exhausted";
    case Errc::not_found:
      return "no such object";
    case Errc::address_in_use:
      return "address already in use";
    case Errc::address_unavailable:
      return "no local interface has this address";
    case Errc::message_too_long:
      return "message too long";
    case Errc::not_supported:
      return "not supported";
    case Errc::no_route:
      return "no route to the address";
    case Errc::too_many_files:
      return "too many open files";
    case Errc::canceled:
      return "canceled";
    case Errc::timed_out:
      return "the peer never answered";
    case Errc::peer_unreachable:
      return "the peer stopped answering";
    case Errc::peer_restarted:
      return "the peer restarted";
    case Errc::peer_closed:
      return "the peer closed its endpoint";
    case Errc::context_lost:
      return "the context with the peer was lost: it forgot us, or the route's MTU fell";
    case Errc::no_such_port:
      return "the peer has nothing on that channel";
    case Errc::version_mismatch:
      return "no protocol version in common";
    case Errc::peer_refused:
      return "the peer has no room for another peer";
    case Errc::internal:
      return "internal error: please report it";
  }
  return "unknown error";
}

namespace detail {

class ErrorCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "srd"; }

  std::string message(int code) const override { return to_string(static_cast<Errc>(code)); }

  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::peer_unreachable:
        return std::errc::host_unreachable;
      case Errc::peer_restarted:
      case Errc::context_lost:
        return std::errc::connection_reset;
      case Errc::peer_closed:
        return std::errc::connection_aborted;
      case Errc::no_such_port:
      case Errc::peer_refused:
        return std::errc::connection_refused;
      case Errc::version_mismatch:
        return std::errc::protocol_not_supported;
      case Errc::internal:
        return std::errc::state_not_recoverable;
      default:
        return {code, std::generic_category()};
    }
  }
};

}  // namespace detail

/// The "srd" category; its codes compare equal to the std::errc conditions they correspond to.
/// Any thread.
inline const std::error_category& error_category() noexcept {
  static const detail::ErrorCategory category;
  return category;
}

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace srd

template <>
struct std::is_error_code_enum<srd::Errc> : std::true_type {};
