// SPDX-License-Identifier: Apache-2.0
// How a tool ends when it cannot go on: an exit code and a text that says what to do next. Thrown
// while a tool sets itself up and caught in its main(); never on a data path.
#pragma once

#include <stdexcept>
#include <string>

namespace apps {

/// Exit codes of every OpenSRD tool, documented in the man pages.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;  ///< the network, the peer or this host failed
inline constexpr int kExitUsage = 2;    ///< the command line makes no sense

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& text)
      : std::runtime_error(text), exit_code_(exit_code) {}

  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace apps
