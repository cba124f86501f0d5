// SPDX-License-Identifier: Apache-2.0
// Checks that every C function makes of its arguments, each with the text for srd_last_error().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

#include "srd/runtime/fork_guard.hpp"

#include "base/error_text.hpp"

namespace srd::runtime {

/// Runs `body`, which allocates; a lack of memory becomes -ENOMEM, as nothing throws across the C
/// ABI.
template <class Body>
int without_exceptions(const char* function, const Body& body) noexcept {
  try {
    return body();
  } catch (const std::exception&) {
    return fail(Errc::no_memory, "%s: out of memory", function);
  }
}

/// 0, or -EINVAL: the pointer `name` is NULL.
inline int check_pointer(const char* function, const char* name, const void* pointer) noexcept {
  if (pointer != nullptr) [[likely]]
    return 0;
  return fail(Errc::invalid_argument, "%s: %s is NULL", function, name);
}

/// 0, or -EINVAL: NULL, or -EPERM: made by the parent of this process.
template <class Object>
int check_object(const char* function, const char* name, const Object* object) noexcept {
  if (const int status = check_pointer(function, name, object); status != 0) return status;
  if (is_own(object->stamp())) [[likely]]
    return 0;
  return fail(Errc::not_permitted,
              "%s: %s was made before fork(); a child opens its own context and must not touch its "
              "parent's",
              function, name);
}

/// 0, or -EINVAL: `out` is NULL although there is room to fill.
inline int check_array(const char* function, const char* name, const void* out,
                       std::size_t capacity) noexcept {
  if (out != nullptr || capacity == 0) [[likely]]
    return 0;
  return fail(Errc::invalid_argument, "%s: %s is NULL but the capacity is %zu", function, name,
              capacity);
}

/// 0, or -EINVAL: bits outside `known` are set.
inline int check_flags(const char* function, std::uint64_t flags, std::uint64_t known) noexcept {
  if ((flags & ~known) == 0) [[likely]]
    return 0;
  return fail(Errc::invalid_argument, "%s: unknown flags 0x%llx; this version knows 0x%llx",
              function, static_cast<unsigned long long>(flags & ~known),
              static_cast<unsigned long long>(known));
}

/// Copies a struct that starts with struct_bytes, as an older or newer header may have laid it out.
/// NULL gives the defaults. 0, or -EINVAL: not initialised, or newer fields set that are unknown
/// here.
template <class Config>
int read_config(const char* function, const Config* in, Config& out) noexcept {
  if (in == nullptr) return 0;
  if (in->struct_bytes < sizeof(Config)) {
    return fail(Errc::invalid_argument,
                "%s: struct_bytes of the configuration is %zu, at least %zu is needed; initialise "
                "it with its _INIT macro",
                function, in->struct_bytes, sizeof(Config));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  constexpr std::size_t kLongest = 4096;  // more is a struct that was never initialised
  for (std::size_t i = sizeof(Config); i < in->struct_bytes; ++i) {
    if (in->struct_bytes <= kLongest && bytes[i] == 0) continue;
    return fail(Errc::invalid_argument,
                "%s: struct_bytes of the configuration is %zu, this version knows %zu and the rest "
                "is not zero; initialise it with its _INIT macro",
                function, in->struct_bytes, sizeof(Config));
  }
  std::memcpy(&out, in, sizeof(Config));
  return 0;
}

/// 0, or -EINVAL: struct_bytes of a struct to be filled does not cover it.
template <class Struct>
int check_struct(const char* function, const Struct* out) noexcept {
  if (const int status = check_pointer(function, "out", out); status != 0) return status;
  if (out->struct_bytes >= sizeof(Struct)) return 0;
  return fail(Errc::invalid_argument,
              "%s: out->struct_bytes is %zu, at least %zu is needed; set it to sizeof *out before "
              "the call",
              function, out->struct_bytes, sizeof(Struct));
}

}  // namespace srd::runtime
