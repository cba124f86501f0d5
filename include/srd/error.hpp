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
  canceled = ECANCELED,                 ///< the endpoint was destroyed before the outcome was known
  timed_out = ETIMEDOUT,                ///< the peer never answered a HELLO
  peer_unreachable = 10001,             ///< an established peer stopped answering (dead timer)
  peer_restarted = 10002,               ///< proven restart of the peer: delivery unknown
  peer_closed = 10003,                  ///< the peer closed its endpoint: delivery unknown
  context_lost = 10004,      ///< the peer lost its context without a restart: delivery unknown
  no_such_port = 10005,      ///< the peer has nothing on that channel: not delivered
  version_mismatch = 10006,  ///< no protocol version in common
  peer_refused = 10007,      ///< the peer has no room for another context
  internal = 10099,          ///< a bug in OpenSRD; please report it
};

/// The "srd" category; its codes compare equal to the std::errc conditions they correspond to.
/// Any thread.
const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// Short English text of `code`, static storage. Any thread.
const char* to_string(Errc code) noexcept;

}  // namespace srd

template <>
struct std::is_error_code_enum<srd::Errc> : std::true_type {};
