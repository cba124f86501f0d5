// SPDX-License-Identifier: Apache-2.0
#include "srd/core/core.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "srd/core/impl.hpp"

namespace srd::core {

namespace {
constexpr std::uint32_t kSendMessagesMax = (1U << 20U) - 1;  // what a cookie can name
constexpr std::uint64_t kSegmentBytesMin = 1024;  // payload of the smallest negotiable datagram
constexpr std::uint32_t kRxBlocksSpare = wire::kSmallCountMax;  // for the datagram at hand
}  // namespace

Core::Impl::Impl(const Config& config, PathControl& paths) noexcept
    : config_(config), path_control_(paths), prng_(config.seed) {
  for (auto& byte : cookie_key_) byte = static_cast<std::uint8_t>(prng_.next());
  partial_hash_factor_ = prng_.next() | 1U;
}

bool Core::Impl::create() noexcept {
  const Limits& limits = config_.limits;
  const std::uint32_t hash_size = std::max(2U, std::bit_ceil(limits.receive_messages));
  partial_hash_shift_ = 64U - static_cast<unsigned>(std::countr_zero(hash_size));
  // A quarter is for others, but any SMALL datagram must fit.
  records_per_context_ = std::max(limits.receive_messages - limits.receive_messages / 4,
                                  std::min(limits.receive_messages, kRxBlocksSpare));
  partial_hash_.reset(new (std::nothrow) Index[hash_size]);
  peer_events_.reset(new (std::nothrow) PeerEvent[peer_event_capacity()]);
  lazy_.reset(new (std::nothrow) Index[limits.contexts]);
  releases_.reset(new (std::nothrow) BufferId[kReleaseRing]);
  if (!partial_hash_ || !peer_events_ || !lazy_ || !releases_) return false;
  if (!contexts_by_remote_id_.create(limits.contexts) || !peers_by_endpoint_.create(limits.peers) ||
      !peers_by_address_.create(limits.peers) || !peers_by_dest_.create(limits.peers)) {
    return false;
  }
  for (std::uint32_t i = 0; i < hash_size; ++i) partial_hash_[i] = kNone;
  const auto copy_blocks = [&](std::uint64_t share, std::uint32_t bytes) {
    return static_cast<std::uint32_t>(limits.copy_pool_bytes / share / bytes);
  };
  // Enough copies for whatever the receive pool admits, however scarce driver buffers are: a
  // message that got its share must never wait for memory that another unfinished one holds. Pages
  // that are never used cost nothing.
  const auto large_blocks =
      static_cast<std::uint32_t>(limits.receive_pool_bytes / kSegmentBytesMin) + kRxBlocksSpare;
  const std::uint32_t small_blocks = limits.receive_messages + kRxBlocksSpare;
  return peers_.create(limits.peers) && contexts_.create(limits.contexts) &&
         tx_messages_.create(limits.send_messages) && bundles_.create(limits.bundles) &&
         bundle_memory_.allocate(std::size_t{limits.bundles} * limits.bundle_bytes) &&
         chunks_.create(limits.sent_chunks) && rx_messages_.create(limits.receive_messages) &&
         slices_.create(std::max(limits.slices, large_blocks)) &&
         rejections_.create(limits.rejections) &&
         copy_pools_[0].create(copy_blocks(4, 1024), 1024) &&
         copy_pools_[1].create(copy_blocks(4, 8192), 8192) &&
         copy_pools_[2].create(copy_blocks(2, 65536), 65536) &&
         rx_small_.create(small_blocks, 512) && rx_large_.create(large_blocks, 2048) &&
         deadlines_.create(limits.contexts);
}

Result<std::unique_ptr<Core>> Core::create(const Config& config, PathControl& paths) noexcept {
  const Limits& limits = config.limits;
  const bool valid =
      limits.peers > 0 && limits.contexts > 0 && limits.contexts <= (1U << 14U) &&
      limits.contexts_per_peer >= 4 && limits.window_psns >= 256 &&
      limits.window_psns <= kWindowPsnsMax && std::has_single_bit(limits.window_psns) &&
      limits.paths >= 1 && limits.paths <= kSlotsMax && limits.send_messages > 0 &&
      limits.send_messages < kSendMessagesMax && limits.receive_messages > 0 &&
      limits.sent_chunks > 0 && limits.slices > 0 &&
      limits.rejections_per_peer >= wire::kSmallCountMax &&  // a whole SMALL, or it comes for ever
      limits.rejections_per_peer <= kRejectionsPerPeerMax &&
      limits.rejections >= limits.rejections_per_peer && limits.small_bytes <= 512 &&
      limits.bundle_bytes >= limits.small_bytes + 12 && limits.bundle_bytes <= 1152 &&
      limits.copy_bytes_max <= 65536 && limits.max_message_bytes <= limits.receive_pool_bytes / 2 &&
      config.incarnation != 0 && config.driver.datagram_bytes_max >= 1232;
  if (!valid) return Errc::invalid_argument;
  std::unique_ptr<Impl> impl(new (std::nothrow) Impl(config, paths));
  if (impl == nullptr || !impl->create()) return Errc::no_memory;
  std::unique_ptr<Core> core(new (std::nothrow) Core(std::move(impl)));
  if (core == nullptr) return Errc::no_memory;
  return core;
}

Core::Core(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Core::~Core() = default;

void Core::handle_datagrams(Instant now, std::span<const RxDatagram> in) noexcept {
  impl_->handle_datagrams(now, in);
}

void Core::handle_tx_done(Instant now, std::span<const TxDone> done) noexcept {
  impl_->handle_tx_done(now, done);
}

void Core::handle_timeout(Instant now) noexcept {
  impl_->handle_timeout(now);
}

void Core::handle_path_event(Instant now, const PathEvent& event) noexcept {
  impl_->handle_path_event(now, event);
}

void Core::handle_host_state(Instant now, std::uint64_t drops, std::uint8_t fill) noexcept {
  impl_->handle_host_state(now, drops, fill);
}

Result<PeerId> Core::add_peer(Instant now, const Address& address) noexcept {
  return impl_->add_peer(now, address);
}

Errc Core::remove_peer(Instant now, PeerId peer) noexcept {
  return impl_->remove_peer(now, peer);
}

Errc Core::send(Instant now, const SendRequest& request) noexcept {
  return impl_->send(now, request);
}

Errc Core::release(Instant now, MessageId message) noexcept {
  return impl_->release(now, message);
}

void Core::close(Instant now) noexcept {
  impl_->close(now);
}

std::size_t Core::poll_transmit(Instant now, std::span<TxDatagram> out) noexcept {
  return impl_->poll_transmit(now, out);
}

std::size_t Core::poll_events(std::span<Event> out) noexcept {
  return impl_->poll_events(out);
}

std::size_t Core::poll_release(std::span<BufferId> out) noexcept {
  return impl_->poll_release(out);
}

Instant Core::next_deadline() const noexcept {
  return impl_->next_deadline();
}

bool Core::has_transmit() const noexcept {
  return impl_->has_transmit();
}

bool Core::has_events() const noexcept {
  return impl_->has_events();
}

std::size_t Core::segments(MessageId message, std::span<srd_iov> out) const noexcept {
  return impl_->segments(message, out);
}

Result<std::size_t> Core::copy_out(MessageId message, std::uint64_t offset,
                                   std::span<std::byte> out) const noexcept {
  return impl_->copy_out(message, offset, out);
}

const Counters& Core::counters() const noexcept {
  return impl_->counters_;
}

bool Core::peer_info(PeerId peer, srd_peer_info& out) const noexcept {
  return impl_->peer_info(peer, out);
}

std::size_t Core::path_info(PeerId peer, std::span<srd_path_info> out) const noexcept {
  return impl_->path_info(peer, out);
}

}  // namespace srd::core
