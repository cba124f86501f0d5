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

#include "support/allocation_count.hpp"

namespace srd::core {

/// Paths are numbers; each has a flow id of its own. Destinations are counted as drivers do.
class NumberedPaths : public PathControl {
 public:
  NumberedPaths() { dests_.reserve(1024); }  // asked by a core, it must not allocate

  Result<PathId> open_path(DestId, std::uint32_t) noexcept override {
    if (refused > 0) {
      --refused;
      return Errc::no_memory;
    }
    return PathId{next_++};
  }

  Result<PathId> open_return_path(const RxDatagram&) noexcept override { return PathId{next_++}; }

  void close_path(PathId) noexcept override { ++closed_; }

  Result<DestId> resolve(const Address& to) noexcept override;
  void forget(DestId dest) noexcept override;

  std::uint32_t datagram_bytes(DestId) const noexcept override { return 1472; }

  bool describe_path(PathId, Address&, Address&) const noexcept override { return false; }

  [[nodiscard]] std::uint32_t open() const { return next_ - closed_; }

  [[nodiscard]] std::uint32_t opened() const { return next_; }

  /// resolve() calls not undone by forget().
  [[nodiscard]] std::uint32_t references(const Address& to) const;

  std::uint32_t refused = 0;  // open_path() fails so many times

 private:
  struct Dest {
    Address address{};
    std::uint32_t references = 0;
  };

  std::uint32_t next_ = 0, closed_ = 0;
  std::vector<Dest> dests_;
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

  /// What the two sides agreed on when they opened a context: enough to forge its packets.
  struct Handshake {
    std::uint32_t id_at_a = 0, id_at_b = 0;
    std::uint32_t seed_to_a = 0, seed_to_b = 0;
    std::uint32_t first_psn_of_a = 0, first_psn_of_b = 0;
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
  void deliver(Side& to, const Packet& packet, const Address& source = kSource);
  static Address address_of(std::uint16_t port);

  /// A packet with a valid check as the other side would send it within the latest context, or
  /// unseeded (HELLO, RESET).
  template <class Body>
  Packet forge(bool to_b, wire::CommonHeader common, const Body& body, std::size_t bytes) {
    Packet packet;
    packet.at_ns = now_ns;
    packet.bytes.resize(bytes);
    using wire::encode;
    seal(to_b, common, packet, [&] { encode(std::span(packet.bytes), body); });
    return packet;
  }

  /// An ACK; `received` from the 64-aligned PSN at or below the cumulative ack on.
  Packet forge_ack(bool to_b, std::uint32_t cumulative, wire::AckHeader ack,
                   std::span<const std::uint64_t> received);

  Side a, b;
  Filter filter;
  std::vector<std::byte> transcript;  // all bytes on the wire, in order
  std::vector<Handshake> handshakes;  // of contexts opened by either side, in order
  std::uint64_t now_ns = 1'000'000;
  std::uint64_t core_allocations = 0;  // made within calls of either core after its creation
  static constexpr std::uint64_t kDelayNs = 30'000;
  static constexpr Address kSource{4, 0, 9, 0, {10}, 0};  // of everything, if not said otherwise

 private:
  template <class Call>
  auto counted(Call call) {
    struct Meter {
      explicit Meter(std::uint64_t& sum) : sum_(sum) {}

      ~Meter() { sum_ += test::allocation_count() - before_; }

      Meter(const Meter&) = delete;
      Meter& operator=(const Meter&) = delete;

     private:
      std::uint64_t& sum_;
      std::uint64_t before_ = test::allocation_count();
    } const meter(core_allocations);

    return call();
  }

  void turn(Side& side, Side& other);
  void note_handshake(bool to_b, const Packet& packet);
  void seal(bool to_b, wire::CommonHeader common, Packet& packet,
            const std::function<void()>& write_body);

  std::map<std::uint32_t, wire::HelloHeader> hellos_;  // by their src_ctx
};

}  // namespace srd::core
