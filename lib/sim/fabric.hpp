// SPDX-License-Identifier: Apache-2.0
// The network between hosts: a two-tier leaf-spine (two leaves: a dumbbell) with ECMP. A spine is a
// path. What a link does to datagrams is decided here; where events go is the world's business.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.hpp"
#include "sim/train.hpp"

namespace srd::sim {

struct LinkConfig {
  std::uint64_t rate_bps = 10'000'000'000;
  TimeNs delay_ns = 5 * kUs;
  std::uint64_t queue_bytes = 1U << 20;  ///< drop-tail
  std::uint64_t ecn_bytes = 0;           ///< marks ECT datagrams above this depth; 0: never
  double loss = 0;                       ///< share of datagrams (or bursts) lost
  double duplicate = 0;
  double corrupt = 0;  ///< one to three bits flip
  double reorder = 0;  ///< delayed by up to reorder_ns on top
  TimeNs reorder_ns = 0;
  bool whole_bursts = false;  ///< loss, overflow and duplication hit GSO bursts as units
  bool dead = false;          ///< silent black hole
};

struct LinkCounters {
  std::uint64_t datagrams = 0, bytes = 0;                 ///< that left the link
  std::uint64_t lost = 0, overflowed = 0, swallowed = 0;  ///< by chance, full queue, dead link
  std::uint64_t duplicated = 0, corrupted = 0, reordered = 0, marked = 0;

  [[nodiscard]] std::uint64_t dropped() const noexcept { return lost + overflowed + swallowed; }
};

/// A datagram that leaves its train on a link: a copy, or a straggler.
struct Straggler {
  Packet packet;  ///< memory is that of the train it left
  TimeNs at = 0;  ///< when it reaches the next hop
};

class Link {
 public:
  explicit Link(const LinkConfig& settings) : config(settings) {}

  /// Moves `train` to the next hop: sets head and tail, removes what was dropped (perhaps all),
  /// damages bytes, appends copies and delayed datagrams to `apart`. `overhead_bytes` of lower
  /// headers are added to each datagram on the wire. O(datagrams).
  void carry(Train& train, std::uint32_t overhead_bytes, Prng& prng, std::vector<Straggler>& apart);

  /// Bytes queued at `now`.
  [[nodiscard]] std::uint64_t backlog_bytes(TimeNs now) const noexcept;

  LinkConfig config;  ///< may change at any time; a new rate holds from the next datagram on
  LinkCounters counters;

 private:
  bool admit(Packet& packet, TimeNs at, std::uint32_t wire_bytes) noexcept;
  void damage(Train& train, const Packet& packet, Prng& prng) noexcept;

  TimeNs busy_until_ = 0;
};

struct FabricConfig {
  std::uint32_t leaves = 2;
  std::uint32_t paths = 4;            ///< spines
  LinkConfig link{};                  ///< each leaf-spine and spine-leaf link
  std::uint32_t overhead_bytes = 66;  ///< Ethernet with preamble and gap, IPv4, UDP
  bool icmp = true;                   ///< closed ports answer with port unreachable
};

class Fabric {
 public:
  Fabric(const FabricConfig& config, Prng& prng);

  /// Adds the links between a host and its leaf. The uplink belongs to the host's SimIo.
  void add_host(std::uint32_t leaf, const LinkConfig& down);

  /// Fills in the links from `train.from` (or, injected, from the leaf of `train.to`) to
  /// `train.to`.
  void route(Train& train) const;

  /// Path a 5-tuple takes when it leaves the leaf of `from`. Both directions are independent.
  [[nodiscard]] std::uint32_t path_of(HostId from, const Address& source,
                                      const Address& destination) const noexcept;

  [[nodiscard]] Link& link(std::uint32_t index) noexcept { return links_[index]; }

  [[nodiscard]] Link& up(std::uint32_t leaf, std::uint32_t path) noexcept {
    return links_[up_index(leaf, path)];
  }

  [[nodiscard]] Link& down(std::uint32_t path, std::uint32_t leaf) noexcept {
    return links_[down_index(path, leaf)];
  }

  /// From its leaf to the host.
  [[nodiscard]] Link& access(HostId host) noexcept { return links_[access_[index_of(host)]]; }

  [[nodiscard]] std::uint32_t leaf_of(HostId host) const noexcept { return leaf_[index_of(host)]; }

  /// Silent death or revival of a spine, both ways.
  void set_path_dead(std::uint32_t path, bool dead) noexcept;

  /// Only what leaves `leaf` over `path`.
  void set_uplink_dead(std::uint32_t leaf, std::uint32_t path, bool dead) noexcept {
    up(leaf, path).config.dead = dead;
  }

  /// Applies `change` to the config of every leaf-spine and spine-leaf link of `path`.
  template <class Change>
  void change_path(std::uint32_t path, Change change) {
    for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf) {
      change(up(leaf, path).config);
      change(down(path, leaf).config);
    }
  }

  template <class Change>
  void change_all(Change change) {
    for (std::uint32_t path = 0; path < config_.paths; ++path) change_path(path, change);
  }

  [[nodiscard]] const FabricConfig& config() const noexcept { return config_; }

  [[nodiscard]] std::vector<Link>& links() noexcept { return links_; }

  /// Sum over all links.
  [[nodiscard]] LinkCounters total() const noexcept;

 private:
  [[nodiscard]] std::uint32_t up_index(std::uint32_t leaf, std::uint32_t path) const noexcept {
    return leaf * config_.paths + path;
  }

  [[nodiscard]] std::uint32_t down_index(std::uint32_t path, std::uint32_t leaf) const noexcept {
    return config_.leaves * config_.paths + path * config_.leaves + leaf;
  }

  FabricConfig config_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> access_;  // by host
  std::vector<std::uint32_t> leaf_;    // by host
  std::vector<std::uint64_t> seeds_;   // by leaf
};

}  // namespace srd::sim
