// SPDX-License-Identifier: Apache-2.0
// Scripted interference: rules that pick single packets on their way and drop, delay, copy, change
// or record them. For scenarios that must hit one particular packet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "srd/wire/packet.hpp"

#include "sim/train.hpp"

namespace srd::sim {

/// A packet that leaves a host, before the fabric.
struct PacketView {
  TimeNs at = 0;
  HostId from = kNoHost, to = kNoHost;
  const Address& source;
  const Address& destination;
  std::span<std::byte> bytes;

  [[nodiscard]] wire::PacketType type() const noexcept {
    return static_cast<wire::PacketType>(bytes.empty() ? 0 : static_cast<unsigned>(bytes[0]) & 15U);
  }

  [[nodiscard]] wire::CommonHeader header() const noexcept {
    wire::CommonHeader common;
    wire::decode(bytes, common);
    return common;
  }
};

/// Which packets a rule means; unset members match all.
struct Match {
  std::optional<wire::PacketType> type{};
  std::optional<HostId> from{}, to{};
  std::function<bool(const PacketView&)> where{};

  [[nodiscard]] bool operator()(const PacketView& packet) const {
    return (!type || *type == packet.type()) && (!from || *from == packet.from) &&
           (!to || *to == packet.to) && (!where || where(packet));
  }
};

struct RecordedPacket {
  TimeNs at = 0;
  HostId from = kNoHost, to = kNoHost;
  Address source{}, destination{};
  std::vector<std::byte> bytes;
};

/// Acts on the next `remaining` packets that match. Lives as long as its world.
struct Rule {
  Match match;
  std::uint64_t remaining = UINT64_MAX;
  bool drop = false;
  bool record = false;
  TimeNs delay_ns = 0;
  unsigned copies = 0;  ///< extra copies, each later by copy_spacing_ns
  TimeNs copy_spacing_ns = 10 * kUs;
  std::function<void(PacketView&)> change{};

  std::uint64_t hits = 0;
  std::vector<RecordedPacket> recorded{};
};

}  // namespace srd::sim
