// SPDX-License-Identifier: Apache-2.0
// The options of a device string ("paths=16&gso=off"), taken one by one by whoever understands
// them. What nobody took is an error that lists what could have been written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "srd/error.hpp"

namespace srd {

class Options {
 public:
  /// Splits "name=value&name=value"; malformed pieces are reported by finish(). Allocates.
  explicit Options(std::string_view text);

  /// Each sets `out` if the option was given and its value is right; a wrong value is reported by
  /// finish(). `out` holds the default before. A name is given once.
  void take_flag(const char* name, bool& out);  ///< "on" or "off"
  void take_number(const char* name, std::uint64_t min, std::uint64_t max, std::uint64_t& out);
  void take_text(const char* name, std::string& out);

  /// After all takes: ok, or invalid_argument with this thread's error text set. `subject` starts
  /// it, e.g. "srd_context_open: device \"udp:?x=1\"".
  Errc finish(const char* subject) const;

 private:
  struct Option {
    std::string name, value;
    bool taken = false;
  };

  Option* take(const char* name, const char* form);
  void complain(std::string text);

  std::vector<Option> options_;
  std::string known_;  // "paths=1..64, gso=on|off": for the error text
  std::string error_;  // the first thing that was wrong
};

}  // namespace srd
