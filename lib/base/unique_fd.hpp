// SPDX-License-Identifier: Apache-2.0
// Owner of one file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace srd {

class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) noexcept : fd_(fd) {}

  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  ~UniqueFd() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd_ = -1;
};

}  // namespace srd
