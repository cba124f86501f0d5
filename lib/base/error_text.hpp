// SPDX-License-Identifier: Apache-2.0
// The text behind srd_last_error(): one buffer per thread, written where an operation fails and
// knows why. Not for network input, which is counted, and not for log messages.
#pragma once

#include "srd/error.hpp"

namespace srd {

inline constexpr int kErrorTextBytes = 512;

/// Sets this thread's error text and returns the negated code, ready to be handed to the caller:
/// `return fail(Errc::invalid_argument, "srd_send: iov_count %zu is over iov_max %zu; ...", ...)`.
/// Longer texts are cut at kErrorTextBytes - 1.
[[gnu::format(printf, 2, 3)]] int fail(Errc code, const char* format, ...) noexcept;

/// The same with a finished text; cheap enough for errors that are part of normal work.
int fail_with(Errc code, const char* text) noexcept;

/// The last text set by this thread; "" if there was none. Valid until the next failure.
const char* error_text() noexcept;

}  // namespace srd
