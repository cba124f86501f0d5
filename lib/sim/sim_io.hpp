// SPDX-License-Identifier: Apache-2.0
// The simulator's driver: a PacketIo over a bounded socket queue and a NIC of given rate, with the
// habits of real drivers: GSO trains, GRO buffers shared by several datagrams, refusals, host
// drops, ICMP, transmission by reference. It checks its caller's side of the contract, too.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "srd/driver.hpp"

#include "base/prng.hpp"
#include "sim/fabric.hpp"
#include "sim/train.hpp"

namespace srd::sim {

struct IoConfig {
  std::uint32_t datagram_bytes = 1472;      ///< largest datagram of the route; may shrink later
  std::uint32_t rx_queue_datagrams = 2800;  ///< socket receive buffer; more are host drops
  std::uint32_t rx_buffers = 4096;          ///< on loan at once
  std::uint32_t burst_segments_max = 43;
  std::uint32_t burst_bytes_max = 60'000;
  std::uint64_t nic_rate_bps = 25'000'000'000;
  std::uint64_t tx_queue_bytes = 4U << 20;  ///< more waiting in the NIC: would_block
  double refuse = 0;                        ///< share of trains refused with would_block
  std::uint32_t ports = 16'384;             ///< source ports that open_path() may give out
  bool gro = true;
  bool tx_async = false;
  bool ecn = true;
  bool timestamps = true;  ///< RxDatagram::arrived is filled
};

class Host;
class World;

class SimIo final : public PacketIo {
 public:
  SimIo(World& world, Host& host, const IoConfig& config, const Address& local);
  ~SimIo() override;
  SimIo(const SimIo&) = delete;
  SimIo& operator=(const SimIo&) = delete;

  static Capabilities capabilities(const IoConfig& config, bool kernel_path) noexcept;

  // --- PacketIo ---
  Result<PathId> open_path(DestId dest, std::uint32_t entropy) noexcept override;
  Result<PathId> open_return_path(const RxDatagram& datagram) noexcept override;
  void close_path(PathId path) noexcept override;
  Result<DestId> resolve(const Address& to) noexcept override;
  void forget(DestId dest) noexcept override;
  std::uint32_t datagram_bytes(DestId dest) const noexcept override;
  bool describe_path(PathId path, Address& local, Address& remote) const noexcept override;
  std::size_t rx_burst(std::span<RxDatagram> out) noexcept override;
  void rx_release(std::span<const BufferId> buffers) noexcept override;
  void tx_burst(std::span<const TxDatagram> in) noexcept override;
  std::size_t tx_done(std::span<TxDone> out) noexcept override;
  std::size_t poll_path_events(std::span<PathEvent> out) noexcept override;
  Arm arm() noexcept override;

  int event_fd() const noexcept override { return -1; }

  Result<Address> local_address() const noexcept override { return local_; }

  IoCounters counters() const noexcept override { return counters_; }

  std::uint8_t rx_fill() const noexcept override;

  // --- the world's side ---
  /// A train reaches this host. False: nobody listens on its port.
  bool handle_arrival(Train& train);
  /// Payload of a tx_async train is read now, as it leaves the host; TxDone follows.
  void handle_departure(Train& train);
  /// An ICMP error for a datagram from `local_port` to `remote`.
  void handle_icmp(PathEvent::Kind kind, std::uint16_t local_port, const Address& remote,
                   std::span<const std::byte> quoted);

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

  [[nodiscard]] bool has_input() const noexcept {
    return !rx_queue_.empty() || !done_.empty() || !path_events_.empty();
  }

  /// Receive buffers that the core or the application still holds.
  [[nodiscard]] std::uint32_t loaned_buffers() const noexcept { return loaned_; }

  [[nodiscard]] std::size_t unsent_trains() const noexcept { return departing_; }

  [[nodiscard]] IoConfig& config() noexcept { return config_; }

 private:
  struct Dest {
    Address address{};
    std::uint32_t references = 0;  ///< resolve() minus forget()
    std::uint32_t paths = 0;       ///< open ones; the last frees a forgotten destination
  };

  struct Path {
    DestId dest = kNoDest;
    Address remote{};
    std::uint16_t local_port = 0;
    bool open = false;
  };

  struct Port {
    std::uint32_t users = 0;
    TimeNs drains_until = 0;  ///< after the last close_path()
  };

  struct Arrival {  // one GRO buffer in the socket queue
    Address source{};
    std::uint16_t local_port = 0;
    TimeNs at = 0;
    std::vector<Packet> packets;
    std::vector<std::byte> memory;
  };

  struct Buffer {  // one GRO buffer on loan
    Address source{};
    std::uint16_t local_port = 0;
    TimeNs at = 0;
    std::uint32_t references = 0;
    std::vector<Packet> packets;
    std::vector<std::byte> memory;
  };

  std::uint32_t find_or_add_dest(const Address& to, bool known_only_if_resolved);
  Result<PathId> add_path(DestId dest, const Address& remote, std::uint16_t local_port) noexcept;
  [[nodiscard]] bool listens(std::uint16_t port) const noexcept;
  void enqueue(const Train& train, std::span<const Packet> packets);
  std::uint32_t lend(Arrival& arrival);
  void fill(RxDatagram& out, std::uint32_t buffer_index, std::size_t packet_index);
  std::size_t run_length(std::span<const TxDatagram> in) const noexcept;
  void send_run(std::span<const TxDatagram> run);
  void load(Train& train, std::span<const TxDatagram> run);
  bool check(const TxDatagram& datagram);
  [[nodiscard]] std::uint64_t flow_of(std::uint16_t port, const Address& source) const noexcept;

  World& world_;
  Host& host_;
  IoConfig config_;
  const std::uint32_t datagram_bytes_max_;  ///< as the core was told
  Address local_;
  std::uint64_t epoch_;
  Prng prng_;
  IoCounters counters_;

  std::vector<Path> paths_;
  std::deque<std::uint32_t> free_paths_;  // FIFO: a closed id rests before it is used again
  std::size_t open_paths_ = 0;
  std::vector<Dest> dests_;  // both counts 0: free
  std::map<std::uint16_t, Port> ports_;

  std::deque<Arrival> rx_queue_;
  std::uint32_t rx_queued_ = 0;            // datagrams in rx_queue_
  std::size_t rx_cursor_ = 0;              // datagrams of the buffer being handed out
  std::uint32_t rx_current_ = UINT32_MAX;  // that buffer
  std::vector<Buffer> buffers_;
  std::vector<std::uint32_t> free_buffers_;
  std::uint32_t loaned_ = 0;
  std::vector<std::vector<std::byte>> spare_memory_;

  std::deque<TxDone> done_;
  std::deque<PathEvent> path_events_;
  std::vector<PathId> refused_paths_;  // within one tx_burst
  TimeNs nic_busy_until_ = 0;
  std::size_t departing_ = 0;
};

}  // namespace srd::sim
