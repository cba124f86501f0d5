// SPDX-License-Identifier: Apache-2.0
// C ABI: pollers.
#include <climits>

#include "srd/runtime/arguments.hpp"
#include "srd/runtime/poller.hpp"
#include "srd/srd.h"

using namespace srd;
using namespace srd::runtime;

namespace {

constexpr const char* kCreate = "srd_poller_create";

int create_poller(srd_context& context, const srd_poller_config& wanted, srd_poller** out) {
  Poller::Descriptors descriptors;
  if (context.capabilities().can_sleep) {
    auto made = Poller::open_descriptors();
    if (!made) {
      return fail(made.errc(),
                  made.errc() == Errc::too_many_files
                      ? "%s: a poller needs 3 descriptors and the limit is reached; close some or "
                        "raise ulimit -n"
                      : "%s: the kernel has no memory for a poller's epoll descriptor, or its user "
                        "watches too many; compare sysctl fs.epoll.max_user_watches",
                  kCreate);
    }
    descriptors = std::move(*made);
  }
  const Poller::Config config{(wanted.flags & SRD_POLLER_SHARED) != 0,
                              wanted.spin_us * std::uint64_t{1000}};
  *out = new srd_poller(context, config, std::move(descriptors), context.stamp());
  return 0;
}

int no_sleep(const char* function, const Poller& poller) noexcept {
  return fail(Errc::not_supported,
              "%s: device \"%s\" cannot sleep; call srd_poller_poll() in a loop", function,
              poller.context().text().c_str());
}

// The count of completions is an int.
std::span<srd_completion> window(srd_completion* out, std::size_t capacity) noexcept {
  return {out, capacity < INT_MAX ? capacity : INT_MAX};
}

}  // namespace

extern "C" {

int srd_poller_create(srd_context* context, const srd_poller_config* config,
                      srd_poller** out) noexcept {
  if (const int status = check_object(kCreate, "context", context); status != 0) return status;
  if (const int status = check_pointer(kCreate, "out", out); status != 0) return status;
  srd_poller_config wanted = SRD_POLLER_CONFIG_INIT;
  if (const int status = read_config(kCreate, config, wanted); status != 0) return status;
  if (const int status = check_flags(kCreate, wanted.flags, SRD_POLLER_SHARED); status != 0) {
    return status;
  }
  if (const int status = check_reserved(kCreate, wanted.reserved); status != 0) return status;
  return without_exceptions(kCreate, [&] { return create_poller(*context, wanted, out); });
}

int srd_poller_destroy(srd_poller* poller) noexcept {
  if (poller == nullptr) return 0;
  if (const int status = check_object("srd_poller_destroy", "poller", poller); status != 0) {
    return status;
  }
  if (const std::size_t count = poller->endpoints(); count != 0) {
    return fail(
        Errc::busy,
        "srd_poller_destroy: %zu of its endpoints still live; call srd_endpoint_destroy() on "
        "each first",
        count);
  }
  delete poller;
  return 0;
}

int srd_poller_poll(srd_poller* poller, srd_completion* out, std::size_t capacity) noexcept {
  constexpr const char* kFunction = "srd_poller_poll";
  if (const int status = check_object(kFunction, "poller", poller); status != 0) return status;
  if (const int status = check_array(kFunction, "out", out, capacity); status != 0) return status;
  return poller->poll(window(out, capacity));
}

int srd_poller_flush(srd_poller* poller) noexcept {
  if (const int status = check_object("srd_poller_flush", "poller", poller); status != 0) {
    return status;
  }
  poller->flush();
  return 0;
}

int srd_poller_wait(srd_poller* poller, srd_completion* out, std::size_t capacity,
                    std::uint64_t timeout_ns) noexcept {
  constexpr const char* kFunction = "srd_poller_wait";
  if (const int status = check_object(kFunction, "poller", poller); status != 0) return status;
  if (const int status = check_pointer(kFunction, "out", out); status != 0) return status;
  if (capacity == 0) {
    return fail(Errc::invalid_argument,
                "%s: capacity is 0, so no completion could ever end the wait; pass at least 1",
                kFunction);
  }
  if (!poller->can_sleep()) return no_sleep(kFunction, *poller);
  return poller->wait(window(out, capacity), timeout_ns);
}

int srd_poller_arm(srd_poller* poller) noexcept {
  constexpr const char* kFunction = "srd_poller_arm";
  if (const int status = check_object(kFunction, "poller", poller); status != 0) return status;
  if (!poller->can_sleep()) return no_sleep(kFunction, *poller);
  return poller->arm();
}

int srd_poller_fd(const srd_poller* poller) noexcept {
  constexpr const char* kFunction = "srd_poller_fd";
  if (const int status = check_object(kFunction, "poller", poller); status != 0) return status;
  if (!poller->can_sleep()) return no_sleep(kFunction, *poller);
  return poller->fd();
}

int srd_poller_wake(srd_poller* poller) noexcept {
  constexpr const char* kFunction = "srd_poller_wake";
  if (const int status = check_object(kFunction, "poller", poller); status != 0) return status;
  if (!poller->can_sleep()) return no_sleep(kFunction, *poller);
  poller->wake();
  return 0;
}

}  // extern "C"
