// SPDX-License-Identifier: Apache-2.0
// Throughput streams; see the header.
#include "srd_perf/bulk.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace perf {
namespace {

constexpr double kBitsPerByte = 8;

std::uint32_t window_messages(const Parameters& parameters, std::uint32_t messages_max) {
  const std::uint64_t wanted = parameters.window_bytes / parameters.message_bytes;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(wanted, 2, std::max<std::uint32_t>(2, messages_max)));
}

std::uint64_t pacing_gap_ns(std::uint64_t bytes, std::uint64_t rate_bits_per_s) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * kBitsPerByte * 1e9 /
                                    static_cast<double>(rate_bits_per_s));
}

}  // namespace

std::uint64_t number_of(const srd::Message& message) noexcept {
  if (message.segment_count() <= 1) return read_number(message.data());
  std::array<std::byte, kNumberBytes> head{};
  message.copy_to(head);
  return read_number(head);
}

std::string check_content(const srd::Message& message, std::uint64_t key) {
  const std::uint64_t number = number_of(message);
  PatternCheck check(key, number);
  std::vector<srd_iov> room(std::max<std::size_t>(1, message.segment_count()));
  room[0] = {message.data().data(), message.data().size()};
  const std::span<const srd_iov> pieces =
      message.segment_count() <= 1 ? std::span(room) : message.segments(room);
  std::uint64_t bytes = 0;
  for (const srd_iov& piece : pieces) {
    if (!check.accept({static_cast<const std::byte*>(piece.data), piece.bytes})) {
      return fmt::format("message {} is corrupt: first wrong byte near offset {} of {}", number,
                         check.wrong_at(), message.bytes());
    }
    bytes += piece.bytes;
  }
  if (bytes != message.bytes()) {
    return fmt::format("message {} has {} bytes in its pieces instead of {}", number, bytes,
                       message.bytes());
  }
  return {};
}

BulkSender::BulkSender(const StreamContext& context, std::uint32_t messages_max)
    : Stream(context),
      pool_(
          context.parameters.verify ? MessagePool::Content::verified : MessagePool::Content::block,
          context.parameters.message_bytes, window_messages(context.parameters, messages_max),
          pattern_key(context.parameters.cookie, context.stream)) {}

BulkSender::Step BulkSender::send_one(std::uint64_t now_ns) {
  const Parameters& parameters = context_.parameters;
  if (parameters.rate_bits_per_s != 0) {
    if (next_due_ns_ == 0) next_due_ns_ = now_ns;
    if (next_due_ns_ > now_ns) return Step::blocked;
  }
  const std::uint32_t slot = pool_.take();
  if (slot == MessagePool::kNoSlot) {
    window_full_ = true;
    return Step::blocked;
  }
  const std::uint64_t taken = context_.budget.take(parameters.message_bytes);
  if (taken == 0) {
    pool_.give_back(slot);
    stopped_ = true;
    return Step::blocked;
  }
  // The last message of -n may be shorter, but a verified one needs room for its number.
  const std::uint64_t bytes = parameters.verify ? std::max(taken, kNumberBytes) : taken;
  const MessagePool::Pieces pieces = pool_.prepare(slot, next_number_, bytes);
  SendToken token = context_.token;
  token.slot = slot;
  const std::error_code error = context_.transport.endpoint().send(
      context_.peer, pieces.view(), {.user_data = token.encode(), .channel = context_.channel});
  if (error) {
    pool_.give_back(slot);
    context_.budget.give_back(taken);
    window_full_ = true;
    if (error != srd::Errc::would_block) {
      fail(fmt::format("stream {}: cannot send: {}; {}", context_.shown_id, error.message(),
                       srd::last_error()));
    }
    return Step::blocked;
  }
  ++next_number_;
  if (parameters.rate_bits_per_s != 0) {
    next_due_ns_ += pacing_gap_ns(bytes, parameters.rate_bits_per_s);
  }
  return Step::sent;
}

bool BulkSender::pump(std::uint64_t now_ns) {
  // Not all of the window at a time, so that streams take turns and arrivals are served in between;
  // enough for several datagrams where messages are small and share them.
  constexpr std::uint64_t kBytesPerTurn = 512U << 10;
  const std::uint64_t messages =
      std::clamp<std::uint64_t>(kBytesPerTurn / context_.parameters.message_bytes, 32, 1024);
  bool queued = false;
  window_full_ = false;
  for (std::uint64_t i = 0; i < messages && !stopped_; ++i) {
    if (send_one(now_ns) != Step::sent) break;
    queued = true;
  }
  return queued;
}

void BulkSender::handle_message(const srd::Message& message, std::uint64_t) {
  fail(fmt::format("stream {}: a message of {} bytes came from the receiver of the stream",
                   context_.shown_id, message.bytes()));
}

void BulkSender::handle_send_done(std::uint32_t slot, int status, std::uint64_t bytes,
                                  std::uint64_t) {
  pool_.give_back(slot);
  if (status < 0) {
    fail(fmt::format("stream {}: a message was not delivered: {}", context_.shown_id,
                     srd_error_string(status)));
    return;
  }
  meter_.count(bytes);
}

std::uint64_t BulkSender::next_due_ns() const {
  if (stopped_ || window_full_) return kNeverNs;
  return next_due_ns_;
}

BulkReceiver::BulkReceiver(const StreamContext& context, Bins* bins)
    : Stream(context), bins_(bins), key_(pattern_key(context.parameters.cookie, context.stream)) {}

bool BulkReceiver::pump(std::uint64_t) {
  return false;
}

void BulkReceiver::handle_message(const srd::Message& message, std::uint64_t now_ns) {
  meter_.count(message.bytes());
  if (bins_ != nullptr) bins_->count(now_ns, message.bytes());
  if (!context_.parameters.verify) return;
  if (message.bytes() < kNumberBytes) {
    fail(fmt::format("stream {}: a message of {} bytes has no number", context_.shown_id,
                     message.bytes()));
    return;
  }
  if (std::string wrong = check_content(message, key_); !wrong.empty()) {
    fail(fmt::format("verification failed: stream {}: {}", context_.shown_id, wrong));
    return;
  }
  const std::uint64_t number = number_of(message);
  switch (seen_.insert(number)) {
    case SequenceSet::Insert::fresh:
      break;
    case SequenceSet::Insert::duplicate:
      fail(fmt::format("verification failed: stream {}: message {} was delivered twice",
                       context_.shown_id, number));
      break;
    case SequenceSet::Insert::implausible:
      fail(fmt::format("verification failed: stream {}: message {} is missing or {} is forged",
                       context_.shown_id, seen_.complete_below(), number));
      break;
  }
}

void BulkReceiver::handle_send_done(std::uint32_t, int, std::uint64_t, std::uint64_t) {}

}  // namespace perf
