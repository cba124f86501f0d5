// SPDX-License-Identifier: Apache-2.0
// Plain data that the protocol core and the drivers exchange: datagrams in both directions, what
// became of a sent datagram, what a driver noticed about a path. Nothing here has behaviour.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "srd/address.hpp"
#include "srd/error.hpp"

namespace srd {

/// A point in monotonic time, nanoseconds from any epoch. Never wall-clock time.
struct Instant {
  std::uint64_t ns = 0;
  // clang-tidy 14 sees a null pointer in a defaulted comparison.
  auto operator<=>(const Instant&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline constexpr Instant kNever{UINT64_MAX};

/// A resolved remote service address in one PacketIo.
enum class DestId : std::uint32_t {};
inline constexpr DestId kNoDest{UINT32_MAX};

/// Entropy of the path that leaves by the endpoint's own service port.
inline constexpr std::uint32_t kServiceEntropy = UINT32_MAX;

/// One way to one remote: destination plus entropy (UDP source port, IPv6 flow label, queue pair).
/// Opaque; made by PacketIo::open_path and open_return_path.
enum class PathId : std::uint32_t {};
inline constexpr PathId kNoPath{UINT32_MAX};

/// Receive memory on loan from a driver. A GRO buffer may carry several datagrams; every one of
/// them holds one reference and is released on its own.
enum class BufferId : std::uint32_t {};
inline constexpr BufferId kNoBuffer{UINT32_MAX};

/// Memory registered with a device. kNoRegion where the device needs none.
enum class RegionKey : std::uint32_t {};
inline constexpr RegionKey kNoRegion{UINT32_MAX};

/// The two ECN bits of the IP header (RFC 3168).
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

/// Room for the longest protocol header with every TLV that may precede payload (PROTOCOL.md 3).
inline constexpr std::size_t kHeaderBytesMax = 96;
/// Payload pieces of one datagram: at most two application buffers meet in it.
inline constexpr std::size_t kPayloadSegmentsMax = 2;

/// A piece of payload to send, the caller's memory.
struct Segment {
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  RegionKey region = kNoRegion;
};

/// One datagram to send. `header` is copied by the driver before tx_burst returns. `payload` must
/// stay valid until the TxDone of `cookie`, or, with `copy`, only until tx_burst returns.
struct TxDatagram {
  PathId path = kNoPath;
  std::uint8_t header_bytes = 0;
  std::uint8_t payload_count = 0;
  Ecn ecn = Ecn::not_ect;
  bool copy = false;         ///< the driver must not reference `payload` after tx_burst returns
  std::uint64_t cookie = 0;  ///< 0: no TxDone wanted; a refusal is only counted
  std::array<Segment, kPayloadSegmentsMax> payload{};
  alignas(8) std::array<std::byte, kHeaderBytesMax> header{};

  [[nodiscard]] std::uint32_t bytes() const noexcept {
    std::uint32_t sum = header_bytes;
    for (std::size_t i = 0; i < payload_count; ++i) sum += payload[i].bytes;
    return sum;
  }
};

/// One received datagram: protocol bytes only, lower headers stripped.
struct RxDatagram {
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  BufferId buffer = kNoBuffer;  ///< released with PacketIo::rx_release, once per datagram
  Instant arrived{};            ///< when the kernel or NIC received it; {0}: unknown
  std::uint64_t flow = 0;  ///< equal for equal (local address and port, remote address and port)
  const Address* source = nullptr;  ///< valid until `buffer` is released
  std::uint32_t local = 0;  ///< driver's index of the local address and socket it came in by
  Ecn ecn = Ecn::not_ect;
  bool scarce = false;       ///< free receive buffers are low: do not hold this one
  bool burst_start = false;  ///< first datagram of a receive buffer: one RTT sample per buffer
};

/// What became of a datagram. Drivers without asynchronous transmission report refusals only.
struct TxDone {
  std::uint64_t cookie = 0;
  Errc status = Errc::ok;  ///< ok, would_block, message_too_long, no_route, not_permitted
};

/// Something a driver learned about a path or destination. Always a hint, never a verdict.
struct PathEvent {
  enum class Kind : std::uint8_t {
    refused,      ///< nobody listens at the destination's port (ICMP port unreachable)
    unreachable,  ///< a router or this host knows no way to it
    mtu,          ///< a datagram was longer than the route takes: `value`
    link_up,      ///< the device sends and receives again
    link_down,    ///< it does not
  };

  Kind kind = Kind::refused;
  PathId path = kNoPath;
  DestId dest = kNoDest;          ///< kNoDest: not attributable to one destination
  std::uint32_t value = 0;        ///< mtu: datagram bytes that still fit
  std::uint8_t quoted_bytes = 0;  ///< of our datagram, as quoted by ICMP; 0: none
  std::array<std::byte, 32> quoted{};
};

static_assert(std::is_trivially_copyable_v<TxDatagram> && std::is_trivially_copyable_v<RxDatagram>);
static_assert(sizeof(RxDatagram) <= 64);

}  // namespace srd
