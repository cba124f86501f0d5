// SPDX-License-Identifier: Apache-2.0
// Two cores joined by memory; see core_pair.hpp.
#include "core_pair.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace srd::perf {
namespace {

constexpr std::uint32_t kDatagramBytes = 1472;  // UDP over IPv4, MTU 1500
constexpr std::uint32_t kBuffers = 4096;
constexpr std::uint64_t kStepNs = 10'000;
// Bytes and messages kept queued at the sender: always enough for a burst.
constexpr std::uint64_t kQueuedBytesMax = 4U << 20;
constexpr std::uint64_t kQueuedMessagesMax = 4096;

[[noreturn]] void fail(const char* what, Errc code) {
  std::fprintf(stderr, "core pair: %s: %s\n", what, to_string(code));
  std::exit(1);
}

Address address_of(std::uint8_t host) {
  Address address{};
  address.family = 4;
  address.port = 7000;
  address.bytes[0] = 192;
  address.bytes[2] = 2;
  address.bytes[3] = host;
  return address;
}

}  // namespace

WireEnd::WireEnd() : buffers_(kBuffers, std::vector<std::byte>(kDatagramBytes)) {
  flows_.reserve(1024);
  arrived_.reserve(kBuffers);
  free_buffers_.reserve(kBuffers);
  for (std::uint32_t i = kBuffers; i > 0; --i) free_buffers_.push_back(i - 1);
}

Result<PathId> WireEnd::open_path(DestId, std::uint32_t entropy) noexcept {
  // The 5-tuple: as different as the source port is.
  flows_.push_back((std::uint64_t{1} << 32) | entropy);
  return static_cast<PathId>(flows_.size() - 1);
}

Result<PathId> WireEnd::open_return_path(const RxDatagram& datagram) noexcept {
  flows_.push_back(datagram.flow);
  return static_cast<PathId>(flows_.size() - 1);
}

void WireEnd::close_path(PathId) noexcept {}

Result<DestId> WireEnd::resolve(const Address& to) noexcept {
  remote_ = to;
  return DestId{0};
}

void WireEnd::forget(DestId) noexcept {}

std::uint32_t WireEnd::datagram_bytes(DestId) const noexcept {
  return kDatagramBytes;
}

bool WireEnd::describe_path(PathId, Address&, Address& remote) const noexcept {
  remote = remote_;
  return true;
}

void WireEnd::deliver(Instant now, const TxDatagram& sent, std::uint64_t flow) {
  if (free_buffers_.empty()) fail("receive buffers", Errc::no_memory);
  const std::uint32_t index = free_buffers_.back();
  free_buffers_.pop_back();
  std::byte* data = buffers_[index].data();
  std::memcpy(data, sent.header.data(), sent.header_bytes);
  std::size_t bytes = sent.header_bytes;
  for (std::size_t i = 0; i < sent.payload_count; ++i) {
    std::memcpy(data + bytes, sent.payload[i].data, sent.payload[i].bytes);
    bytes += sent.payload[i].bytes;
  }
  RxDatagram datagram;
  datagram.data = data;
  datagram.bytes = static_cast<std::uint32_t>(bytes);
  datagram.buffer = BufferId{index};
  datagram.arrived = now;
  datagram.flow = flow;
  datagram.source = &remote_;
  datagram.ecn = sent.ecn;
  datagram.burst_start = arrived_.empty();
  arrived_.push_back(datagram);
}

void WireEnd::release(const BufferId* buffers, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    free_buffers_.push_back(static_cast<std::uint32_t>(buffers[i]));
  }
}

std::uint64_t WireEnd::flow_of(PathId path) const {
  return flows_[static_cast<std::uint32_t>(path)];
}

CorePair::CorePair(std::uint32_t message_bytes)
    : message_bytes_(message_bytes), payload_(message_bytes) {
  for (std::size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i);
  make_core(*sender_, 1);
  make_core(*receiver_, 2);
  // Each end knows the other's address from the start: it is the source of what arrives.
  if (!receiver_->wire.resolve(address_of(1))) fail("resolve", Errc::internal);
  const Result<core::PeerId> peer = sender_->core->add_peer(now_, address_of(2));
  if (!peer) fail("add_peer", peer.errc());
  peer_ = *peer;
}

void CorePair::make_core(Side& side, std::uint64_t seed) {
  core::Config config;
  config.driver.datagram_bytes_max = kDatagramBytes;
  config.driver.rx_buffer_bytes = kBuffers * kDatagramBytes;
  config.driver.rx_buffers = kBuffers;
  config.driver.paths_max = 64;
  config.driver.ecn = true;
  config.limits.peers = 4;
  config.limits.contexts = 8;
  config.seed = seed;
  config.incarnation = seed;
  std::memcpy(&config.endpoint_id, &seed, sizeof seed);
  Result<std::unique_ptr<core::Core>> made = core::Core::create(config, side.wire);
  if (!made) fail("core", made.errc());
  side.core = std::move(*made);
}

void CorePair::receive(Side& side) {
  if (!side.wire.arrived().empty()) side.core->handle_datagrams(now_, side.wire.arrived());
  side.wire.clear_arrived();
  if (now_ >= side.core->next_deadline()) side.core->handle_timeout(now_);

  std::array<core::Event, kBurstDatagrams> events;
  while (const std::size_t count = side.core->poll_events(events)) {
    for (std::size_t i = 0; i < count; ++i) {
      const core::Event& event = events[i];
      if (event.kind == core::Event::Kind::message) {
        ++received_messages_;
        const Errc released = side.core->release(now_, event.message);
        if (released != Errc::ok) fail("release", released);
      } else if (event.kind == core::Event::Kind::send_done) {
        if (event.status != Errc::ok) fail("send", event.status);
        --queued_messages_;
      }
    }
  }
}

void CorePair::transmit(Side& side) {
  side.burst_datagrams = side.core->poll_transmit(now_, side.burst);
  std::array<BufferId, kBurstDatagrams> released;
  while (const std::size_t count = side.core->poll_release(released)) {
    side.wire.release(released.data(), count);
  }
}

std::size_t CorePair::turn_sender() {
  receive(*sender_);
  const Segment piece{payload_.data(), message_bytes_, kNoRegion};
  while (queued_messages_ < kQueuedMessagesMax &&
         queued_messages_ * message_bytes_ < kQueuedBytesMax) {
    core::SendRequest request;
    request.peer = peer_;
    request.payload = {&piece, 1};
    const Errc status = sender_->core->send(now_, request);
    if (status == Errc::would_block) break;
    if (status != Errc::ok) fail("send", status);
    ++queued_messages_;
  }
  transmit(*sender_);
  return sender_->burst_datagrams;
}

std::size_t CorePair::turn_receiver() {
  const std::size_t taken = receiver_->wire.arrived().size();
  receive(*receiver_);
  transmit(*receiver_);
  return taken;
}

void CorePair::carry(Side& from, Side& to) {
  for (std::size_t i = 0; i < from.burst_datagrams; ++i) {
    to.wire.deliver(now_, from.burst[i], from.wire.flow_of(from.burst[i].path));
  }
  from.burst_datagrams = 0;
}

void CorePair::advance() {
  carry(*sender_, *receiver_);
  carry(*receiver_, *sender_);
  now_.ns += kStepNs;
}

void CorePair::run_until_received(std::uint64_t messages) {
  constexpr std::uint64_t kStuckSteps = 1'000'000;  // 10 s of virtual time
  std::uint64_t idle_steps = 0;
  while (received_messages_ < messages) {
    const std::uint64_t before = received_messages_;
    turn_sender();
    turn_receiver();
    advance();
    idle_steps = received_messages_ == before ? idle_steps + 1 : 0;
    if (idle_steps > kStuckSteps) fail("no message in 10 s of virtual time", Errc::internal);
  }
}

}  // namespace srd::perf
