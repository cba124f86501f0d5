// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric.hpp"

#include <algorithm>
#include <cstring>

namespace srd::sim {
namespace {

TimeNs wire_ns(std::uint64_t bytes, std::uint64_t rate_bps) noexcept {
  return bytes * 8 * kSecond / rate_bps;
}

std::uint64_t hash_address(const Address& address, std::uint64_t hash) noexcept {
  std::uint64_t words[2];
  std::memcpy(words, address.bytes, sizeof words);
  for (const std::uint64_t word : {words[0], words[1], std::uint64_t{address.port}}) {
    std::uint64_t state = hash ^ word;
    hash = split_mix(state);
  }
  return hash;
}

}  // namespace

std::uint64_t Link::backlog_bytes(TimeNs now) const noexcept {
  if (busy_until_ <= now) return 0;
  return (busy_until_ - now) * (config.rate_bps / 8) / kSecond;
}

// Queue depth decides on drop and mark; time on the wire moves busy_until_.
bool Link::admit(Packet& packet, TimeNs at, std::uint32_t wire_bytes) noexcept {
  const std::uint64_t depth = backlog_bytes(at);
  if (depth + wire_bytes > config.queue_bytes) {
    ++counters.overflowed;
    return false;
  }
  if (config.ecn_bytes != 0 && depth > config.ecn_bytes && packet.ecn != Ecn::not_ect) {
    packet.ecn = Ecn::ce;
    ++counters.marked;
  }
  busy_until_ = std::max(busy_until_, at) + wire_ns(wire_bytes, config.rate_bps);
  return true;
}

void Link::damage(Train& train, const Packet& packet, Prng& prng) noexcept {
  const std::span<std::byte> bytes = train.bytes_of(packet);
  if (bytes.empty()) return;
  for (std::uint64_t flips = 1 + prng.below(3); flips > 0; --flips) {
    const std::uint64_t bit = prng.below(bytes.size() * 8);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  ++counters.corrupted;
}

void Link::carry(Train& train, std::uint32_t overhead_bytes, Prng& prng,
                 std::vector<Straggler>& apart) {
  if (config.dead) {
    counters.swallowed += train.packets.size();
    train.packets.clear();
    return;
  }
  if (config.whole_bursts && prng.chance(config.loss)) {
    counters.lost += train.packets.size();
    train.packets.clear();
    return;
  }
  const std::size_t count = train.packets.size();
  const TimeNs gap = count > 1 ? (train.tail - train.head) / (count - 1) : 0;
  const bool twice = config.whole_bursts && prng.chance(config.duplicate);
  TimeNs head = kNeverNs, tail = 0, at = train.head;
  std::size_t kept = 0;
  bool overflow = false;
  for (std::size_t i = 0; i < count; ++i, at += gap) {
    Packet packet = train.packets[i];
    const std::uint32_t wire_bytes = packet.bytes + overhead_bytes;
    if (!config.whole_bursts && prng.chance(config.loss)) {
      ++counters.lost;
      continue;
    }
    if (overflow || !admit(packet, at, wire_bytes)) {
      if (overflow) ++counters.overflowed;
      overflow = config.whole_bursts;  // the rest of the burst goes, too
      continue;
    }
    ++counters.datagrams;
    counters.bytes += wire_bytes;
    if (prng.chance(config.corrupt)) damage(train, packet, prng);
    const TimeNs out = busy_until_ + config.delay_ns;
    if (twice || (!config.whole_bursts && prng.chance(config.duplicate))) {
      apart.push_back({packet, out + prng.below(config.reorder_ns + 1)});
      ++counters.duplicated;
    }
    if (prng.chance(config.reorder)) {
      apart.push_back({packet, out + prng.below(config.reorder_ns + 1)});
      ++counters.reordered;
      continue;
    }
    head = std::min(head, out);
    tail = out;
    train.packets[kept++] = packet;
  }
  train.packets.resize(kept);
  train.head = kept > 0 ? head : 0;
  train.tail = tail;
}

Fabric::Fabric(const FabricConfig& config, Prng& prng) : config_(config) {
  links_.assign(std::size_t{2} * config.leaves * config.paths, Link(config.link));
  for (std::uint32_t leaf = 0; leaf < config.leaves; ++leaf) seeds_.push_back(prng.next());
}

void Fabric::add_host(std::uint32_t leaf, const LinkConfig& down_config) {
  access_.push_back(static_cast<std::uint32_t>(links_.size()));
  leaf_.push_back(leaf % config_.leaves);
  links_.emplace_back(down_config);
}

std::uint32_t Fabric::path_of(HostId from, const Address& source,
                              const Address& destination) const noexcept {
  const std::uint64_t hash = hash_address(destination, hash_address(source, seeds_[leaf_of(from)]));
  return static_cast<std::uint32_t>(hash % config_.paths);
}

void Fabric::route(Train& train) const {
  train.hop = train.hops = 0;
  const std::uint32_t to_leaf = leaf_of(train.to);
  if (train.from != kNoHost && leaf_of(train.from) != to_leaf) {
    const std::uint32_t path = path_of(train.from, train.source, train.destination);
    train.route[train.hops++] = up_index(leaf_of(train.from), path);
    train.route[train.hops++] = down_index(path, to_leaf);
  }
  train.route[train.hops++] = access_[index_of(train.to)];
}

void Fabric::set_path_dead(std::uint32_t path, bool dead) noexcept {
  change_path(path, [dead](LinkConfig& config) { config.dead = dead; });
}

LinkCounters Fabric::total() const noexcept {
  LinkCounters sum;
  for (const Link& link : links_) {
    sum.datagrams += link.counters.datagrams;
    sum.bytes += link.counters.bytes;
    sum.lost += link.counters.lost;
    sum.overflowed += link.counters.overflowed;
    sum.swallowed += link.counters.swallowed;
    sum.duplicated += link.counters.duplicated;
    sum.corrupted += link.counters.corrupted;
    sum.reordered += link.counters.reordered;
    sum.marked += link.counters.marked;
  }
  return sum;
}

}  // namespace srd::sim
