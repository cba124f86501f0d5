// SPDX-License-Identifier: Apache-2.0
// Request and response streams; see the header.
#include "srd_perf/latency.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "srd_perf/bulk.hpp"

namespace perf {
namespace {

constexpr std::uint64_t kCopyBytesMax = 512;  // longer messages are not worth a copy
constexpr std::uint64_t kWaitingAnswersMax = 1U << 20;

double to_us(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

}  // namespace

LatencySummary summarize(const apps::Histogram& histogram, std::uint64_t unanswered) {
  LatencySummary out;
  out.count = histogram.count();
  out.unanswered = unanswered;
  out.min_us = to_us(histogram.min_ns());
  out.mean_us = histogram.mean_ns() / 1e3;
  out.max_us = to_us(histogram.max_ns());
  out.p50_us = to_us(histogram.percentile_ns(50));
  out.p90_us = to_us(histogram.percentile_ns(90));
  out.p99_us = to_us(histogram.percentile_ns(99));
  out.p999_us = to_us(histogram.percentile_ns(99.9));
  out.p9999_us = to_us(histogram.percentile_ns(99.99));
  return out;
}

NumberedSender::NumberedSender(const StreamContext& context, std::uint64_t message_bytes,
                               std::uint32_t slots)
    : context_(context),
      message_bytes_(message_bytes),
      key_(pattern_key(context.parameters.cookie, context.stream)),
      copies_(message_bytes <=
              std::min<std::uint64_t>(kCopyBytesMax, context.transport.limits().copy_bytes_max)),
      pool_(context.parameters.verify ? MessagePool::Content::verified
                                      : MessagePool::Content::numbered,
            message_bytes, copies_ ? 0 : slots, key_),
      scratch_(copies_ ? message_bytes : 0) {}

std::error_code NumberedSender::send(std::uint64_t number) {
  srd::Endpoint& endpoint = context_.transport.endpoint();
  SendToken token = context_.token;
  if (copies_) {
    write_number(number, scratch_);
    if (context_.parameters.verify) fill_pattern(key_, number, scratch_);
    token.slot = kCopySlot;
    return endpoint.send(context_.peer, scratch_,
                         {.user_data = token.encode(),
                          .channel = context_.channel,
                          .copy = true,
                          .unsignaled = true});
  }
  const std::uint32_t slot = pool_.take();
  if (slot == MessagePool::kNoSlot) return srd::Errc::would_block;
  token.slot = slot;
  const std::error_code error =
      endpoint.send(context_.peer, pool_.prepare(slot, number, message_bytes_).view(),
                    {.user_data = token.encode(), .channel = context_.channel});
  if (error) pool_.give_back(slot);
  return error;
}

void NumberedSender::handle_send_done(std::uint32_t slot) {
  if (slot != kCopySlot) pool_.give_back(slot);
}

Requester::Requester(const StreamContext& context, std::uint32_t messages_max)
    : Stream(context),
      sender_(context_, context.parameters.request_bytes, messages_max),
      key_(pattern_key(context.parameters.cookie, context.stream)),
      intended_ns_(kOutstandingMax) {}

std::uint64_t Requester::scheduled_ns(std::uint64_t number) const noexcept {
  const double offset_s =
      static_cast<double>(number) / static_cast<double>(context_.parameters.requests_per_s);
  return start_ns_ + static_cast<std::uint64_t>(offset_s * 1e9);
}

std::uint64_t Requester::limit() const noexcept {
  return is_open_loop() ? kOutstandingMax : context_.parameters.depth;
}

bool Requester::send_one(std::uint64_t intended_ns) {
  std::uint64_t& entry = intended_ns_[next_number_ % kOutstandingMax];
  if (outstanding_ >= limit() || entry != 0) return false;
  if (const std::error_code error = sender_.send(next_number_)) {
    if (error != srd::Errc::would_block) {
      fail(fmt::format("stream {}: cannot send a request: {}; {}", context_.shown_id,
                       error.message(), srd::last_error()));
    }
    return false;
  }
  entry = intended_ns;
  ++next_number_;
  ++outstanding_;
  return true;
}

bool Requester::pump(std::uint64_t now_ns) {
  bool queued = false;
  blocked_ = false;
  if (is_open_loop()) {
    if (start_ns_ == 0) start_ns_ = now_ns;
    while (next_number_ < stop_number_) {
      const std::uint64_t intended = scheduled_ns(next_number_);
      if (intended > now_ns) break;
      if (!send_one(intended)) {
        blocked_ = true;
        break;
      }
      queued = true;
    }
    return queued;
  }
  while (!stopped_ && outstanding_ < limit() && send_one(apps::monotonic_ns())) queued = true;
  return queued;
}

void Requester::handle_message(const srd::Message& message, std::uint64_t now_ns) {
  const Parameters& parameters = context_.parameters;
  if (message.bytes() != parameters.response_bytes) {
    fail(fmt::format("an answer has {} bytes instead of {}", message.bytes(),
                     parameters.response_bytes));
    return;
  }
  const std::uint64_t number = number_of(message);
  std::uint64_t& entry = intended_ns_[number % kOutstandingMax];
  if (number >= next_number_ || next_number_ - number > kOutstandingMax || entry == 0) {
    fail(fmt::format("verification failed: request {} was answered twice or never sent", number));
    return;
  }
  if (parameters.verify) {
    if (std::string wrong = check_content(message, key_); !wrong.empty()) {
      fail(fmt::format("verification failed: answer: {}", wrong));
      return;
    }
  }
  const std::uint64_t latency_ns = now_ns - std::min(now_ns, entry);
  entry = 0;
  --outstanding_;
  total_.record(latency_ns);
  interval_.record(latency_ns);
  meter_.count(parameters.request_bytes);
}

void Requester::handle_send_done(std::uint32_t slot, int status, std::uint64_t, std::uint64_t) {
  sender_.handle_send_done(slot);
  if (status < 0) {
    fail(fmt::format("stream {}: a request was not delivered: {}", context_.shown_id,
                     srd_error_string(status)));
  }
}

std::uint64_t Requester::next_due_ns() const {
  if (!is_open_loop() || next_number_ >= stop_number_) return kNeverNs;
  if (blocked_ || start_ns_ == 0) return kNeverNs;
  return scheduled_ns(next_number_);
}

void Requester::stop() {
  if (stopped_) return;
  stopped_ = true;
  if (!is_open_loop()) return;
  // Requests that were due before the end are still sent: dropping them would hide a stall at the
  // end.
  const double elapsed_s = apps::to_seconds(apps::monotonic_ns() - start_ns_);
  const double due = elapsed_s * static_cast<double>(context_.parameters.requests_per_s);
  stop_number_ = start_ns_ == 0 ? 0 : std::max(next_number_, static_cast<std::uint64_t>(due));
}

bool Requester::is_drained() const {
  const bool all_sent = !is_open_loop() || next_number_ >= stop_number_;
  return stopped_ && all_sent && outstanding_ == 0 && sender_.is_drained();
}

void Requester::reset() {
  total_.reset();
  interval_.reset();
}

LatencySummary Requester::take_interval() {
  const LatencySummary out = summarize(interval_, 0);
  interval_.reset();
  return out;
}

LatencySummary Requester::summary() const {
  return summarize(total_, outstanding_);
}

Responder::Responder(const StreamContext& context, std::uint32_t messages_max, Bins* bins)
    : Stream(context),
      sender_(context_, context.parameters.response_bytes, messages_max),
      key_(pattern_key(context.parameters.cookie, context.stream)),
      bins_(bins) {}

bool Responder::pump(std::uint64_t) {
  bool queued = false;
  while (!waiting_.empty()) {
    const std::error_code error = sender_.send(waiting_.front());
    if (error == srd::Errc::would_block) break;
    if (error) {
      fail(fmt::format("stream {}: cannot send an answer: {}; {}", context_.shown_id,
                       error.message(), srd::last_error()));
      break;
    }
    waiting_.pop_front();
    queued = true;
  }
  return queued;
}

void Responder::handle_message(const srd::Message& message, std::uint64_t now_ns) {
  if (message.bytes() != context_.parameters.request_bytes) {
    fail(fmt::format("a request has {} bytes instead of {}", message.bytes(),
                     context_.parameters.request_bytes));
    return;
  }
  meter_.count(message.bytes());
  if (bins_ != nullptr) bins_->count(now_ns, message.bytes());
  const std::uint64_t number = number_of(message);
  if (context_.parameters.verify) {
    if (std::string wrong = check_content(message, key_); !wrong.empty()) {
      fail(fmt::format("verification failed: request: {}", wrong));
      return;
    }
    if (seen_.insert(number) != SequenceSet::Insert::fresh) {
      fail(fmt::format("verification failed: request {} was delivered twice", number));
      return;
    }
  }
  if (waiting_.size() >= kWaitingAnswersMax) {
    fail("answers pile up: the client sends requests and takes no answers");
    return;
  }
  waiting_.push_back(number);
}

void Responder::handle_send_done(std::uint32_t slot, int status, std::uint64_t, std::uint64_t) {
  sender_.handle_send_done(slot);
  if (status < 0) {
    fail(fmt::format("stream {}: an answer was not delivered: {}", context_.shown_id,
                     srd_error_string(status)));
  }
}

}  // namespace perf
