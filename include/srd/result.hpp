// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an srd::Errc. std::expected needs C++23 and is missing from the supported
// compilers, so the project has its own small type; it is never an alias.
#pragma once

#include <cstdlib>
#include <optional>
#include <utility>

#include "srd/error.hpp"
#include "srd/srd.h"

namespace srd {

/// What a function that makes something returns: the thing, or why there is none. Test it before
/// use, or take value(). An Errc given to it must not be Errc::ok.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Result(Errc error) noexcept : error_(error) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }

  explicit operator bool() const noexcept { return has_value(); }

  /// Errc::ok if there is a value.
  [[nodiscard]] Errc errc() const noexcept { return error_; }

  /// The same as a std::error_code, whose category tells it in words.
  [[nodiscard]] std::error_code error() const noexcept { return make_error_code(error_); }

  /// The value. There must be one.
  T& operator*() & noexcept { return *value_; }

  const T& operator*() const& noexcept { return *value_; }

  T* operator->() noexcept { return &*value_; }

  const T* operator->() const noexcept { return &*value_; }

  /// The value, or std::system_error with the code and srd_last_error(), the text of this thread's
  /// last failed call (std::abort where exceptions are off).
  T& value() & {
    require();
    return *value_;
  }

  T value() && {
    require();
    return std::move(*value_);
  }

 private:
  void require() const {
    if (value_.has_value()) return;
#if defined(__cpp_exceptions)
    throw std::system_error(make_error_code(error_), srd_last_error());
#else
    std::abort();
#endif
  }

  std::optional<T> value_;
  Errc error_ = Errc::ok;
};

}  // namespace srd
