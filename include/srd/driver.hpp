// SPDX-License-Identifier: Apache-2.0
// Driver SDK: what a backend (UDP sockets, io_uring, DPDK, verbs, simulator) implements under the
// protocol core. Source-stable, not ABI-stable. Lower headers belong to the driver; the core sees
// protocol bytes only. tests/driver/conformance_test.cpp is the contract in executable form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "srd/datagram.hpp"
#include "srd/result.hpp"

namespace srd {

/// What a device can do, as probed; constant for the life of a Driver. The runtime refuses to open
/// a device that is `reliable` or needs regions: the core does not make use of the one nor serve
/// the other yet.
struct Capabilities {
  std::uint32_t datagram_bytes_max = 0;  ///< largest datagram, lower headers excluded
  std::uint32_t rx_buffer_bytes = 0;  ///< what the device queues before dropping (SO_RCVBUF, ring)
  std::uint32_t rx_buffers = 0;       ///< receive buffers that may be on loan at once
  std::uint16_t paths_max = 1;        ///< useful distinct paths to one destination
  std::uint16_t tx_burst_segments_max = 1;  ///< datagrams of one path the device takes as one unit
  std::uint32_t tx_burst_bytes_max = 0;     ///< and their bytes on the wire, lower headers included
  bool reliable = false;                    ///< device retransmits and sprays (EFA SRD)
  bool tx_async = false;                    ///< payload is referenced until TxDone
  bool tx_needs_region = false;             ///< payload must lie in registered memory
  bool ecn = false;                         ///< ECN bits are set on send and read on receive
  bool can_sleep = false;                   ///< event_fd() and arm() work
  bool kernel_path = false;  ///< kernel network stack: coarse timing, host gaps (TUNING.md)
};

/// Counters of one PacketIo, free-running since it was opened.
struct IoCounters {
  std::uint64_t rx_datagrams = 0, rx_bytes = 0, rx_calls = 0;
  std::uint64_t tx_datagrams = 0, tx_bytes = 0, tx_calls = 0;
  std::uint64_t tx_refused = 0;     ///< datagrams handed back by TxDone with an error
  std::uint64_t rx_host_drops = 0;  ///< dropped by this host before rx_burst (SO_RXQ_OVFL, ring)
  std::uint64_t rx_starved = 0;     ///< rx_burst calls that found no free receive buffer
  std::uint64_t rx_truncated = 0;   ///< longer than a receive buffer; dropped
  std::uint64_t icmp_errors = 0;    ///< read from error queues
  std::uint64_t gso_fallbacks = 0;  ///< bursts resent singly because a device refused segmentation
  std::uint64_t paths_refused = 0;  ///< open_path() calls that found no descriptor or port
};

/// What became of PacketIo::arm().
enum class Arm : std::uint8_t {
  armed,         ///< event_fd() becomes readable when something arrives: sleep
  work_pending,  ///< something is there already: poll
  unsupported,   ///< the device cannot wake anybody: poll, whatever it costs
};

/// Opens and closes ways through the network. The only calls the protocol core makes outwards; both
/// may cost a system call and happen on path changes only, never per datagram; answers to
/// strangers, one path each, are limited in rate.
class PathControl {
 public:
  virtual ~PathControl() = default;
  /// A path to `dest`; different `entropy` gives different paths as far as the device can, and
  /// kServiceEntropy the one that leaves by the endpoint's own port, where a device has ports.
  /// Errors: no_memory (sockets or table exhausted; the table limit is Capabilities-documented).
  virtual Result<PathId> open_path(DestId dest, std::uint32_t entropy) noexcept = 0;
  /// The reversed way of a datagram that proved genuine (PROTOCOL.md 7): answers leave from the
  /// local address and port it came to. Errors: no_memory, not_found (that local port is closed).
  virtual Result<PathId> open_return_path(const RxDatagram& datagram) noexcept = 0;
  /// Ends use for sending. Datagrams still arriving on it are received for at least one second.
  virtual void close_path(PathId path) noexcept = 0;
  /// Resolves at once; sends before a neighbour is known may be dropped. Errors: no_route,
  /// no_memory.
  virtual Result<DestId> resolve(const Address& to) noexcept = 0;
  /// Undoes one resolve(); the destination ends with the last of them.
  virtual void forget(DestId dest) noexcept = 0;
  /// Largest datagram the route to `dest` takes now, lower headers excluded.
  virtual std::uint32_t datagram_bytes(DestId dest) const noexcept = 0;
  /// Local and remote address of a path, for people to read.
  virtual bool describe_path(PathId path, Address& local, Address& remote) const noexcept = 0;
};

/// One queue of a device, used by one thread at a time. Never blocks; may drop, never corrupts or
/// invents. Order is kept per path.
class PacketIo : public PathControl {
 public:
  /// Fewer than out.size(): nothing else was waiting, or has been for less than 100 us (a device of
  /// many queues need not ask all of them each time). arm() always asks all.
  virtual std::size_t rx_burst(std::span<RxDatagram> out) noexcept = 0;
  /// Gives back one reference per entry; the memory may be received into again once all datagrams
  /// of a buffer are released. In any order; unknown ids are ignored.
  virtual void rx_release(std::span<const BufferId> buffers) noexcept = 0;
  /// Takes all of `in`. What could not be sent comes back through tx_done with its error, later
  /// ones of the same path in that call too. Runs of equal path and equal size (the last may be
  /// shorter) are sent as one unit where the device can.
  virtual void tx_burst(std::span<const TxDatagram> in) noexcept = 0;
  /// What became of datagrams with a cookie: every one with Capabilities::tx_async, else refused
  /// ones. Returns how many were written; out.size() of them: there may be more.
  virtual std::size_t tx_done(std::span<TxDone> out) noexcept = 0;
  /// What was learned about paths since the last call; returned as by tx_done(). Events are
  /// hints: what finds no room until somebody polls may be dropped.
  virtual std::size_t poll_path_events(std::span<PathEvent> out) noexcept = 0;
  /// Prepares to sleep on event_fd(). work_pending: poll again first. No wake-up is lost between.
  virtual Arm arm() noexcept = 0;
  virtual int event_fd() const noexcept = 0;  ///< pollable, -1 if none; owned by the PacketIo
  /// The address peers send to, with its real port; a wildcard stays one. Errors: not_found (the
  /// device cannot tell).
  virtual Result<Address> local_address() const noexcept = 0;
  /// Since the queue was opened. Called once per turn: a few loads.
  virtual IoCounters counters() const noexcept = 0;
  /// Share of the device's receive queue in use, 0..255, as far as it can tell cheaply.
  virtual std::uint8_t rx_fill() const noexcept = 0;
};

/// What Driver::open_queue needs.
struct QueueConfig {
  Address bind{};            ///< wildcard address and port 0 are allowed; family 0: the driver's
                             ///< default
  std::uint16_t paths = 32;  ///< source ports to spread over (UDP), at most paths_max; 0: the
                             ///< driver's default
  std::uint32_t rx_buffers = 0;  ///< 0: the driver's default
  std::uint64_t seed = 0;        ///< feeds entropy choices, so that simulations replay
};

/// Something a driver makes use of where the host has it, as srd-info lists it: one short word, by
/// the name people know it by ("gso", "ecn").
struct Feature {
  std::string name;
  bool present = false;
};

/// One device; control plane; any thread; may allocate. Outlives its queues.
class Driver {
 public:
  virtual ~Driver() = default;
  /// As in device strings, before the colon.
  virtual std::string name() const = 0;
  /// A few words for people: "UDP sockets".
  virtual std::string description() const = 0;
  /// Constant; O(1).
  virtual Capabilities capabilities() const noexcept = 0;
  /// Everything the driver can make use of, present or not, by what was probed.
  virtual std::vector<Feature> features() const = 0;
  /// A new queue. Errors: address_in_use, address_unavailable, not_permitted, too_many_files,
  /// no_memory, not_supported, invalid_argument (config); last_error() has the text. Milliseconds.
  virtual Result<std::unique_ptr<PacketIo>> open_queue(const QueueConfig& config) noexcept = 0;
  /// Makes memory known to the device, for Segment::region of what lies in it. kNoRegion: the
  /// device reaches all memory, and there is nothing to deregister. The memory must stay mapped
  /// until deregister_region(). Errors: no_memory (locked memory, table), not_permitted,
  /// invalid_argument.
  virtual Result<RegionKey> register_region(std::span<std::byte> memory) noexcept = 0;
  /// When nothing that refers to it is in flight any more. kNoRegion is ignored.
  virtual void deregister_region(RegionKey key) noexcept = 0;
  /// What this host lacks and how to fix it, a sentence each; empty if nothing. For srd-info.
  virtual std::vector<std::string> advice() const = 0;
  /// The same for what has gone wrong in a queue that counted this: only what somebody can mend.
  virtual std::vector<std::string> advice(const IoCounters& counted) const = 0;
  /// Text for the last failure of open_queue on this thread: what, and what to do about it.
  virtual std::string last_error() const = 0;
};

/// Source of `now`: monotonic in production, virtual in simulation.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Never decreases, for any thread. Called a few times per turn: tens of nanoseconds.
  virtual Instant now() noexcept = 0;
};

}  // namespace srd
