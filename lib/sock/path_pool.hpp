// SPDX-License-Identifier: Apache-2.0
// Destinations, source-port sockets and paths of one queue. A path is (socket, remote address, for
// answers also the local address); the sockets are shared by all destinations, so 10,000 peers need
// no more descriptors than one. Sans-clock: `now` comes in. Knows nothing of how datagrams move;
// the owner hears of each socket that opens or is about to close.
//
// Life of a pool socket: opened when a path first asks for it; while any path uses it, it sends.
// When the last one closed, it only receives for kDrain (datagrams for the old port are still under
// way), then it is closed, and whoever needs a socket later gets a new port.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "srd/datagram.hpp"
#include "srd/result.hpp"

#include "base/counter.hpp"
#include "sock/lazy_array.hpp"
#include "sock/socket.hpp"

namespace srd::sock {

/// Hears about sockets; called from the pool's own calls.
class SocketObserver {
 public:
  virtual ~SocketObserver() = default;
  /// False: could not be taken into service; the pool closes it and fails with no_memory.
  virtual bool socket_opened(unsigned index, int fd) noexcept = 0;
  virtual void socket_closing(unsigned index, int fd) noexcept = 0;
};

/// A way to send; what the transmit code reads per run of datagrams.
struct Path {
  enum class State : std::uint8_t { free, open, draining };
  SocketAddress remote;
  std::uint64_t drained_at;  ///< draining: ns
  std::uint64_t refused_in;  ///< the tx_burst in which a datagram of it was refused
  std::uint32_t next;        ///< open: chain of equal hash; else free or drain list
  DestId dest;               ///< kNoDest: return path
  std::uint16_t
      local;  ///< local address to send from, index of local_address(); 0: kernel's choice
  std::uint8_t socket;
  State state;
  bool v4;      ///< IPv4 remote, mapped or not
  bool no_gso;  ///< the device behind it refused segmentation
};

class PathPool {
 public:
  static constexpr unsigned kServiceSocket = 0;
  static constexpr unsigned kPoolSocketsMax = 96;
  static constexpr unsigned kSocketsMax = kPoolSocketsMax + 1;
  static constexpr std::uint32_t kPathsMax = 1U << 19;  ///< 8,192 peers with 64 paths each
  static constexpr std::uint32_t kDestsMax = 65536;
  static constexpr std::uint32_t kLocalsMax = 256;
  /// Receive-only time of a closed path's port. PROTOCOL.md: max(1 s, 8 SRTT), and 8 SRTT is less.
  static constexpr std::uint64_t kDrainNs = 1'000'000'000;

  struct Config {
    Address bind{};            ///< family 4 or 6
    std::uint16_t paths = 32;  ///< the pool spreads over paths + paths / 2 ports, more on demand
    std::uint64_t seed = 0;
    SocketWishes wishes{};
  };

  PathPool(const Syscalls& calls, const Config& config, SocketObserver& observer) noexcept;
  ~PathPool() = default;
  PathPool(const PathPool&) = delete;
  PathPool& operator=(const PathPool&) = delete;

  /// Takes the tables' address space and opens the service socket. Errors: those of open_socket().
  Errc open() noexcept;
  /// Closes all sockets; the observer hears of each. Before the observer goes.
  void close_all() noexcept;

  // --- destinations ---
  /// The same address gives the same id until forgotten. Errors: no_route (family), no_memory
  /// (kDestsMax).
  Result<DestId> add_dest(const Address& to) noexcept;
  /// Its open paths stay usable; the id is reused when the last one has drained.
  void forget(DestId dest) noexcept;
  [[nodiscard]] const Address* dest_address(DestId dest) const noexcept;

  // --- paths ---
  /// Picks, by entropy, a socket that `dest` uses for no other path and did not use within kDrain.
  /// Errors: not_found (dest), no_memory (sockets or kPathsMax). O(sockets), opens at most one.
  Result<PathId> open_path(Instant now, DestId dest, std::uint32_t entropy) noexcept;
  /// `socket`, `local`: as found in RxDatagram::local. Errors: not_found (socket gone), no_memory.
  Result<PathId> open_return_path(Instant now, unsigned socket, std::uint32_t local,
                                  const Address& remote) noexcept;
  void close_path(Instant now, PathId path) noexcept;

  /// Ends what has drained; cheap when there is nothing (one comparison).
  void expire(Instant now) noexcept {
    if (now.ns >= next_expiry_ns_) expire_drained(now);
  }

  /// nullptr unless open.
  [[nodiscard]] Path* open_entry(PathId id) noexcept {
    const auto i = static_cast<std::uint32_t>(id);
    if (i >= kPathsMax || paths_[i].state != Path::State::open) return nullptr;
    return &paths_[i];
  }

  [[nodiscard]] const Path* open_entry(PathId id) const noexcept {
    return const_cast<PathPool*>(this)->open_entry(id);
  }

  /// A path of `socket` to `remote`, for errors that name both; kNoPath if none. O(paths ever
  /// used).
  [[nodiscard]] PathId find_path(unsigned socket, const Address& remote) const noexcept;
  /// kNoDest if unknown. O(1).
  [[nodiscard]] DestId find_dest(const Address& remote) const noexcept;
  /// Remembers that the device behind `path` refuses segmentation, for later paths to there as
  /// well.
  void mark_no_gso(Path& path) noexcept;

  // --- sockets ---
  [[nodiscard]] int fd(unsigned socket) const noexcept { return sockets_[socket].fd.get(); }

  [[nodiscard]] const Address& socket_address(unsigned socket) const noexcept {
    return sockets_[socket].local;
  }

  [[nodiscard]] int family() const noexcept { return socket_family(config_.bind); }

  [[nodiscard]] unsigned open_sockets() const noexcept;

  /// Calls of open_path() that found no socket and could open none. Any thread.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.value(); }

  // --- local addresses ---
  /// Index for a local address seen on arriving datagrams; 0 if the table is full. O(table) when
  /// new.
  std::uint32_t intern_local(const Address& local) noexcept;

  [[nodiscard]] const Address& local_address(std::uint32_t index) const noexcept {
    return locals_[index];
  }

 private:
  using SocketSet = std::bitset<128>;
  static_assert(kSocketsMax <= 128);

  struct Socket {
    UniqueFd fd;
    Address local{};
    std::uint32_t users = 0;  ///< open and draining paths
  };

  struct Dest {
    Address address;
    SocketSet open;            ///< sockets of its open paths
    SocketSet draining;        ///< and of its draining ones
    std::uint32_t paths;       ///< open and draining
    std::uint32_t next;        ///< hash chain or free list
    std::uint32_t references;  ///< add_dest() calls not yet undone by forget()
    bool used, forgotten, no_gso;
  };

  [[nodiscard]] std::uint32_t path_bucket(unsigned socket,
                                          const SocketAddress& remote) const noexcept;
  void unlink_path(std::uint32_t index) noexcept;
  Result<PathId> take_path(unsigned socket, const Address& remote) noexcept;
  Result<unsigned> choose_socket(const Dest& dest, std::uint32_t entropy) noexcept;
  bool open_pool_socket(unsigned index) noexcept;
  void expire_drained(Instant now) noexcept;
  void close_socket(unsigned index) noexcept;
  void free_dest(std::uint32_t index) noexcept;
  void unlink_dest(std::uint32_t index) noexcept;
  [[nodiscard]] std::uint32_t bucket(const Address& address) const noexcept;
  [[nodiscard]] Dest* dest_entry(DestId id) noexcept;
  [[nodiscard]] const Dest* dest_entry(DestId id) const noexcept;

  const Syscalls& calls_;
  Config config_;
  SocketObserver& observer_;
  Counter refused_;
  std::array<Socket, kSocketsMax> sockets_{};

  LazyArray<Path> paths_;
  LazyArray<std::uint32_t> path_buckets_;  ///< open paths by socket and remote: index + 1; 0: empty
  std::uint32_t paths_used_ = 0;           ///< entries ever touched
  std::uint32_t free_path_ = UINT32_MAX;
  std::uint32_t drain_head_ = UINT32_MAX, drain_tail_ = UINT32_MAX;
  std::uint64_t next_expiry_ns_ = UINT64_MAX;

  LazyArray<Dest> dests_;
  LazyArray<std::uint32_t> buckets_;  ///< index + 1; 0: empty
  std::uint32_t dests_used_ = 0;
  std::uint32_t free_dest_ = UINT32_MAX;

  std::array<Address, kLocalsMax> locals_{};
  std::uint32_t locals_used_ = 1;
};

}  // namespace srd::sock
