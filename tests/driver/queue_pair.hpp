// SPDX-License-Identifier: Apache-2.0
// Helpers of the driver tests: datagrams with recognisable content, sending and collecting them.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "driver/driver_beds.hpp"

namespace srd::test {

/// Byte `i` of the datagram numbered `id`.
inline std::byte pattern(std::uint32_t id, std::size_t i) noexcept {
  return static_cast<std::byte>((id * 131 + i * 7 + i / 256) & 0xff);
}

/// Storage for datagrams to send: the first 4 bytes carry the id, as far as the size allows.
class Outbox {
 public:
  /// A datagram of `bytes` on `path`: up to 40 header bytes, the rest as payload in two pieces.
  TxDatagram& add(PathId path, std::uint32_t id, std::size_t bytes, Ecn ecn = Ecn::ect0) {
    auto& content = contents_.emplace_back(std::make_unique<std::byte[]>(bytes + 1));
    for (std::size_t i = 0; i < bytes; ++i) content[i] = pattern(id, i);
    std::memcpy(content.get(), &id, std::min(bytes, sizeof id));
    TxDatagram datagram;
    datagram.path = path;
    datagram.ecn = ecn;
    datagram.cookie = id + 1;
    const std::size_t header = std::min<std::size_t>(bytes, 40);
    datagram.header_bytes = static_cast<std::uint8_t>(header);
    std::memcpy(datagram.header.data(), content.get(), header);
    const std::size_t rest = bytes - header;
    const std::size_t first = rest / 3;
    if (rest > 0) {
      datagram.payload_count = 2;
      datagram.payload[0] = {content.get() + header, static_cast<std::uint32_t>(first), kNoRegion};
      datagram.payload[1] = {content.get() + header + first,
                             static_cast<std::uint32_t>(rest - first), kNoRegion};
    }
    return datagrams_.emplace_back(datagram);
  }

  void send(PacketIo& io) { io.tx_burst(datagrams_); }

  void clear() {
    datagrams_.clear();
    contents_.clear();
  }

  [[nodiscard]] std::size_t size() const { return datagrams_.size(); }

 private:
  std::vector<TxDatagram> datagrams_;
  std::vector<std::unique_ptr<std::byte[]>> contents_;
};

inline std::uint32_t id_of(const RxDatagram& datagram) {
  std::uint32_t id = 0;
  std::memcpy(&id, datagram.data, std::min<std::size_t>(datagram.bytes, sizeof id));
  return id;
}

inline bool is_intact(const RxDatagram& datagram) {
  const std::uint32_t id = id_of(datagram);
  for (std::size_t i = sizeof id; i < datagram.bytes; ++i) {
    if (datagram.data[i] != pattern(id, i)) return false;
  }
  return true;
}

inline void release(PacketIo& io, const std::vector<RxDatagram>& datagrams) {
  std::vector<BufferId> buffers;
  for (const RxDatagram& datagram : datagrams) buffers.push_back(datagram.buffer);
  io.rx_release(buffers);
}

/// Receives until `wanted` datagrams are in or none came for a while. Still on loan afterwards.
inline std::vector<RxDatagram> collect(DriverBed& bed, PacketIo& io, std::size_t wanted,
                                       std::size_t burst = 64) {
  std::vector<RxDatagram> all;
  std::vector<RxDatagram> some(burst);
  constexpr int kIdleMax = 2500;  // half a second of waits
  for (int idle = 0; all.size() < wanted && idle < kIdleMax;) {
    const std::size_t n = io.rx_burst(some);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
    if (n > 0) {
      idle = 0;
    } else {
      bed.wait();
      ++idle;
    }
  }
  return all;
}

/// Receives and gives back what still comes; returns how many.
inline std::size_t discard(DriverBed& bed, PacketIo& io, int waits = 20) {
  std::vector<RxDatagram> some(64);
  std::size_t total = 0;
  for (int idle = 0; idle < waits;) {
    const std::size_t n = io.rx_burst(some);
    for (std::size_t i = 0; i < n; ++i) io.rx_release({&some[i].buffer, 1});
    total += n;
    if (n == 0) {
      bed.wait();
      ++idle;
    }
  }
  return total;
}

inline std::vector<TxDone> collect_done(PacketIo& io) {
  std::vector<TxDone> all;
  TxDone some[16];
  for (std::size_t n = io.tx_done(some); n > 0; n = io.tx_done(some)) {
    all.insert(all.end(), some, some + n);
  }
  return all;
}

}  // namespace srd::test
