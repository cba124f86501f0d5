// SPDX-License-Identifier: Apache-2.0
// Receive half of a UDP queue: finds the sockets that have something, reads many datagrams per
// system call into GRO buffers, splits them, and tells when the kernel received them.
//
// Order of looking: what is left of earlier reads, sockets that epoll named, then the hot socket
// without asking epoll, because request and response keep coming back by the same one; then epoll.
// An empty poll costs two system calls, a datagram on the hot socket one.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>

#include "srd/driver.hpp"

#include "base/counter.hpp"
#include "base/unique_fd.hpp"
#include "sock/error_queue.hpp"
#include "sock/path_pool.hpp"
#include "udp/rx_buffers.hpp"

namespace srd::udp {

class Receiver {
 public:
  Receiver(const sock::Syscalls& calls, sock::PathPool& pool, sock::ErrorQueue& errors,
           std::uint32_t buffers) noexcept;

  /// Creates the epoll instance. Errors: no_memory.
  Errc open() noexcept;
  bool add_socket(unsigned socket, int fd) noexcept;
  void remove_socket(unsigned socket) noexcept;

  std::size_t burst(std::span<RxDatagram> out) noexcept;
  void release(std::span<const BufferId> buffers) noexcept;
  Arm arm() noexcept;

  /// A datagram left by `socket`: the answer will come to it, unless the service socket is the busy
  /// one.
  void note_sent(unsigned socket) noexcept {
    if (last_rx_socket_ != sock::PathPool::kServiceSocket) hot_ = socket;
  }

  /// RxDatagram::local, taken apart.
  static unsigned socket_of(std::uint32_t local) noexcept { return local & kLocalMask; }

  static std::uint32_t local_of(std::uint32_t local) noexcept { return local >> kLocalShift; }

  /// The clock as read last, for work that may be a little late.
  [[nodiscard]] Instant last_now() const noexcept { return last_now_; }

  [[nodiscard]] int event_fd() const noexcept { return epoll_.get(); }

  [[nodiscard]] std::uint8_t fill() const noexcept { return fill_; }

  void read_counters(IoCounters& out) const noexcept;

 private:
  static constexpr unsigned kLocalShift = 8;  ///< socket below, index of the local address above
  static constexpr std::uint32_t kLocalMask = (1U << kLocalShift) - 1;
  static constexpr unsigned kSockets = sock::PathPool::kSocketsMax;
  static constexpr unsigned kReadMax = 32;  ///< buffers per recvmmsg
  static constexpr unsigned kReadMin = 2;
  /// The hot socket is served alone for at most so long, with traffic and without, before epoll is
  /// asked about the others.
  static constexpr std::uint64_t kSweepBusyNs = 50'000;
  static constexpr std::uint64_t kSweepIdleNs = 3'000;
  /// The distance between wall clock and monotonic clock changes only when the wall clock is set.
  static constexpr std::uint64_t kWallClockNs = 1'000'000;
  static constexpr std::uint64_t kFillEveryNs = 1'000'000;

  /// One receive buffer with datagrams not handed out yet.
  struct Pending {
    std::uint32_t buffer;
    std::uint32_t bytes;    ///< of all datagrams in it
    std::uint32_t at;       ///< where the next one starts
    std::uint32_t segment;  ///< bytes of each but the last
    std::uint32_t local;
    std::uint64_t flow;
    Instant arrived;
    Ecn ecn;
  };

  struct SocketState {
    std::uint64_t empty_at_ns;  ///< last time a read found no more
    std::uint32_t drops_seen;   ///< of the kernel's 32-bit drop counter
    std::uint32_t last_local;   ///< index of the newest local address; most datagrams repeat it
    std::uint16_t port;
  };

  struct alignas(8) Control {
    std::array<char, 256> bytes;
  };

  std::size_t emit(std::span<RxDatagram> out) noexcept;
  enum class ReadResult : std::uint8_t { dry, more, starved };
  ReadResult read(unsigned socket, std::size_t wanted) noexcept;
  void prepare(unsigned count) noexcept;
  int receive(int fd, unsigned count) noexcept;
  void accept(unsigned socket, unsigned slot) noexcept;
  [[nodiscard]] std::uint64_t wall_ahead_ns() const noexcept;
  [[nodiscard]] Instant arrival(unsigned socket, std::uint64_t stamp_ns) noexcept;
  std::uint32_t intern_local(SocketState& state, const Address& local) noexcept;
  void count_drops(SocketState& state, std::uint32_t drops) noexcept;
  void sample_fill(unsigned socket) noexcept;
  bool is_swept_lately(bool busy) noexcept;
  void sweep() noexcept;
  std::size_t read_hot(std::span<RxDatagram> out, std::size_t n) noexcept;
  std::size_t read_ready(std::span<RxDatagram> out, std::size_t n) noexcept;
  void mark_ready(unsigned socket) noexcept;
  void set_interest(bool readable) noexcept;

  const sock::Syscalls& calls_;
  sock::PathPool& pool_;
  sock::ErrorQueue& errors_;
  UniqueFd epoll_;
  RxBuffers buffers_;

  unsigned hot_ = sock::PathPool::kServiceSocket;
  unsigned last_rx_socket_ = kSockets;  ///< none yet
  unsigned read_size_ = kReadMin;       ///< adapts to what the last reads found
  bool last_read_empty_ = false;        ///< the next one will hardly find more than one
  bool others_busy_ = false;            ///< the last sweep found a socket other than the hot one
  bool interest_off_ = false;           ///< sockets are masked because no buffer is free
  Instant last_now_{};
  std::uint64_t all_empty_at_ns_ = 0;
  std::uint64_t swept_at_ns_ = 0;    ///< when epoll was asked last
  std::uint64_t wall_ahead_ns_ = 0;  ///< wall clock minus monotonic clock
  std::uint64_t wall_read_at_ns_ = 0;
  std::uint64_t filled_at_ns_ = 0;
  std::uint8_t fill_ = 0;

  std::array<std::uint8_t, kSockets> ready_{};  ///< stack of sockets named by epoll
  unsigned ready_count_ = 0;
  std::bitset<kSockets> is_ready_;

  std::array<Pending, kReadMax> pending_{};
  unsigned pending_head_ = 0;
  unsigned pending_tail_ = 0;  ///< pending_ is filled only when empty: no wrap

  std::array<SocketState, kSockets> sockets_{};
  std::array<std::uint32_t, kReadMax> slot_buffers_{};  ///< what the kernel was given last
  std::array<mmsghdr, kReadMax> headers_{};
  std::array<iovec, kReadMax> iovecs_{};
  std::array<sock::SocketAddress, kReadMax> names_{};
  std::array<Control, kReadMax> controls_{};

  Counter datagrams_, bytes_, calls_made_, truncated_, host_drops_, starved_;
};

}  // namespace srd::udp
