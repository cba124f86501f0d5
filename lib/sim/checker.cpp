// SPDX-License-Identifier: Apache-2.0
#include "sim/checker.hpp"

#include <algorithm>
#include <cstring>

#include "base/prng.hpp"

namespace srd::sim {
namespace {

constexpr std::size_t kFailuresKept = 20;

// The 8 bytes at `word * 8` of a message.
std::uint64_t content_word(std::uint64_t seed, MessageNumber number, std::uint64_t word) noexcept {
  if (word == 0) return number;
  std::uint64_t z = (seed ^ (number * 0x9e3779b97f4a7c15U)) + word * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 31)) * 0x94d049bb133111ebU;
  return z ^ (z >> 29);
}

std::byte tiny_byte(std::uint16_t channel, std::uint64_t bytes, std::uint64_t offset) noexcept {
  return static_cast<std::byte>(std::uint64_t{channel} * 31 + bytes * 7 + offset * 13 + 1);
}

}  // namespace

MessageNumber Checker::add(HostId from, const SendSpec& spec) {
  MessageRecord record;
  record.spec = spec;
  record.from = from;
  messages_.push_back(std::move(record));
  ++outstanding_;
  return messages_.size() - 1;
}

void Checker::fill(MessageNumber number, std::uint64_t offset,
                   std::span<std::byte> out) const noexcept {
  const MessageRecord& message = messages_[number];
  if (message.spec.bytes < kNamedBytes) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = tiny_byte(message.spec.channel, message.spec.bytes, offset + i);
    }
    return;
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t at = offset + done;
    const std::uint64_t word = content_word(seed_, number, at / 8);
    const std::size_t skip = at % 8;
    const std::size_t count = std::min<std::size_t>(8 - skip, out.size() - done);
    std::memcpy(out.data() + done, reinterpret_cast<const char*>(&word) + skip, count);
    done += count;
  }
}

bool Checker::content_matches(MessageNumber number,
                              std::span<const std::span<const std::byte>> pieces) const {
  std::array<std::byte, 4096> expected;
  std::uint64_t offset = 0;
  for (std::span<const std::byte> piece : pieces) {
    while (!piece.empty()) {
      const std::size_t count = std::min(piece.size(), expected.size());
      fill(number, offset, std::span(expected).first(count));
      if (std::memcmp(expected.data(), piece.data(), count) != 0) return false;
      offset += count;
      piece = piece.subspan(count);
    }
  }
  return true;
}

std::string Checker::describe(MessageNumber number) const {
  const MessageRecord& m = messages_[number];
  return "message " + std::to_string(number) + " (host " + std::to_string(index_of(m.from)) +
         " to " + std::to_string(index_of(m.spec.to)) + ", " + std::to_string(m.spec.bytes) +
         " B, channel " + std::to_string(m.spec.channel) + (m.spec.copy ? ", copy" : "") +
         (m.spec.unsignaled ? ", unsignaled" : "") + ", sent at " +
         (m.sent_at == kNeverNs ? std::string("never") : std::to_string(m.sent_at / kUs) + " us") +
         ")";
}

void Checker::fail(TimeNs now, const std::string& text) {
  ++failure_count_;
  if (failures_.size() < kFailuresKept) {
    failures_.push_back("at " + std::to_string(now / kUs) + " us: " + text);
  }
}

void Checker::handle_sent(MessageNumber number, TimeNs now) {
  MessageRecord& message = messages_[number];
  message.sent_at = now;
  if (message.spec.bytes < kNamedBytes) {
    ++tiny_[{index_of(message.spec.to), message.spec.channel, message.spec.bytes}].sent;
  }
  // No event tells that an unsignaled message is done; it is judged at the end.
  if (message.spec.unsignaled) --outstanding_;
}

void Checker::settle(MessageRecord& message) {
  if (!message.spec.unsignaled) --outstanding_;
  if (!message.payload_pinned) {
    std::fill(message.payload.begin(), message.payload.end(), std::byte{0xee});
    message.payload = {};
  }
}

void Checker::handle_completion(HostId host, MessageNumber number, Errc status, std::uint64_t bytes,
                                TimeNs now) {
  if (number >= messages_.size()) {
    return fail(now, "completion with unknown user_data " + std::to_string(number));
  }
  MessageRecord& message = messages_[number];
  if (message.from != host || message.sent_at == kNeverNs) {
    return fail(now, "completion at a host that did not send it: " + describe(number));
  }
  if (message.completed_at != kNeverNs) {
    return fail(now, "completed twice: " + describe(number));
  }
  message.completed_at = now;
  message.status = status;
  settle(message);
  if (status == Errc::ok) {
    ++succeeded_;
    if (message.spec.unsignaled) fail(now, "success event of an unsignaled " + describe(number));
    if (bytes != message.spec.bytes) {
      fail(now, "completion says " + std::to_string(bytes) + " B: " + describe(number));
    }
    if (message.spec.bytes < kNamedBytes) {
      ++tiny_[{index_of(message.spec.to), message.spec.channel, message.spec.bytes}].succeeded;
    }
    return;
  }
  ++failed_;
  if (!is_excused(message, status, now)) {
    fail(now, std::string("failed with \"") + to_string(status) +
                  "\" though no fault explains it: " + describe(number));
  }
}

bool Checker::is_excused(const MessageRecord& message, Errc status, TimeNs now) const {
  return std::any_of(excuses_.begin(), excuses_.end(), [&](const Excuse& excuse) {
    return excuse.status == status &&
           (excuse.host == kNoHost || excuse.host == message.spec.to ||
            (excuse.either_end && excuse.host == message.from)) &&
           now >= excuse.since && now <= excuse.until;
  });
}

void Checker::deliver_tiny(HostId host, std::uint16_t channel, std::uint64_t bytes,
                           std::span<const std::span<const std::byte>> pieces, TimeNs now) {
  const std::string what = "message of " + std::to_string(bytes) + " B on channel " +
                           std::to_string(channel) + " to host " + std::to_string(index_of(host));
  const auto found = tiny_.find({index_of(host), channel, bytes});
  if (found == tiny_.end()) return fail(now, "delivered but never sent: " + what);
  if (++found->second.delivered > found->second.sent) fail(now, "delivered twice: " + what);
  std::uint64_t offset = 0;
  for (const auto piece : pieces) {
    for (const std::byte value : piece) {
      if (value != tiny_byte(channel, bytes, offset++)) return fail(now, "wrong content: " + what);
    }
  }
}

HostId Checker::handle_delivery(HostId host, std::uint16_t channel, std::uint64_t bytes,
                                std::span<const std::span<const std::byte>> pieces, TimeNs now) {
  ++delivered_;
  bytes_at_[index_of(host)] += bytes;
  std::uint64_t sum = 0;
  for (const auto piece : pieces) sum += piece.size();
  if (sum != bytes) {
    fail(now, "pieces hold " + std::to_string(sum) + " B of a message of " + std::to_string(bytes) +
                  " B");
    return kNoHost;
  }
  if (bytes < kNamedBytes) {
    deliver_tiny(host, channel, bytes, pieces, now);
    return kNoHost;
  }

  MessageNumber number = 0;
  std::size_t have = 0;
  for (const auto piece : pieces) {
    const std::size_t count = std::min(piece.size(), sizeof number - have);
    std::memcpy(reinterpret_cast<char*>(&number) + have, piece.data(), count);
    have += count;
    if (have == sizeof number) break;
  }
  if (number >= messages_.size()) {
    fail(now, "delivered a message with a wrong number in it (" + std::to_string(bytes) +
                  " B, host " + std::to_string(index_of(host)) + ")");
    return kNoHost;
  }
  MessageRecord& message = messages_[number];
  if (message.sent_at == kNeverNs) fail(now, "delivered before it was sent: " + describe(number));
  if (message.spec.to != host) fail(now, "delivered to a wrong host: " + describe(number));
  if (message.spec.channel != channel) fail(now, "wrong channel: " + describe(number));
  if (message.spec.bytes != bytes) {
    fail(now, "delivered with " + std::to_string(bytes) + " B: " + describe(number));
  } else if (!content_matches(number, pieces)) {
    fail(now, "wrong content: " + describe(number));
  }
  if (++message.deliveries > 1) {
    fail(now, "delivered twice (first at " + std::to_string(message.delivered_at / kUs) +
                  " us): " + describe(number));
  } else {
    message.delivered_at = now;
  }
  return message.from;
}

void Checker::handle_endpoint_loss(HostId host, TimeNs now) {
  endpoint_losses_[index_of(host)].push_back(now);
  for (auto& [key, count] : tiny_) {
    if (key.host == index_of(host)) count.excused = true;
  }
  for (MessageRecord& message : messages_) {
    if (message.from != host || message.completed_at != kNeverNs || message.sender_died) continue;
    if (message.spec.unsignaled && message.sent_at != kNeverNs) {
      message.sender_died = true;
      continue;
    }
    message.sender_died = true;
    if (message.sent_at == kNeverNs && message.spec.unsignaled) --outstanding_;
    settle(message);
  }
}

void Checker::finish(TimeNs now) {
  for (MessageNumber number = 0; number < messages_.size(); ++number) {
    const MessageRecord& message = messages_[number];
    if (message.sender_died) continue;
    if (message.sent_at == kNeverNs) {
      fail(now, "never accepted by the core: " + describe(number));
      continue;
    }
    const bool success =
        message.completed_at != kNeverNs ? message.status == Errc::ok : message.spec.unsignaled;
    if (!success && message.completed_at == kNeverNs) {
      fail(now, "never completed (" + std::to_string(message.deliveries) +
                    " deliveries): " + describe(number));
    }
    if (!success || message.deliveries > 0 || message.spec.bytes < kNamedBytes) continue;
    const auto losses = endpoint_losses_.find(index_of(message.spec.to));
    const bool lost_with_endpoint = losses != endpoint_losses_.end() &&
                                    std::any_of(losses->second.begin(), losses->second.end(),
                                                [&](TimeNs at) { return at >= message.sent_at; });
    if (!lost_with_endpoint) fail(now, "success but not delivered: " + describe(number));
  }
  for (const auto& [key, count] : tiny_) {
    if (count.excused || count.delivered >= count.succeeded) continue;
    fail(now, std::to_string(count.succeeded) + " successes but " +
                  std::to_string(count.delivered) + " deliveries of " + std::to_string(key.bytes) +
                  " B to host " + std::to_string(key.host));
  }
}

std::uint64_t Checker::delivered_bytes_at(HostId host) const noexcept {
  const auto found = bytes_at_.find(index_of(host));
  return found == bytes_at_.end() ? 0 : found->second;
}

}  // namespace srd::sim
