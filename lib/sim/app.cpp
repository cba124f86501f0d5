// SPDX-License-Identifier: Apache-2.0
#include "sim/app.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sim/host.hpp"
#include "sim/world.hpp"

namespace srd::sim {

MessageNumber App::send(const SendSpec& spec) {
  const MessageNumber number = world_.checker().add(host_.id(), spec);
  queue_.push_back(number);
  host_.wake(world_.now());
  return number;
}

TimeNs App::next_at() const noexcept {
  if (!config.releases || loans_.empty()) return kNeverNs;
  return loans_.front().release_at;
}

bool App::turn() {
  bool worked = config.reads && harvest();
  worked |= config.releases && release_due();
  worked |= pump();
  return worked;
}

void App::handle_endpoint_loss() {
  queue_.clear();
  loans_.clear();
  peers_.clear();
  reply_peers_.clear();
  blocked_ = false;
}

core::PeerId App::peer(HostId to) {
  const auto found = peers_.find(index_of(to));
  if (found != peers_.end()) return found->second;
  const auto added = host_.core().add_peer(host_.local_now(), world_.host(to).public_address());
  if (!added) return core::kNoPeer;
  peers_[index_of(to)] = *added;
  return *added;
}

core::PeerId App::reply_peer(HostId to) const {
  const auto found = reply_peers_.find(index_of(to));
  return found == reply_peers_.end() ? core::kNoPeer : found->second;
}

bool App::harvest() {
  std::array<core::Event, 64> events;
  bool any = false;
  for (std::size_t n = host_.core().poll_events(events); n > 0;
       n = host_.core().poll_events(events)) {
    any = true;
    for (const core::Event& event : std::span(events).first(n)) {
      host_.charge(host_.cpu().event_ns);
      world_.note_event(host_.id(), event);
      if (config.keeps_events) events_.push_back({world_.now(), event});
      if (event.kind == core::Event::Kind::send_done) {
        blocked_ = false;
        world_.checker().handle_completion(host_.id(), event.user_data, event.status, event.bytes,
                                           world_.now());
      } else if (event.kind == core::Event::Kind::message) {
        receive(event);
      }
      if (on_event) on_event(event);
    }
  }
  return any;
}

void App::receive(const core::Event& event) {
  core::Core& core = host_.core();
  std::vector<std::span<const std::byte>> pieces;
  if (world_.prng().chance(config.copy_out)) {
    copied_.assign(event.bytes, std::byte{0});
    const std::size_t cut = world_.prng().below(event.bytes + 1);
    const auto first = core.copy_out(event.message, 0, std::span(copied_).first(cut));
    const auto second = core.copy_out(event.message, cut, std::span(copied_).subspan(cut));
    if (!first || !second || *first != cut || *second != event.bytes - cut) {
      world_.fail("copy_out() does not give all bytes of a message, host " + host_.name());
    }
    pieces.emplace_back(copied_);
  } else {
    segments_.resize(event.segment_count);
    const std::size_t n = core.segments(event.message, segments_);
    if (n != event.segment_count && event.bytes > 0) {
      world_.fail("segments() gives " + std::to_string(n) + " pieces, the event said " +
                  std::to_string(event.segment_count));
    }
    for (const srd_iov& piece : std::span(segments_).first(std::min(n, segments_.size()))) {
      pieces.emplace_back(static_cast<const std::byte*>(piece.data), piece.bytes);
    }
    if (n > 0 && event.bytes > 0 && event.data != segments_[0].data) {
      world_.fail("event.data is not the first piece, host " + host_.name());
    }
  }
  const HostId from = world_.checker().handle_delivery(host_.id(), event.channel, event.bytes,
                                                       pieces, world_.now());
  if (from != kNoHost) reply_peers_[index_of(from)] = event.peer;
  loans_.push_back({event.message, world_.now() + config.hold_ns});
}

bool App::release_due() {
  bool any = false;
  while (!loans_.empty() && loans_.front().release_at <= world_.now()) {
    if (host_.core().release(host_.local_now(), loans_.front().message) != Errc::ok) {
      world_.fail("release() refused a message on loan, host " + host_.name());
    }
    loans_.pop_front();
    any = true;
  }
  return any;
}

// After would_block only a completion makes another try worth while; unsignaled messages give none,
// so a blocked application also tries again whenever it has a turn for another reason.
bool App::pump() {
  bool any = false;
  while (!queue_.empty()) {
    const Errc status = submit(queue_.front());
    if (status == Errc::would_block) {
      blocked_ = true;
      break;
    }
    if (status != Errc::ok) {
      world_.fail(std::string("send() refused a message: ") + to_string(status));
    }
    queue_.pop_front();
    any = true;
  }
  return any;
}

Errc App::submit(MessageNumber number) {
  Checker& checker = world_.checker();
  MessageRecord& record = checker.message(number);
  const SendSpec& spec = record.spec;
  if (record.payload.size() != spec.bytes) {
    record.payload.resize(spec.bytes);
    checker.fill(number, 0, record.payload);
  }
  std::array<Segment, core::kIovMax> pieces;
  const std::size_t count = std::clamp<std::size_t>(spec.pieces, 1, core::kIovMax);
  std::uint32_t at = 0;
  const auto bytes = static_cast<std::uint32_t>(spec.bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t left = bytes - at;
    const auto size =
        i + 1 == count ? left : static_cast<std::uint32_t>(world_.prng().below(left + 1));
    pieces[i] = {record.payload.data() + at, size, kNoRegion};
    at += size;
  }
  core::SendRequest request;
  request.peer = spec.reply ? reply_peer(spec.to) : peer(spec.to);
  request.payload = std::span<const Segment>(pieces).first(count);
  request.user_data = number;
  request.channel = spec.channel;
  request.copy = spec.copy;
  request.unsignaled = spec.unsignaled;
  request.one_path = spec.one_path;
  const Errc status = host_.core().send(host_.local_now(), request);
  if (status != Errc::ok) return status;
  checker.handle_sent(number, world_.now());
  record.payload_pinned = spec.unsignaled && !spec.copy;
  if (spec.copy) {
    std::fill(record.payload.begin(), record.payload.end(), std::byte{0xcc});
    record.payload = {};
  }
  return status;
}

}  // namespace srd::sim
