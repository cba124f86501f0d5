// SPDX-License-Identifier: Apache-2.0
// C ABI: sending messages, and received ones on loan.
#include <algorithm>
#include <array>

#include "srd/runtime/arguments.hpp"
#include "srd/runtime/poller.hpp"
#include "srd/srd.h"

using namespace srd;
using namespace srd::runtime;

namespace {

constexpr const char* kSend = "srd_send";
constexpr std::uint32_t kSendFlags = SRD_SEND_COPY | SRD_SEND_UNSIGNALED | SRD_SEND_ONE_PATH;
static_assert(sizeof(srd_completion) == 64);

// Pieces as the core wants them. The total is checked before, so each fits its type.
struct Pieces {
  std::array<Segment, core::kIovMax> segments;
  std::size_t count = 0;
};

// What bounds the length of a message, and how to get round it.
struct LengthLimit {
  std::uint64_t bytes;
  const char* name;
  const char* remedy;
};

LengthLimit length_limit(const core::Limits& limits, bool copy) noexcept {
  if (copy && limits.copy_bytes_max < limits.max_message_bytes) {
    return {limits.copy_bytes_max, "copy_bytes_max", "send it without SRD_SEND_COPY"};
  }
  return {limits.max_message_bytes, "max_message_bytes", "raise the limit at both endpoints"};
}

int gather(const srd_iov* iov, std::size_t iov_count, const LengthLimit& limit,
           Pieces& out) noexcept {
  if (const int status = check_array(kSend, "iov", iov, iov_count); status != 0) return status;
  if (iov_count > core::kIovMax) {
    return fail(Errc::invalid_argument, "%s: iov_count %zu is over iov_max %zu; join some pieces",
                kSend, iov_count, core::kIovMax);
  }
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < iov_count; ++i) {
    if (iov[i].bytes == 0) continue;
    if (iov[i].data == nullptr) {
      return fail(Errc::invalid_argument, "%s: iov[%zu].data is NULL but its bytes are %zu", kSend,
                  i, iov[i].bytes);
    }
    total += std::min<std::uint64_t>(iov[i].bytes, limit.bytes + 1);  // cannot wrap
    if (total > limit.bytes) {
      return fail(Errc::message_too_long,
                  "%s: with iov[%zu].bytes %zu the message is longer than %s %llu; split it, or %s",
                  kSend, i, iov[i].bytes, limit.name, static_cast<unsigned long long>(limit.bytes),
                  limit.remedy);
    }
    out.segments[out.count++] = {static_cast<const std::byte*>(iov[i].data),
                                 static_cast<std::uint32_t>(iov[i].bytes), kNoRegion};
  }
  return 0;
}

int explain(const srd_endpoint& endpoint, srd_peer peer, Errc status) noexcept {
  switch (status) {
    case Errc::ok:
      return 0;
    case Errc::would_block:
      return fail_with(status, endpoint.full_text());
    case Errc::not_found:
      return fail(status,
                  "%s: peer %u is not a handle of this endpoint (any more); get one from "
                  "srd_peer_resolve() or from a completion",
                  kSend, peer);
    case Errc::message_too_long:
      return fail(status,
                  "%s: the message is longer than peer %u accepts; split it, or raise "
                  "max_message_bytes there",
                  kSend, peer);
    default:
      return fail(status, "%s: %s", kSend, to_string(status));
  }
}

int not_on_loan(const char* function, srd_buffer buffer) noexcept {
  return fail(
      Errc::invalid_argument,
      "%s: buffer 0x%llx is not on loan from this endpoint; a message is released once, and "
      "not used afterwards",
      function, static_cast<unsigned long long>(buffer));
}

bool is_on_loan(const srd_endpoint& endpoint, srd_buffer buffer) noexcept {
  return buffer != 0 && endpoint.core().copy_out(core::MessageId{buffer}, 0, {}).has_value();
}

}  // namespace

extern "C" {

int srd_send(srd_endpoint* endpoint, srd_peer peer, const srd_iov* iov, std::size_t iov_count,
             const srd_send_options* options) noexcept {
  if (const int status = check_object(kSend, "endpoint", endpoint); status != 0) return status;
  srd_send_options wanted = SRD_SEND_OPTIONS_INIT;
  if (const int status = read_config(kSend, options, wanted); status != 0) return status;
  if (const int status = check_flags(kSend, wanted.flags, kSendFlags); status != 0) return status;
  if (const int status = check_reserved(kSend, wanted.reserved); status != 0) return status;
  const bool copy = (wanted.flags & SRD_SEND_COPY) != 0;
  const LengthLimit limit = length_limit(endpoint->config().limits, copy);
  Pieces pieces;
  if (const int status = gather(iov, iov_count, limit, pieces); status != 0) return status;
  core::SendRequest request;
  request.peer = core::PeerId{peer};
  request.payload = std::span<const Segment>(pieces.segments).first(pieces.count);
  request.user_data = wanted.user_data;
  request.channel = wanted.channel;
  request.copy = copy;
  request.unsignaled = (wanted.flags & SRD_SEND_UNSIGNALED) != 0;
  request.one_path = (wanted.flags & SRD_SEND_ONE_PATH) != 0;
  Poller& poller = endpoint->poller();
  const Poller::Hold hold(poller);
  const Errc status = endpoint->core().send(poller.clock().now(), request);
  if (status == Errc::ok) poller.flush_for_sleepers();
  return explain(*endpoint, peer, status);
}

int srd_buffer_segments(const srd_endpoint* endpoint, srd_buffer buffer, srd_iov* out,
                        std::size_t capacity) noexcept {
  constexpr const char* kFunction = "srd_buffer_segments";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_array(kFunction, "out", out, capacity); status != 0) return status;
  const Poller::Hold hold(endpoint->poller());
  if (!is_on_loan(*endpoint, buffer)) return not_on_loan(kFunction, buffer);
  return static_cast<int>(endpoint->core().segments(core::MessageId{buffer}, {out, capacity}));
}

std::int64_t srd_buffer_copy(const srd_endpoint* endpoint, srd_buffer buffer, std::size_t offset,
                             void* out, std::size_t bytes) noexcept {
  constexpr const char* kFunction = "srd_buffer_copy";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  if (const int status = check_array(kFunction, "out", out, bytes); status != 0) return status;
  const Poller::Hold hold(endpoint->poller());
  if (!is_on_loan(*endpoint, buffer)) return not_on_loan(kFunction, buffer);
  const auto copied = endpoint->core().copy_out(core::MessageId{buffer}, offset,
                                                {static_cast<std::byte*>(out), bytes});
  return copied ? static_cast<std::int64_t>(*copied) : 0;  // `offset` lies behind its end
}

int srd_buffer_release(srd_endpoint* endpoint, srd_buffer buffer) noexcept {
  constexpr const char* kFunction = "srd_buffer_release";
  if (const int status = check_object(kFunction, "endpoint", endpoint); status != 0) return status;
  const Poller::Hold hold(endpoint->poller());
  const Errc status =
      endpoint->core().release(endpoint->poller().clock().now(), core::MessageId{buffer});
  return status == Errc::ok ? 0 : not_on_loan(kFunction, buffer);
}

}  // extern "C"
