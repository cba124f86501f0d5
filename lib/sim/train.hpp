// SPDX-License-Identifier: Apache-2.0
// Datagrams in flight. A train is what one GSO send puts on the wire: datagrams of one 5-tuple,
// back to back in one piece of memory; it crosses the fabric as one event per hop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "srd/address.hpp"
#include "srd/datagram.hpp"

#include "sim/event_queue.hpp"

namespace srd::sim {

enum class HostId : std::uint32_t {};
inline constexpr HostId kNoHost{UINT32_MAX};

constexpr std::uint32_t index_of(HostId host) noexcept {
  return static_cast<std::uint32_t>(host);
}

struct Packet {
  std::uint32_t offset = 0;  ///< in Train::memory
  std::uint32_t bytes = 0;
  Ecn ecn = Ecn::not_ect;
};

struct Train {
  Address source{}, destination{};  ///< as the IP and UDP headers would carry them now
  HostId from = kNoHost, to = kNoHost;
  std::uint64_t io_epoch = 0;            ///< of the sending SimIo; 0: injected
  std::array<std::uint32_t, 3> route{};  ///< links still to cross are route[hop..hops)
  std::uint8_t hop = 0, hops = 0;
  TimeNs head = 0, tail = 0;  ///< when its first and last datagram reach the next hop
  std::vector<Packet> packets;
  std::vector<std::byte> memory;
  std::vector<TxDatagram> unsent;  ///< tx_async: payload is read when it leaves the host

  [[nodiscard]] std::span<std::byte> bytes_of(const Packet& packet) noexcept {
    return std::span(memory).subspan(packet.offset, packet.bytes);
  }
};

/// Recycles trains so that a long run does not allocate per train.
class TrainPool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      trains_.push_back(std::make_unique<Train>());
      return static_cast<std::uint32_t>(trains_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  void give_back(std::uint32_t index) {
    Train& train = *trains_[index];
    train.packets.clear();
    train.memory.clear();
    train.unsent.clear();
    train.from = train.to = kNoHost;
    train.io_epoch = 0;
    train.hop = train.hops = 0;
    free_.push_back(index);
  }

  Train& operator[](std::uint32_t index) noexcept { return *trains_[index]; }

  [[nodiscard]] std::size_t in_flight() const noexcept { return trains_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<Train>> trains_;
  std::vector<std::uint32_t> free_;
};

}  // namespace srd::sim
