// SPDX-License-Identifier: Apache-2.0
// A simulated world: hosts, the fabric between them, faults, and virtual time. One thread, one
// seed: the same seed and the same code give the same run, event for event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "sim/checker.hpp"
#include "sim/event_queue.hpp"
#include "sim/fabric.hpp"
#include "sim/host.hpp"
#include "sim/pcap.hpp"
#include "sim/tap.hpp"
#include "sim/train.hpp"

namespace srd::sim {

class World {
 public:
  explicit World(std::uint64_t seed, const FabricConfig& fabric = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // --- building ---
  /// Adds a host with a running endpoint.
  HostId add_host(const HostConfig& config = {});

  [[nodiscard]] Host& host(HostId id) { return *hosts_[index_of(id)]; }

  [[nodiscard]] std::size_t host_count() const noexcept { return hosts_.size(); }

  /// An address in front of several hosts: each 5-tuple reaches one of them, chosen by hash. The
  /// hosts answer from that address and share one endpoint id, like processes behind a layer-4
  /// balancer.
  Address add_balancer(std::vector<HostId> hosts);

  /// Sends through the host's application.
  MessageNumber send(HostId from, const SendSpec& spec) { return host(from).app().send(spec); }

  // --- time ---
  [[nodiscard]] TimeNs now() const noexcept { return now_; }

  void at(TimeNs time, std::function<void()> action);

  void after(TimeNs delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

  void run_for(TimeNs span) { run_to(now_ + span); }

  /// Until `done()` or the time limit; false: the limit came first (or a failure stopped the
  /// world).
  bool run_until(const std::function<bool()>& done, TimeNs limit_ns);
  /// Until every message is completed and every core has nothing outstanding.
  bool run_until_settled(TimeNs limit_ns);
  /// A world with this many failures stops.
  static constexpr std::uint64_t kFailuresMax = 50;

  // --- faults (those that may fail messages excuse what they justify) ---
  [[nodiscard]] Fabric& fabric() noexcept { return fabric_; }

  void restart(HostId id);
  /// The process dies and stays away until start().
  void crash(HostId id);
  void close(HostId id);

  void start(HostId id) { host(id).start(); }

  void suspend(HostId id, TimeNs span) { host(id).suspend(now_ + span); }

  /// Completions of messages to or from `id` (kNoHost: all) may report a lost peer from now on.
  void excuse_outage(HostId id = kNoHost);
  /// From now on the host sits behind a NAT; inbound datagrams to unmapped ports vanish.
  void add_nat(HostId id, TimeNs idle_timeout_ns);
  /// The NAT forgets all its mappings: the host's source ports change mid-flow.
  void rebind_nat(HostId id);
  /// An ICMP error about a datagram from `id` to `remote`, quoting `quoted`.
  void inject_icmp(HostId id, PathEvent::Kind kind, std::uint16_t local_port, const Address& remote,
                   std::span<const std::byte> quoted);

  // --- taps ---
  /// The rule acts from now on; the reference stays valid as long as the world.
  Rule& add_rule(Rule rule);
  Rule& drop_next(const Match& match, std::uint64_t count = 1);
  Rule& record_next(const Match& match, std::uint64_t count = 1);
  /// Puts a packet on the wire toward `destination`, entering at the leaf of its receiver.
  void inject(const Address& source, const Address& destination, std::span<const std::byte> bytes,
              TimeNs delay_ns = 0);

  void replay(const RecordedPacket& packet, TimeNs delay_ns = 0) {
    inject(packet.source, packet.destination, packet.bytes, delay_ns);
  }

  // --- judging ---
  [[nodiscard]] Checker& checker() noexcept { return checker_; }

  void fail(const std::string& text) { checker_.fail(now_, text); }

  /// Runs quietly for a while, then checks what must hold when all is over: every message judged,
  /// no receive memory in use, no buffer on loan, no traffic between idle hosts.
  void finish();

  /// Hash of every datagram and event so far.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_hash_; }

  [[nodiscard]] std::uint64_t datagrams() const noexcept { return datagrams_; }

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  bool write_pcap(const std::string& file) { return pcap_.open(file); }

  /// Prints each datagram and application event as one line to standard error.
  void set_verbose(bool verbose) noexcept { verbose_ = verbose; }

  // --- for hosts and their drivers ---
  [[nodiscard]] Prng& prng() noexcept { return prng_; }

  [[nodiscard]] TrainPool& trains() noexcept { return trains_; }

  std::uint64_t next_io_epoch() noexcept { return ++io_epochs_; }

  void schedule_turn(TimeNs at, HostId id) {
    queue_.push(at, WorldEvent::Kind::host_turn, index_of(id));
  }

  void schedule_departure(std::uint32_t train, TimeNs at) {
    queue_.push(at, WorldEvent::Kind::departure, train);
  }

  /// A loaded train leaves its host: translation, taps, trace, then the fabric.
  void launch(std::uint32_t train);
  void note_event(HostId id, const core::Event& event);

 private:
  struct Nat {
    struct Mapping {
      std::uint16_t inside = 0;
      TimeNs used_at = 0;
    };

    TimeNs idle_timeout_ns = 0;
    std::uint16_t next_port = 20'000;
    std::map<std::uint16_t, std::uint16_t> outside_of;  // inside port -> outside port
    std::map<std::uint16_t, Mapping> mappings;          // by outside port
  };

  void run_to(TimeNs time);
  void dispatch(const WorldEvent& event);
  void depart(std::uint32_t train);
  void advance(std::uint32_t train);
  void deliver(std::uint32_t train);
  void refuse(const Train& train);
  [[nodiscard]] HostId receiver_of(const Train& train) const noexcept;
  bool translate_out(Train& train);
  bool translate_in(Train& train);
  void apply_rules(Train& train);
  bool apply_rules_to(Train& train, const Packet& packet);
  void spawn(const Train& parent, const Packet& packet, TimeNs at);
  void trace(const Train& train);
  void mix(std::uint64_t value) noexcept;
  void check_idle(Host& host);

  Prng prng_;
  Checker checker_;
  Fabric fabric_;
  EventQueue queue_;
  TrainPool trains_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::function<void()>> scripts_;
  std::vector<std::unique_ptr<Rule>> rules_;
  std::map<std::uint32_t, Nat> nats_;  // by host

  struct Balancer {
    Address address;
    std::vector<HostId> hosts;
    std::uint64_t seed;
  };

  std::vector<Balancer> balancers_;
  std::vector<Straggler> apart_;
  PcapWriter pcap_;
  TimeNs now_ = 0;
  std::uint64_t io_epochs_ = 0, trace_hash_ = 0, datagrams_ = 0, events_ = 0;
  bool verbose_ = false;
};

}  // namespace srd::sim
