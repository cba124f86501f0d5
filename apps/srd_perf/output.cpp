// SPDX-License-Identifier: Apache-2.0
// Output of reports; see the header.
#include "srd_perf/output.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "common/failure.hpp"

namespace perf {

Output::Output(const std::string& log_file, const std::string& title, bool flush_each_interval)
    : file_(stdout),
      prefix_(title.empty() ? "" : title + ":  "),
      flush_each_interval_(flush_each_interval) {
  if (log_file.empty()) return;
  owned_.reset(std::fopen(log_file.c_str(), "a"));
  if (owned_ == nullptr) {
    throw apps::Failure(
        apps::kExitFailure,
        fmt::format("cannot open log file \"{}\": {}", log_file,
                    std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe): one thread
  }
  file_ = owned_.get();
}

void Output::write(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t length = end == std::string_view::npos ? text.size() : end + 1;
    std::fwrite(prefix_.data(), 1, prefix_.size(), file_);
    std::fwrite(text.data(), 1, length, file_);
    text.remove_prefix(length);
  }
}

void Output::write_raw(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_);
  flush();
}

void Output::end_interval() {
  if (flush_each_interval_) flush();
}

void Output::flush() {
  std::fflush(file_);
}

void complain(std::string_view text) {
  std::fputs(fmt::format("srd-perf: {}\n", text).c_str(), stderr);
}

}  // namespace perf
