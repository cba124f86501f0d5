// SPDX-License-Identifier: Apache-2.0
// Two cores joined by a wire in virtual time, for tests of the core by its public face. The
// network's faults belong to the simulator; here single packets can be seen, dropped, kept and
// replayed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "srd/core/core.hpp"
#include "srd/wire/packet.hpp"

namespace srd::core {

/// Paths are numbers; each has a flow id of its own.
class NumberedPaths : public PathControl {
 public:
  Result<PathId> open_path(DestId, std::uint32_t) noexcept override { return PathId{next_++}; }

  Result<PathId> open_return_path(const RxDatagram&) noexcept override { return PathId{next_++}; }

  void close_path(PathId) noexcept override { ++closed_; }

  Result<DestId> resolve(const Address&) noexcept override { return DestId{0}; }

  void forget(DestId) noexcept override {}

  std::uint32_t datagram_bytes(DestId) const noexcept override { return 1472; }

  bool describe_path(PathId, Address&, Address&) const noexcept override { return false; }

  [[nodiscard]] std::uint32_t open() const { return next_ - closed_; }

 private:
  std::uint32_t next_ = 0, closed_ = 0;
};

class CorePair {
 public:
  struct Packet {
    std::uint64_t at_ns = 0;
    std::vector<std::byte> bytes;
    Ecn ecn = Ecn::ect0;

    [[nodiscard]] wire::PacketType type() const {
      wire::CommonHeader header;
      return wire::decode(bytes, header) ? header.type : wire::PacketType{};
    }
  };

  struct Side {
    NumberedPaths paths;
    std::unique_ptr<Core> core;
    std::deque<Packet> inbox;
    std::map<BufferId, std::vector<std::byte>> buffers;
    std::vector<Event> events;  // send_done and peer
    std::vector<std::vector<std::byte>> messages;
    std::vector<MessageId> loans;  // kept while `hold`
    bool hold = false;
    std::uint32_t next_buffer = 0;
    PeerId peer = kNoPeer;
  };

  /// Called for each packet on the wire: false drops it.
  using Filter = std::function<bool(bool to_b, const Packet&)>;

  explicit CorePair(const Config& base = config());
  static Config config();

  void start(Side& side, const Config& config);
  Errc send(Side& from, std::span<const std::byte> payload, std::uint64_t user_data = 0);
  /// Runs both until `done` or `ms` of virtual time passed; true if done.
  bool run(
      std::uint64_t ms, const std::function<bool()>& done = [] { return false; });
  void deliver(Side& to, const Packet& packet);

  Side a, b;
  Filter filter;
  std::vector<std::byte> transcript;  // all bytes on the wire, in order
  std::uint64_t now_ns = 1'000'000;
  static constexpr std::uint64_t kDelayNs = 30'000;

 private:
  void turn(Side& side, Side& other);
};

}  // namespace srd::core
