// SPDX-License-Identifier: Apache-2.0
// Checks of internal invariants. A failed check is a bug in this library (or memory trampled by
// somebody else), never the answer to network input or to misuse of the public API.
#pragma once

namespace srd {

/// Writes "file:line: check failed: expression" to standard error and aborts. Any thread.
[[noreturn]] void check_failed(const char* file, int line, const char* expression) noexcept;

}  // namespace srd

/// Always on; use it where a wrong state would corrupt or deliver wrongly.
#define SRD_CHECK(expression)                         \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? void(0)                                      \
       : ::srd::check_failed(__FILE__, __LINE__, #expression))

/// Debug builds only; use it on data paths. The expression is compiled, but not evaluated, in
/// release builds.
#if defined(NDEBUG)
#define SRD_DCHECK(expression) void(sizeof(static_cast<bool>(expression)))
#else
#define SRD_DCHECK(expression) SRD_CHECK(expression)
#endif
