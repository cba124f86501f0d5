// SPDX-License-Identifier: Apache-2.0
// Delivery of control messages; see the header.
#include "srd_perf/control_channel.hpp"

#include <utility>

namespace perf {

ControlChannel::ControlChannel(apps::Transport& transport, srd_peer peer, SendToken token)
    : transport_(transport), peer_(peer), token_(token) {
  token_.control = true;
}

void ControlChannel::send(const ControlMessage& message) {
  waiting_.push_back(encode_control(message));
  pump();
}

void ControlChannel::pump() {
  while (!waiting_.empty() && !failure_) {
    const std::uint32_t slot = next_slot_ & 0xffffff;
    std::string& text = in_flight_[slot];
    text = std::move(waiting_.front());
    SendToken token = token_;
    token.slot = slot;
    const std::error_code error = transport_.endpoint().send(
        peer_, srd::as_bytes(text), {.user_data = token.encode(), .channel = kControlChannel});
    if (error) {
      waiting_.front() = std::move(text);
      in_flight_.erase(slot);
      if (error != srd::Errc::would_block) failure_ = error;
      return;
    }
    waiting_.pop_front();
    ++next_slot_;
  }
}

void ControlChannel::handle_send_done(std::uint32_t slot, int status) {
  in_flight_.erase(slot);
  if (status < 0 && !failure_) failure_ = srd::to_error(status);
  pump();
}

void ControlChannel::keep_alive(std::uint64_t now_ns, std::uint8_t tag) {
  if (now_ns < next_alive_ns_) return;
  next_alive_ns_ = now_ns + kAlivePeriodNs;
  if (!is_drained()) return;
  ControlMessage message;
  message.type = ControlType::alive;
  message.tag = tag;
  send(message);
}

}  // namespace perf
