// SPDX-License-Identifier: Apache-2.0
// Where reports go: standard output or a log file, every line with the title before it.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace perf {

class Output {
 public:
  /// `log_file` "": standard output; else it is appended to. `title` "": no prefix. Throws Failure.
  Output(const std::string& log_file, const std::string& title, bool flush_each_interval);

  /// Writes lines, each with the title before it.
  void write(std::string_view text);
  /// Writes `text` as it is, and flushes.
  void write_raw(std::string_view text);
  /// After each interval.
  void end_interval();
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, Close> owned_;
  std::FILE* file_;
  std::string prefix_;
  bool flush_each_interval_;
};

/// "srd-perf: " and `text` to standard error.
void complain(std::string_view text);

}  // namespace perf
