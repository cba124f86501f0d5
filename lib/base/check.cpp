// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace srd {

void check_failed(const char* file, int line, const char* expression) noexcept {
  std::fprintf(stderr,
               "srd: %s:%d: check failed: %s\n"
               "srd: this is a bug in OpenSRD; please report it with this line and a backtrace\n",
               file, line, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace srd
