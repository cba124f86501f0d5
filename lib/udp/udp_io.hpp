// SPDX-License-Identifier: Apache-2.0
// One queue of the UDP driver: a service socket and a pool of source ports, joined to one PacketIo.
// Private to lib/udp.
#pragma once

#include <memory>

#include "srd/driver.hpp"

#include "sock/error_queue.hpp"
#include "sock/path_pool.hpp"
#include "sock/route.hpp"
#include "udp/udp_rx.hpp"
#include "udp/udp_tx.hpp"

namespace srd::udp {

struct UdpIoConfig {
  sock::PathPool::Config pool{};
  TxFeatures tx{};
  std::uint32_t rx_buffers = RxBuffers::kDefaultCount;
  std::uint32_t datagram_bytes = 0;  ///< cap, never 0
  const sock::Syscalls* calls = nullptr;
};

class UdpIo final : public PacketIo, private sock::SocketObserver {
 public:
  /// Errors: those of PathPool::open(), no_memory.
  static Result<std::unique_ptr<PacketIo>> open(const UdpIoConfig& config) noexcept;
  explicit UdpIo(const UdpIoConfig& config) noexcept;
  ~UdpIo() override;
  UdpIo(const UdpIo&) = delete;
  UdpIo& operator=(const UdpIo&) = delete;

  std::size_t rx_burst(std::span<RxDatagram> out) noexcept override;
  void rx_release(std::span<const BufferId> buffers) noexcept override;
  void tx_burst(std::span<const TxDatagram> in) noexcept override;
  std::size_t tx_done(std::span<TxDone> out) noexcept override;
  std::size_t poll_path_events(std::span<PathEvent> out) noexcept override;
  Arm arm() noexcept override;
  int event_fd() const noexcept override;
  Result<Address> local_address() const noexcept override;
  IoCounters counters() const noexcept override;
  std::uint8_t rx_fill() const noexcept override;

  Result<PathId> open_path(DestId dest, std::uint32_t entropy) noexcept override;
  Result<PathId> open_return_path(const RxDatagram& datagram) noexcept override;
  void close_path(PathId path) noexcept override;
  Result<DestId> resolve(const Address& to) noexcept override;
  void forget(DestId dest) noexcept override;
  std::uint32_t datagram_bytes(DestId dest) const noexcept override;
  bool describe_path(PathId path, Address& local, Address& remote) const noexcept override;

 private:
  /// All paths of a peer are described one after the other, by some users a hundred times a second:
  /// the answer is kept for a moment, since each lookup is several system calls.
  struct Source {
    Address remote{};
    Address address{};
    Instant expires{};
  };

  Result<Address> source_toward(const Address& remote) const noexcept;
  bool socket_opened(unsigned index, int fd) noexcept override;
  void socket_closing(unsigned index, int fd) noexcept override;

  const UdpIoConfig config_;
  sock::PathPool pool_;
  sock::ErrorQueue errors_;
  Receiver rx_;
  Sender tx_;
  mutable sock::RouteProbe route_;  ///< asking the routing table changes nothing that can be seen
  mutable Source source_;
};

}  // namespace srd::udp
