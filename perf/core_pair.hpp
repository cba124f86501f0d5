// SPDX-License-Identifier: Apache-2.0
// Two protocol cores joined by a lossless wire of memory, in virtual time: what the protocol itself
// costs per datagram, without driver, system calls and clock. One side sends messages of one size
// as fast as its window allows, the other releases them at once. Used by bench_core (nanoseconds)
// and instr_core (instructions under callgrind).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "srd/core/core.hpp"

namespace srd::perf {

/// Datagrams one side takes or gives in one step; a driver's burst.
inline constexpr std::size_t kBurstDatagrams = 64;

/// The wire's end at one side: answers the core's questions about paths as a UDP driver with one
/// peer would, and owns the memory of the datagrams that arrived there.
class WireEnd final : public PathControl {
 public:
  WireEnd();

  Result<PathId> open_path(DestId dest, std::uint32_t entropy) noexcept override;
  Result<PathId> open_return_path(const RxDatagram& datagram) noexcept override;
  void close_path(PathId path) noexcept override;
  Result<DestId> resolve(const Address& to) noexcept override;
  void forget(DestId dest) noexcept override;
  std::uint32_t datagram_bytes(DestId dest) const noexcept override;
  bool describe_path(PathId path, Address& local, Address& remote) const noexcept override;

  /// Copies `sent` of the other end into a buffer of this end.
  void deliver(Instant now, const TxDatagram& sent, std::uint64_t flow);

  [[nodiscard]] std::span<const RxDatagram> arrived() const { return arrived_; }

  void clear_arrived() { arrived_.clear(); }

  void release(const BufferId* buffers, std::size_t count);
  std::uint64_t flow_of(PathId path) const;

 private:
  std::vector<std::uint64_t> flows_;             // by PathId
  std::vector<std::vector<std::byte>> buffers_;  // by BufferId
  std::vector<std::uint32_t> free_buffers_;
  std::vector<RxDatagram> arrived_;
  Address remote_{};
};

class CorePair {
 public:
  /// Messages of `message_bytes`. Ends the process with a text if the cores cannot be made.
  explicit CorePair(std::uint32_t message_bytes);

  /// One turn of the sending side: takes acknowledgements, tops up the queue of messages, makes a
  /// burst. Returns its datagrams. Never inlined: callgrind counts what happens in it.
  [[gnu::noinline]] std::size_t turn_sender();
  /// One turn of the receiving side: takes the burst, releases messages, makes acknowledgements.
  /// Returns the datagrams taken. Never inlined.
  [[gnu::noinline]] std::size_t turn_receiver();
  /// Carries both bursts over and moves virtual time on by one step.
  void advance();
  /// Runs until `messages` were received in all. Ends the process with a text if it gets stuck.
  void run_until_received(std::uint64_t messages);

  [[nodiscard]] std::uint64_t received_messages() const { return received_messages_; }

 private:
  struct Side {
    WireEnd wire;
    std::unique_ptr<core::Core> core;
    std::vector<TxDatagram> burst = std::vector<TxDatagram>(kBurstDatagrams);
    std::size_t burst_datagrams = 0;
  };

  void make_core(Side& side, std::uint64_t seed);
  void receive(Side& side);
  void transmit(Side& side);
  void carry(Side& from, Side& to);

  std::uint32_t message_bytes_;
  std::vector<std::byte> payload_;
  Instant now_{1'000'000'000};
  std::unique_ptr<Side> sender_ = std::make_unique<Side>();
  std::unique_ptr<Side> receiver_ = std::make_unique<Side>();
  core::PeerId peer_ = core::kNoPeer;
  std::uint64_t queued_messages_ = 0;
  std::uint64_t received_messages_ = 0;
};

}  // namespace srd::perf
