// SPDX-License-Identifier: Apache-2.0
// The library's few messages to people: control plane only, never per datagram. Where they go is
// set by srd_log_set() or the environment variable SRD_LOG; standard output is never used.
#pragma once

#include "srd/srd.h"

namespace srd {

enum class LogLevel : int {
  error = SRD_LOG_ERROR,
  warning = SRD_LOG_WARNING,
  info = SRD_LOG_INFO,
  debug = SRD_LOG_DEBUG,
};

/// True if a message of this level goes anywhere; for messages that cost something to make.
bool is_logged(LogLevel level) noexcept;

/// One message of one line, without a newline; it starts with the object it is about and has units
/// on its numbers. Cut at 1023 bytes. Of each level at most 50 pass at once and 10/s in the long
/// run; the next one that passes is preceded by the number left out. Messages of a sink itself are
/// dropped. Any thread.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

}  // namespace srd
