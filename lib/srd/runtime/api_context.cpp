// SPDX-License-Identifier: Apache-2.0
// C ABI: contexts, devices, texts, version.
#include <algorithm>

#include "srd/runtime/arguments.hpp"
#include "srd/runtime/clock.hpp"
#include "srd/runtime/context.hpp"
#include "srd/srd.h"

using namespace srd;
using namespace srd::runtime;

namespace {

MonotonicClock monotonic_clock;

int open_context(const char* text, srd_context** out) {
  ProcessStamp stamp = 0;
  if (const Errc status = current_stamp(stamp); status != Errc::ok) {
    return fail(status,
                "srd_context_open: no page with MADV_WIPEONFORK (Linux 4.14 or later is needed)");
  }
  DeviceString device;
  if (const Errc status = parse_device_string(text, device); status != Errc::ok) {
    return -static_cast<int>(status);
  }
  auto opened = open_device(device);
  if (!opened) return -static_cast<int>(opened.errc());
  *out = new srd_context(std::move(*opened), device.text, monotonic_clock, stamp);
  return 0;
}

}  // namespace

extern "C" {

int srd_context_open(const char* device, const srd_context_config* config,
                     srd_context** out) noexcept {
  constexpr const char* kFunction = "srd_context_open";
  if (const int status = check_pointer(kFunction, "device", device); status != 0) return status;
  if (const int status = check_pointer(kFunction, "out", out); status != 0) return status;
  srd_context_config wanted = SRD_CONTEXT_CONFIG_INIT;
  if (const int status = read_config(kFunction, config, wanted); status != 0) return status;
  if (const int status = check_flags(kFunction, wanted.flags, 0); status != 0) return status;
  return without_exceptions(kFunction, [&] { return open_context(device, out); });
}

int srd_context_close(srd_context* context) noexcept {
  if (context == nullptr) return 0;
  if (const int status = check_object("srd_context_close", "context", context); status != 0) {
    return status;
  }
  if (context->pollers() != 0) {
    return fail(
        Errc::busy,
        "srd_context_close: %u of its pollers still live; call srd_poller_destroy() on each "
        "first",
        context->pollers());
  }
  delete context;
  return 0;
}

int srd_devices(srd_device_info* out, std::size_t capacity, std::size_t entry_bytes) noexcept {
  constexpr const char* kFunction = "srd_devices";
  if (const int status = check_array(kFunction, "out", out, capacity); status != 0) return status;
  if (const int status = check_size<srd_device_info>(kFunction, "entry_bytes", entry_bytes);
      status != 0) {
    return status;
  }
  return without_exceptions(kFunction, [&] {
    const auto devices = list_devices();
    fill_array(out, entry_bytes, std::span(devices).first(std::min(capacity, devices.size())));
    return static_cast<int>(devices.size());
  });
}

const char* srd_error_string(int status) noexcept {
  if (status >= 0) return to_string(Errc::ok);
  return to_string(static_cast<Errc>(0U - static_cast<unsigned>(status)));  // INT_MIN stays defined
}

std::uint32_t srd_version(void) noexcept {
  return SRD_VERSION_MAJOR << 16 | SRD_VERSION_MINOR << 8 | SRD_VERSION_PATCH;
}

}  // extern "C"
