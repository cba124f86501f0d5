// SPDX-License-Identifier: Apache-2.0
// Transmit half of a UDP queue: gathers runs of equal path and size into UDP_SEGMENT messages,
// sends the messages of one socket with one system call, and hands back what the kernel refused.
// Payload is not copied here; the kernel copies it once.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "srd/driver.hpp"

#include "base/counter.hpp"
#include "sock/error_queue.hpp"
#include "sock/path_pool.hpp"

namespace srd::udp {

/// What transmission may use; from the probe and the options.
struct TxFeatures {
  bool gso = false;
  bool ecn = false;
  std::uint16_t segments_max = 1;
};

class Sender {
 public:
  Sender(const sock::Syscalls& calls, sock::PathPool& pool, sock::ErrorQueue& errors,
         const TxFeatures& features) noexcept
      : calls_(calls), pool_(pool), errors_(errors), features_(features) {}

  void burst(std::span<const TxDatagram> in) noexcept;
  std::size_t poll_done(std::span<TxDone> out) noexcept;

  [[nodiscard]] bool has_done() const noexcept { return done_head_ != done_tail_; }

  /// Socket of the newest message sent.
  [[nodiscard]] unsigned last_socket() const noexcept { return last_socket_; }

  void read_counters(IoCounters& out) const noexcept;

  /// Refusals kept for poll_done(). A caller that lets more pile up loses the oldest; their
  /// datagrams then look lost on the way.
  static constexpr std::uint32_t kDoneMax = 4096;

 private:
  static constexpr std::size_t kChunk = 128;  ///< datagrams gathered at a time
  static constexpr std::size_t kIovecs = 1 + kPayloadSegmentsMax;

  /// One datagram or one run of them, as handed to the kernel.
  struct Message {
    sock::Path* path;
    std::uint16_t first;  ///< position in order_
    std::uint16_t count;
  };

  struct alignas(8) Control {
    std::array<char, 128> bytes;
  };

  /// Fixed room for the messages of one socket.
  struct Batch {
    std::array<mmsghdr, kChunk> headers;
    std::array<Message, kChunk> messages;
    std::array<Control, kChunk> controls;
    std::size_t count = 0;
  };

  void send_chunk(std::span<const TxDatagram> in) noexcept;
  void send_socket(unsigned socket, std::size_t first, std::size_t last) noexcept;
  [[nodiscard]] std::size_t run_length(const sock::Path& path, std::size_t first,
                                       std::size_t last) const noexcept;
  void gather(std::size_t position) noexcept;
  void add_message(Batch& batch, sock::Path& path, std::size_t first, std::size_t count) noexcept;
  void flush(unsigned socket, Batch& batch) noexcept;
  int send(unsigned socket, mmsghdr* messages, std::size_t count) noexcept;
  enum class Verdict : std::uint8_t { retry, skip_message, stop_socket };
  Verdict handle_error(unsigned socket, Message& message, int error, unsigned tries) noexcept;
  void send_singly(unsigned socket, Message& message) noexcept;
  /// Refuses a message; whatever else of its path this burst() holds is refused as it comes up.
  void refuse_message(const Message& message, Errc status) noexcept;
  void refuse(const TxDatagram& datagram, Errc status) noexcept;

  const sock::Syscalls& calls_;
  sock::PathPool& pool_;
  sock::ErrorQueue& errors_;
  TxFeatures features_;

  std::uint64_t call_ = 0;  ///< number of this burst(), to remember which paths were refused in it
  std::span<const TxDatagram> in_;
  unsigned last_socket_ = sock::PathPool::kServiceSocket;

  std::array<std::uint16_t, kChunk> order_{};  ///< datagrams of the chunk, grouped by socket
  std::array<std::uint32_t, kChunk> bytes_{};  ///< their sizes, by datagram
  std::array<std::uint16_t, sock::PathPool::kSocketsMax> per_socket_{};  ///< zero between chunks
  std::array<iovec, kChunk * kIovecs> iovecs_{};
  std::array<std::uint16_t, kChunk + 1> iovec_at_{};  ///< first iovec of a position in order_
  Batch runs_;
  Batch singles_;

  std::array<TxDone, kDoneMax> done_{};
  std::uint32_t done_head_ = 0;  ///< free-running
  std::uint32_t done_tail_ = 0;

  Counter datagrams_, payload_bytes_, calls_made_, refused_, gso_fallbacks_;
};

}  // namespace srd::udp
