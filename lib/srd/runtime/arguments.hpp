// SPDX-License-Identifier: Apache-2.0
// Checks that every C function makes of its arguments, each with the text for srd_last_error().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>

#include "srd/runtime/fork_guard.hpp"
#include "srd/srd.h"

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

/// 0, or -EINVAL: a reserved field is set.
inline int check_reserved(const char* function, std::uint64_t reserved) noexcept {
  if (reserved == 0) [[likely]]
    return 0;
  return fail(Errc::invalid_argument,
              "%s: reserved is %llu; it must be 0: initialise the struct with its _INIT macro",
              function, static_cast<unsigned long long>(reserved));
}

/// Bytes of a public struct in version 0 of the ABI, which every caller knows. Fields added later
/// come after these and never into what was padding. One line per struct that may grow; they never
/// change.
template <class Struct>
inline constexpr std::size_t kBytesMin = 0;
template <>
inline constexpr std::size_t kBytesMin<srd_context_config> = offsetof(srd_context_config, flags) +
                                                             sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kBytesMin<srd_poller_config> = offsetof(srd_poller_config, reserved) +
                                                            sizeof(std::uint32_t);
template <>
inline constexpr std::size_t kBytesMin<srd_endpoint_config> = offsetof(srd_endpoint_config,
                                                                       connect_timeout_ms) +
                                                              sizeof(std::uint32_t);
template <>
inline constexpr std::size_t kBytesMin<srd_send_options> = offsetof(srd_send_options, reserved) +
                                                           sizeof(std::uint16_t);
template <>
inline constexpr std::size_t kBytesMin<srd_limits> = offsetof(srd_limits, can_sleep) +
                                                     sizeof(std::uint32_t);
template <>
inline constexpr std::size_t kBytesMin<srd_stats> = offsetof(srd_stats, sends_active) +
                                                    sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kBytesMin<srd_peer_info> = offsetof(srd_peer_info, hello_tries) +
                                                        sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kBytesMin<srd_path_info> = offsetof(srd_path_info, rate_bytes_per_s) +
                                                        sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kBytesMin<srd_device_info> = offsetof(srd_device_info,
                                                                   rx_buffer_bytes) +
                                                          sizeof(std::uint32_t);

/// More than this is a struct that was never initialised.
inline constexpr std::size_t kStructBytesMax = 4096;

/// Copies a configuration as the caller's header laid it out. Fields that an older header lacks
/// keep their value in `out`; NULL changes nothing. 0, or -EINVAL: not initialised, or newer fields
/// set that are unknown here.
template <class Config>
int read_config(const char* function, const Config* in, Config& out) noexcept {
  static_assert(kBytesMin<Config> > 0);
  if (in == nullptr) return 0;
  if (in->struct_bytes < kBytesMin<Config>) {
    return fail(Errc::invalid_argument,
                "%s: struct_bytes of the configuration is %zu, at least %zu is needed; initialise "
                "it with its _INIT macro",
                function, in->struct_bytes, kBytesMin<Config>);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t i = sizeof(Config); i < in->struct_bytes; ++i) {
    if (in->struct_bytes <= kStructBytesMax && bytes[i] == 0) continue;
    return fail(Errc::invalid_argument,
                "%s: struct_bytes of the configuration is %zu, this version knows %zu and the rest "
                "is not zero; initialise it with its _INIT macro",
                function, in->struct_bytes, sizeof(Config));
  }
  if (in->struct_bytes >= sizeof(Config)) [[likely]] {
    std::memcpy(&out, in, sizeof(Config));
  } else {
    std::memcpy(&out, in, in->struct_bytes);
  }
  return 0;
}

/// 0, or -EINVAL: `bytes`, which the caller gives as the size of a struct to be filled, is none of
/// its sizes.
template <class Struct>
int check_size(const char* function, const char* name, std::size_t bytes) noexcept {
  static_assert(kBytesMin<Struct> > 0);
  if (bytes >= kBytesMin<Struct> && bytes <= kStructBytesMax) return 0;
  return fail(Errc::invalid_argument,
              "%s: %s is %zu, it must be %zu to %zu; set it to the sizeof of the struct", function,
              name, bytes, kBytesMin<Struct>, kStructBytesMax);
}

/// 0, or -EINVAL: `out` is NULL, or its struct_bytes is not set.
template <class Struct>
int check_struct(const char* function, const Struct* out) noexcept {
  if (const int status = check_pointer(function, "out", out); status != 0) return status;
  return check_size<Struct>(function, "out->struct_bytes", out->struct_bytes);
}

/// Writes `value` to a caller's struct of `bytes` bytes: what an older header lacks is left out,
/// what is unknown here becomes zero.
template <class Struct>
void copy_struct(void* out, const Struct& value, std::size_t bytes) noexcept {
  const std::size_t common = bytes < sizeof(Struct) ? bytes : sizeof(Struct);
  std::memcpy(out, &value, common);
  std::memset(static_cast<std::byte*>(out) + common, 0, bytes - common);
}

/// The same for a struct that starts with struct_bytes, which stays as the caller set it.
template <class Struct>
void fill_struct(Struct* out, Struct value) noexcept {
  value.struct_bytes = out->struct_bytes;
  copy_struct(out, value, value.struct_bytes);
}

/// The same for an array of structs of `entry_bytes` bytes each.
template <class Struct>
void fill_array(Struct* out, std::size_t entry_bytes, std::span<const Struct> values) noexcept {
  auto* at = reinterpret_cast<std::byte*>(out);
  for (const Struct& value : values) {
    copy_struct(at, value, entry_bytes);
    at += entry_bytes;
  }
}

}  // namespace srd::runtime
