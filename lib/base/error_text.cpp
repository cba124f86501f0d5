// SPDX-License-Identifier: Apache-2.0
#include "base/error_text.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "srd/srd.h"

namespace srd {
namespace {

thread_local char text_of_thread[kErrorTextBytes];

}  // namespace

int fail(Errc code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text_of_thread, sizeof text_of_thread, format, arguments);
  va_end(arguments);
  return -static_cast<int>(code);
}

int fail_with(Errc code, const char* text) noexcept {
  const std::size_t bytes = strnlen(text, sizeof text_of_thread - 1);
  std::memmove(text_of_thread, text, bytes);  // `text` may be what error_text() returned
  text_of_thread[bytes] = '\0';
  return -static_cast<int>(code);
}

const char* error_text() noexcept {
  return text_of_thread;
}

}  // namespace srd

extern "C" const char* srd_last_error(void) noexcept {
  return srd::error_text();
}
