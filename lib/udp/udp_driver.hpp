// SPDX-License-Identifier: Apache-2.0
// The default driver: plain UDP sockets, no privileges needed. This header is all that the runtime
// sees of it; docs/DRIVERS.md tells what it does.
#pragma once

#include <cstdint>
#include <memory>

#include "srd/driver.hpp"

#include "sock/syscalls.hpp"

namespace srd::udp {

/// Options of the device string "udp:[ADDRESS][?name=value...]"; the names are those of the fields.
struct Options {
  Address bind{};  ///< used where QueueConfig::bind is empty; family 0: [::]:0, or 0.0.0.0:0
                   ///< on a host without IPv6
  std::uint16_t paths = 32;                  ///< 1..64, used where QueueConfig::paths is 0
  bool gso = true;                           ///< send runs of datagrams with UDP_SEGMENT
  bool gro = true;                           ///< receive joined datagrams with UDP_GRO
  bool ecn = true;                           ///< mark and read ECN bits
  std::uint32_t rcvbuf_bytes = 8U << 20;     ///< wished SO_RCVBUF of each socket
  std::uint32_t sndbuf_bytes = 4U << 20;     ///< wished SO_SNDBUF of each socket
  std::uint32_t datagram_bytes = 0;          ///< cap on datagram size; 0: what the route allows
  const sock::Syscalls* syscalls = nullptr;  ///< tests: a table that fails on purpose; must outlive
                                             ///< all queues. nullptr: the kernel
};

/// Smallest socket buffers and largest, in bytes, that Options may ask for.
inline constexpr std::uint32_t kSocketBufferBytesMin = 4096;
inline constexpr std::uint32_t kSocketBufferBytesMax = 1U << 30;
/// Smallest datagram cap: what every IPv6 link carries (RFC 8200: 1280), less IP and UDP headers.
inline constexpr std::uint32_t kDatagramBytesMin = 1232;
/// Largest UDP payload over IPv4.
inline constexpr std::uint32_t kDatagramBytesMax = 65507;
inline constexpr std::uint16_t kPathsMax = 64;
/// Below this a burst in a scheduling gap of the host overflows the socket: advice() says so.
inline constexpr std::uint32_t kAdvisedBufferBytes = 4U << 20;

/// Probes the kernel and returns the driver. Errors set this thread's error text: invalid_argument
/// (an option out of its limits), not_supported, no_memory, not_permitted. Opens a few sockets and
/// sends one burst of datagrams to itself over loopback. Any thread.
Result<std::unique_ptr<Driver>> make_driver(const Options& options);

}  // namespace srd::udp
