// SPDX-License-Identifier: Apache-2.0
#include "udp/udp_io.hpp"

#include <algorithm>
#include <new>

#include "srd/address.hpp"

namespace srd::udp {
namespace {

constexpr std::uint64_t kSourceLifeNs = 100'000'000;

}  // namespace

Result<std::unique_ptr<PacketIo>> UdpIo::open(const UdpIoConfig& config) noexcept {
  std::unique_ptr<UdpIo> io(new (std::nothrow) UdpIo(config));
  if (io == nullptr) return Errc::no_memory;
  if (const Errc error = io->rx_.open(); error != Errc::ok) return error;
  if (const Errc error = io->pool_.open(); error != Errc::ok) return error;
  return std::unique_ptr<PacketIo>(std::move(io));
}

UdpIo::UdpIo(const UdpIoConfig& config) noexcept
    : config_(config),
      pool_(*config_.calls, config_.pool, *this),
      errors_(pool_),
      rx_(*config_.calls, pool_, errors_, config_.rx_buffers),
      tx_(*config_.calls, pool_, errors_, config_.tx) {}

UdpIo::~UdpIo() {
  pool_.close_all();
}

std::size_t UdpIo::rx_burst(std::span<RxDatagram> out) noexcept {
  pool_.expire(rx_.last_now());
  return rx_.burst(out);
}

void UdpIo::rx_release(std::span<const BufferId> buffers) noexcept {
  rx_.release(buffers);
}

void UdpIo::tx_burst(std::span<const TxDatagram> in) noexcept {
  tx_.burst(in);
  rx_.note_sent(tx_.last_socket());
}

std::size_t UdpIo::tx_done(std::span<TxDone> out) noexcept {
  return tx_.poll_done(out);
}

std::size_t UdpIo::poll_path_events(std::span<PathEvent> out) noexcept {
  return errors_.poll(out);
}

Arm UdpIo::arm() noexcept {
  if (tx_.has_done() || errors_.has_events()) return Arm::work_pending;
  return rx_.arm();
}

int UdpIo::event_fd() const noexcept {
  return rx_.event_fd();
}

Result<Address> UdpIo::local_address() const noexcept {
  return pool_.socket_address(sock::PathPool::kServiceSocket);
}

IoCounters UdpIo::counters() const noexcept {
  IoCounters out;
  rx_.read_counters(out);
  tx_.read_counters(out);
  out.icmp_errors = errors_.errors();
  out.paths_refused = pool_.refused();
  return out;
}

std::uint8_t UdpIo::rx_fill() const noexcept {
  return rx_.fill();
}

Result<PathId> UdpIo::open_path(DestId dest, std::uint32_t entropy) noexcept {
  return pool_.open_path(sock::monotonic_now(), dest, entropy);
}

Result<PathId> UdpIo::open_return_path(const RxDatagram& datagram) noexcept {
  if (datagram.source == nullptr) return Errc::not_found;
  return pool_.open_return_path(sock::monotonic_now(), Receiver::socket_of(datagram.local),
                                Receiver::local_of(datagram.local), *datagram.source);
}

void UdpIo::close_path(PathId path) noexcept {
  pool_.close_path(sock::monotonic_now(), path);
}

Result<DestId> UdpIo::resolve(const Address& to) noexcept {
  if (const auto route = route_.look_up(to); !route) return route.errc();
  return pool_.add_dest(to);
}

void UdpIo::forget(DestId dest) noexcept {
  pool_.forget(dest);
}

std::uint32_t UdpIo::datagram_bytes(DestId dest) const noexcept {
  const Address* to = pool_.dest_address(dest);
  if (to == nullptr) return 0;
  const auto route = route_.look_up(*to);
  if (!route) return 0;
  const std::uint32_t headers = sock::header_bytes(*to);
  return std::min(route->mtu_bytes - std::min(route->mtu_bytes, headers), config_.datagram_bytes);
}

bool UdpIo::describe_path(PathId id, Address& local, Address& remote) const noexcept {
  const sock::Path* path = pool_.open_entry(id);
  if (path == nullptr) return false;
  remote = sock::from_socket_address(path->remote);
  const Address& bound = pool_.socket_address(path->socket);
  local = bound;
  if (path->local != 0) {
    local = pool_.local_address(path->local);
  } else if (sock::is_wildcard(bound)) {
    if (const auto source = source_toward(remote)) local = *source;
  }
  local.port = bound.port;
  return true;
}

Result<Address> UdpIo::source_toward(const Address& remote) const noexcept {
  const Instant now = sock::monotonic_now();
  if (now > source_.expires || !same_address(source_.remote, remote)) {
    const auto route = route_.look_up(remote);
    if (!route) return route.errc();
    source_ = {remote, route->source, Instant{now.ns + kSourceLifeNs}};
  }
  return source_.address;
}

bool UdpIo::socket_opened(unsigned index, int fd) noexcept {
  return rx_.add_socket(index, fd);
}

void UdpIo::socket_closing(unsigned index, int) noexcept {
  rx_.remove_socket(index);
}

}  // namespace srd::udp
