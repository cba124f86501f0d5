// SPDX-License-Identifier: Apache-2.0
#include "sim/world.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace srd::sim {
namespace {

constexpr TimeNs kQuietSpan = 4 * kSecond;  // after the last message: drain, hibernate
constexpr TimeNs kIdleSpan = 2 * kSecond;   // then nothing may be said any more, or hardly anything
constexpr std::uint64_t kIdleDatagramsMax = 64;  // per host in kIdleSpan

bool same_host(const Address& a, const Address& b) noexcept {
  return a.family == b.family && std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

}  // namespace

World::World(std::uint64_t seed, const FabricConfig& fabric)
    : prng_(seed), checker_(prng_.next()), fabric_(fabric, prng_) {}

World::~World() = default;

// --- building
// --------------------------------------------------------------------------------------

HostId World::add_host(const HostConfig& config) {
  const HostId id{static_cast<std::uint32_t>(hosts_.size())};
  fabric_.add_host(config.leaf == UINT32_MAX ? index_of(id) : config.leaf, config.access);
  hosts_.push_back(std::make_unique<Host>(*this, id, config));
  host(id).start();
  return id;
}

Address World::add_balancer(std::vector<HostId> hosts) {
  Address address = host(hosts.front()).address();
  address.bytes[address.family == 6 ? 13 : 1] = 99;
  address.bytes[address.family == 6 ? 15 : 3] = static_cast<std::uint8_t>(balancers_.size() + 1);
  for (const HostId id : hosts) {
    host(id).set_public_address(address);
    host(id).set_endpoint_id(host(hosts.front()).endpoint_id());
    host(id).restart();
  }
  balancers_.push_back({address, std::move(hosts), prng_.next()});
  return address;
}

// --- time
// ------------------------------------------------------------------------------------------

void World::at(TimeNs time, std::function<void()> action) {
  scripts_.push_back(std::move(action));
  queue_.push(std::max(time, now_), WorldEvent::Kind::script,
              static_cast<std::uint32_t>(scripts_.size() - 1));
}

void World::run_to(TimeNs time) {
  run_until([] { return false; }, time - now_);
}

bool World::run_until(const std::function<bool()>& done, TimeNs limit_ns) {
  const TimeNs limit = now_ + limit_ns;
  while (!done()) {
    if (queue_.next_at() > limit || checker_.failure_count() >= kFailuresMax) {
      now_ = std::max(now_, limit);
      return false;
    }
    const WorldEvent event = queue_.pop();
    now_ = std::max(now_, event.at);
    dispatch(event);
  }
  return true;
}

bool World::run_until_settled(TimeNs limit_ns) {
  return run_until(
      [this] {
        if (!checker_.all_done()) return false;
        return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
          return !host->alive() || host->core().counters().sends_active.value() == 0;
        });
      },
      limit_ns);
}

void World::dispatch(const WorldEvent& event) {
  ++events_;
  switch (event.kind) {
    case WorldEvent::Kind::host_turn:
      hosts_[event.index]->run_turn(event.at);
      break;
    case WorldEvent::Kind::train:
      advance(event.index);
      break;
    case WorldEvent::Kind::departure:
      depart(event.index);
      break;
    case WorldEvent::Kind::script:
      std::exchange(scripts_[event.index], nullptr)();
      break;
  }
}

// --- faults
// ----------------------------------------------------------------------------------------

void World::restart(HostId id) {
  crash(id);
  start(id);
}

// A restart may also look like a lost peer or a lost context to those who notice it late.
void World::crash(HostId id) {
  for (const Errc status :
       {Errc::peer_restarted, Errc::peer_unreachable, Errc::timed_out, Errc::context_lost}) {
    checker_.excuse({status, id, false, now_, kNeverNs});
  }
  host(id).crash();
}

void World::close(HostId id) {
  for (const Errc status : {Errc::peer_closed, Errc::peer_restarted, Errc::peer_unreachable,
                            Errc::timed_out, Errc::context_lost}) {
    checker_.excuse({status, id, false, now_, kNeverNs});
  }
  host(id).close();
}

void World::excuse_outage(HostId id) {
  for (const Errc status : {Errc::peer_unreachable, Errc::timed_out, Errc::context_lost}) {
    checker_.excuse({status, id, true, now_, kNeverNs});
  }
}

void World::add_nat(HostId id, TimeNs idle_timeout_ns) {
  nats_[index_of(id)].idle_timeout_ns = idle_timeout_ns;
}

void World::rebind_nat(HostId id) {
  Nat& nat = nats_[index_of(id)];
  nat.outside_of.clear();
  nat.mappings.clear();
}

bool World::translate_out(Train& train) {
  if (train.from == kNoHost) return true;
  const Host& host = *hosts_[index_of(train.from)];
  const std::uint16_t port = train.source.port;
  train.source = host.public_address();
  train.source.port = port;
  const auto found = nats_.find(index_of(train.from));
  if (found == nats_.end()) return true;
  Nat& nat = found->second;
  const auto known = nat.outside_of.find(port);
  std::uint16_t outside = 0;
  if (known != nat.outside_of.end() &&
      nat.mappings[known->second].used_at + nat.idle_timeout_ns > now_) {
    outside = known->second;
  } else {
    outside = nat.next_port++;
    nat.outside_of[port] = outside;
  }
  nat.mappings[outside] = {port, now_};
  train.source.port = outside;
  return true;
}

bool World::translate_in(Train& train) {
  const auto found = nats_.find(index_of(train.to));
  if (found == nats_.end()) return true;
  Nat& nat = found->second;
  const auto mapping = nat.mappings.find(train.destination.port);
  if (mapping == nat.mappings.end() || mapping->second.used_at + nat.idle_timeout_ns <= now_) {
    return false;
  }
  mapping->second.used_at = now_;
  train.destination.port = mapping->second.inside;
  return true;
}

HostId World::receiver_of(const Train& train) const noexcept {
  for (const Balancer& balancer : balancers_) {
    if (!same_host(balancer.address, train.destination)) continue;
    std::uint64_t state = balancer.seed ^ train.source.port;
    std::memcpy(&state, train.source.bytes, sizeof(std::uint32_t));
    state ^= balancer.seed + (std::uint64_t{train.source.port} << 32 | train.destination.port);
    return balancer.hosts[split_mix(state) % balancer.hosts.size()];
  }
  const std::uint8_t* last = train.destination.bytes + (train.destination.family == 6 ? 12 : 0);
  const std::size_t number = static_cast<std::size_t>(last[2] << 8 | last[3]);  // as Host sets it
  if (number >= 1 && number <= hosts_.size() &&
      same_host(hosts_[number - 1]->address(), train.destination)) {
    return hosts_[number - 1]->id();
  }
  return kNoHost;
}

// --- a train's way
// ---------------------------------------------------------------------------------

void World::depart(std::uint32_t index) {
  Train& train = trains_[index];
  Host& sender = *hosts_[index_of(train.from)];
  if (!sender.alive() || sender.io().epoch() != train.io_epoch) return trains_.give_back(index);
  sender.io().handle_departure(train);
  sender.handle_input();
  launch(index);
}

void World::launch(std::uint32_t index) {
  Train& train = trains_[index];
  translate_out(train);
  train.to = receiver_of(train);
  trace(train);
  if (train.to == kNoHost) return trains_.give_back(index);
  if (!rules_.empty()) apply_rules(train);
  if (train.packets.empty()) return trains_.give_back(index);
  fabric_.route(train);
  queue_.push(std::max(train.head, now_), WorldEvent::Kind::train, index);
}

// Head of the train reaches the next link, or its end the host.
void World::advance(std::uint32_t index) {
  Train& train = trains_[index];
  if (train.hop == train.hops) return deliver(index);
  apart_.clear();
  train.head = std::max(train.head, now_);
  train.tail = std::max(train.tail, train.head);
  fabric_.link(train.route[train.hop]).carry(train, fabric_.config().overhead_bytes, prng_, apart_);
  ++train.hop;
  const bool last = train.hop == train.hops;
  for (const Straggler& straggler : apart_) spawn(train, straggler.packet, straggler.at);
  if (train.packets.empty()) return trains_.give_back(index);
  queue_.push(last ? train.tail : train.head, WorldEvent::Kind::train, index);
}

// One packet goes on alone from where its train is.
void World::spawn(const Train& parent, const Packet& packet, TimeNs at) {
  const std::uint32_t index = trains_.take();
  Train& train = trains_[index];
  train.source = parent.source;
  train.destination = parent.destination;
  train.from = parent.from;
  train.to = parent.to;
  train.io_epoch = parent.io_epoch;
  train.route = parent.route;
  train.hop = parent.hop;
  train.hops = parent.hops;
  train.head = train.tail = at;
  const auto first = parent.memory.begin() + packet.offset;
  train.memory.assign(first, first + packet.bytes);
  train.packets.push_back({0, packet.bytes, packet.ecn});
  queue_.push(std::max(at, now_), WorldEvent::Kind::train, index);
}

void World::deliver(std::uint32_t index) {
  Train& train = trains_[index];
  Host& host = *hosts_[index_of(train.to)];
  if (translate_in(train)) {
    if (host.alive() && host.io().handle_arrival(train)) {
      host.handle_input();
    } else {
      refuse(train);
    }
  }
  trains_.give_back(index);
}

// The host is up but nobody listens on that port.
void World::refuse(const Train& train) {
  if (!fabric_.config().icmp || train.from == kNoHost) return;
  const std::span<const std::byte> memory(train.memory);
  const Packet& first = train.packets.front();
  const std::size_t quoted = std::min<std::size_t>(first.bytes, 32);
  std::vector<std::byte> copy(memory.begin() + first.offset,
                              memory.begin() + first.offset + static_cast<std::ptrdiff_t>(quoted));
  after(50 * kUs, [this, from = train.from, epoch = train.io_epoch, source = train.source,
                   destination = train.destination, copy = std::move(copy)] {
    Host& sender = host(from);
    if (!sender.alive() || sender.io().epoch() != epoch) return;
    std::uint16_t port = source.port;
    const auto nat = nats_.find(index_of(from));
    if (nat != nats_.end()) {
      const auto mapping = nat->second.mappings.find(port);
      if (mapping == nat->second.mappings.end()) return;
      port = mapping->second.inside;
    }
    inject_icmp(from, PathEvent::Kind::refused, port, destination, copy);
  });
}

void World::inject_icmp(HostId id, PathEvent::Kind kind, std::uint16_t local_port,
                        const Address& remote, std::span<const std::byte> quoted) {
  if (!host(id).alive()) return;
  host(id).io().handle_icmp(kind, local_port, remote, quoted);
  host(id).handle_input();
}

// --- taps
// ------------------------------------------------------------------------------------------

Rule& World::add_rule(Rule rule) {
  rules_.push_back(std::make_unique<Rule>(std::move(rule)));
  return *rules_.back();
}

Rule& World::drop_next(const Match& match, std::uint64_t count) {
  Rule rule;
  rule.match = match;
  rule.remaining = count;
  rule.drop = true;
  return add_rule(std::move(rule));
}

Rule& World::record_next(const Match& match, std::uint64_t count) {
  Rule rule;
  rule.match = match;
  rule.remaining = count;
  rule.record = true;
  return add_rule(std::move(rule));
}

void World::apply_rules(Train& train) {
  fabric_.route(train);  // copies and delayed packets leave the train here
  std::size_t kept = 0;
  for (std::size_t i = 0; i < train.packets.size(); ++i) {
    const Packet packet = train.packets[i];
    if (apply_rules_to(train, packet)) train.packets[kept++] = packet;
  }
  train.packets.resize(kept);
}

// Returns whether the packet stays in its train.
bool World::apply_rules_to(Train& train, const Packet& packet) {
  PacketView view{now_,         train.from,        train.to,
                  train.source, train.destination, train.bytes_of(packet)};
  bool stays = true;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    Rule& rule = *rules_[i];
    if (rule.remaining == 0 || !rule.match(view)) continue;
    --rule.remaining;
    ++rule.hits;
    if (rule.record) {
      rule.recorded.push_back({now_,
                               train.from,
                               train.to,
                               train.source,
                               train.destination,
                               {view.bytes.begin(), view.bytes.end()}});
    }
    if (rule.change) rule.change(view);
    for (unsigned copy = 1; copy <= rule.copies; ++copy) {
      spawn(train, packet, train.head + copy * rule.copy_spacing_ns);
    }
    if (rule.drop) return false;
    if (rule.delay_ns > 0) {
      spawn(train, packet, train.head + rule.delay_ns);
      stays = false;
    }
  }
  return stays;
}

void World::inject(const Address& source, const Address& destination,
                   std::span<const std::byte> bytes, TimeNs delay_ns) {
  const std::uint32_t index = trains_.take();
  Train& train = trains_[index];
  train.source = source;
  train.destination = destination;
  train.to = receiver_of(train);
  if (train.to == kNoHost) return trains_.give_back(index);
  train.memory.assign(bytes.begin(), bytes.end());
  train.packets.push_back({0, static_cast<std::uint32_t>(bytes.size()), Ecn::not_ect});
  train.head = train.tail = now_ + delay_ns;
  fabric_.route(train);
  queue_.push(train.head, WorldEvent::Kind::train, index);
}

// --- judging
// ---------------------------------------------------------------------------------------

void World::mix(std::uint64_t value) noexcept {
  std::uint64_t state = trace_hash_ ^ value;
  trace_hash_ = split_mix(state);
}

void World::trace(const Train& train) {
  mix(train.head);
  mix(std::uint64_t{train.source.port} << 32 | train.destination.port);
  for (const Packet& packet : train.packets) {
    ++datagrams_;
    const std::span<const std::byte> bytes =
        std::span<const std::byte>(train.memory).subspan(packet.offset, packet.bytes);
    mix(packet.bytes);
    for (std::size_t i = 0; i + 8 <= bytes.size() && i < 64; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      mix(word);
    }
    if (pcap_.is_open()) {
      pcap_.write(train.head, train.source, train.destination, packet.ecn, bytes);
    }
    if (verbose_) {
      std::fprintf(stderr, "%10" PRIu64 ".%03" PRIu64 " us h%d:%u > h%d:%u %s\n", train.head / kUs,
                   train.head % kUs, static_cast<int>(train.from), train.source.port,
                   static_cast<int>(train.to), train.destination.port,
                   wire::to_string(bytes).c_str());
    }
  }
}

void World::note_event(HostId id, const core::Event& event) {
  mix(now_ ^ std::uint64_t{index_of(id)} << 56);
  mix(event.user_data ^ event.bytes << 8 ^ static_cast<std::uint64_t>(event.kind));
  mix(static_cast<std::uint64_t>(event.status));
  if (!verbose_) return;
  static constexpr const char* kNames[] = {"message", "send_done", "peer"};
  std::fprintf(stderr,
               "%10" PRIu64 ".%03" PRIu64 " us h%" PRIu32 " event %s user_data %" PRIu64
               " bytes %" PRIu64 " status %s\n",
               now_ / kUs, now_ % kUs, index_of(id), kNames[static_cast<std::size_t>(event.kind)],
               event.user_data, event.bytes, to_string(event.status));
}

void World::finish() {
  for (const auto& host : hosts_) {
    host->app().config.reads = host->app().config.releases = true;
    host->wake(now_);
  }
  run_for(kQuietSpan);
  checker_.finish(now_);
  std::vector<std::uint64_t> sent;
  for (const auto& host : hosts_)
    sent.push_back(host->alive() ? host->io().counters().tx_datagrams : 0);
  run_for(kIdleSpan);
  for (const auto& host : hosts_) {
    if (!host->alive()) continue;
    check_idle(*host);
    const std::uint64_t idle_datagrams =
        host->io().counters().tx_datagrams - sent[index_of(host->id())];
    if (idle_datagrams > kIdleDatagramsMax) {
      fail(host->name() + " sent " + std::to_string(idle_datagrams) + " datagrams in " +
           std::to_string(kIdleSpan / kMs) + " idle ms");
    }
  }
}

void World::check_idle(Host& host) {
  const core::Counters& counters = host.core().counters();
  const auto expect_zero = [&](std::uint64_t value, const char* what) {
    if (value != 0) fail(host.name() + ": " + std::to_string(value) + " " + what + " when idle");
  };
  expect_zero(host.app().on_loan(), "messages on loan");
  expect_zero(host.app().queued(), "messages queued in the application");
  expect_zero(counters.sends_active.value(), "sends active");
  expect_zero(counters.receive_pool_used_bytes.value(), "bytes of the receive pool in use");
  expect_zero(host.io().loaned_buffers(), "receive buffers on loan");
  expect_zero(host.io().unsent_trains(), "trains not sent");
}

}  // namespace srd::sim
