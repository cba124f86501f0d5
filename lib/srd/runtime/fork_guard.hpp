// SPDX-License-Identifier: Apache-2.0
// Tells whether an object belongs to this process. After fork() both sides hold the same sockets
// and the same protocol state: if both used them, sequence numbers would be sent twice. So objects
// of the parent refuse service in the child, which may make its own.
#pragma once

#include <cstdint>

#include "srd/error.hpp"

namespace srd::runtime {

/// Stamp of one process between two forks; 0 is never valid.
using ProcessStamp = std::uint64_t;

/// The stamp for objects made now. Errors: not_supported where the kernel has no MADV_WIPEONFORK
/// (Linux before 4.14), no_memory. Any thread.
Errc current_stamp(ProcessStamp& out) noexcept;

/// True if `stamp` was given out in this process. One load; async-signal-safe. Any thread.
bool is_own(ProcessStamp stamp) noexcept;

}  // namespace srd::runtime
