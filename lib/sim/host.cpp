// SPDX-License-Identifier: Apache-2.0
#include "sim/host.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/world.hpp"

namespace srd::sim {
namespace {

constexpr std::uint16_t kServicePort = 7000;
// Turns in a row, within kIdleSpan, without any datagram, event or send: more count as spinning.
constexpr std::uint32_t kIdleTurnsMax = 1'000;
constexpr TimeNs kIdleSpan = 10 * kMs;
__extension__ using Wide = unsigned __int128;

}  // namespace

// Passes the turn's CPU time on to the engine, and lets a gap fall between reading and the timers.
class Host::TurnClock final : public Clock {
 public:
  explicit TurnClock(Host& host) : host_(host) {}

  Instant now() noexcept override {
    if (host_.gap_in_turn_ns_ > 0 && !host_.io_->has_input()) {
      host_.charge(std::exchange(host_.gap_in_turn_ns_, 0));
    }
    const Instant now = host_.local_now();
    if (now < host_.latest_) host_.world_.fail("time runs backwards on " + host_.name());
    host_.latest_ = now;
    return now;
  }

 private:
  Host& host_;
};

Host::Host(World& world, HostId id, const HostConfig& config)
    : world_(world),
      id_(id),
      config_(config),
      prng_(world.prng().next()),
      app_(world, *this, config.app) {
  if (config_.name.empty()) config_.name = std::string("h").append(std::to_string(index_of(id)));
  address_.family = config_.family;
  address_.port = kServicePort;
  const std::uint32_t number = index_of(id) + 1;
  std::uint8_t* last = address_.bytes;
  if (config_.family == 6) {
    address_.bytes[0] = 0xfd;
    last = address_.bytes + 12;
  }
  last[0] = config_.family == 6 ? 0 : 10;
  last[2] = static_cast<std::uint8_t>(number >> 8);
  last[3] = static_cast<std::uint8_t>(number);
  public_address_ = address_;
  for (auto& byte : endpoint_id_) byte = static_cast<std::uint8_t>(prng_.next());
  clock_offset_ns_ = kSecond + prng_.below(300 * kSecond);
}

Host::~Host() = default;

void Host::start() {
  core::Config core;
  core.limits = config_.limits;
  core.timing = config_.timing;
  core.driver = SimIo::capabilities(config_.io, config_.kernel_path);
  core.seed = prng_.next();
  if (lives_ > 0 && !config_.stable_id) {
    for (auto& byte : endpoint_id_) byte = static_cast<std::uint8_t>(prng_.next());
  }
  core.endpoint_id = endpoint_id_;
  core.incarnation = prng_.next() | 1;
  core.full_check = config_.full_check;
  auto io = std::make_unique<SimIo>(world_, *this, config_.io, address_);
  io_ = io.get();
  auto engine = runtime::Engine::create(core, std::move(io));
  if (!engine) {
    io_ = nullptr;
    world_.fail(std::string("endpoint of ") + name() +
                " cannot be created: " + to_string(engine.errc()));
    return;
  }
  engine_ = std::move(*engine);
  ++lives_;
  idle_turns_ = 0;
  busy_until_ = std::max(busy_until_, world_.now());
  if (next_gap_ == kNeverNs) plan_gap(world_.now());
  wake(world_.now());
}

void Host::drop_endpoint() {
  world_.checker().handle_endpoint_loss(id_, world_.now());
  app_.handle_endpoint_loss();
  engine_.reset();
  io_ = nullptr;
  in_flight_.clear();
  next_turn_ = kNeverNs;
}

void Host::crash() {
  if (alive()) drop_endpoint();
}

void Host::close() {
  if (!alive()) return;
  turn_start_ = std::max(world_.now(), busy_until_);
  spent_ns_ = 0;
  engine_->close(local_now());
  busy_until_ = busy_time();
  drop_endpoint();
}

void Host::suspend(TimeNs until) {
  suspended_until_ = std::max(suspended_until_, until);
  if (next_turn_ != kNeverNs) wake(suspended_until_);
}

// Gaps come at random distances of the configured mean; each plans the next.
void Host::plan_gap(TimeNs now) {
  if (config_.gaps.per_second <= 0) {
    next_gap_ = kNeverNs;
    return;
  }
  const double mean = static_cast<double>(kSecond) / config_.gaps.per_second;
  next_gap_ = now + prng_.below(static_cast<TimeNs>(2 * mean)) + 1;
}

void Host::wake(TimeNs at) {
  if (!alive()) return;
  at = std::max({at, busy_until_, suspended_until_});
  if (at >= next_turn_ && next_turn_ >= suspended_until_) return;
  next_turn_ = at;
  world_.schedule_turn(at, id_);
}

void Host::handle_input() {
  const bool asleep = busy_until_ + config_.cpu.wake_ns < world_.now();
  wake(world_.now() + (asleep ? config_.cpu.wake_ns : 0));
}

void Host::run_turn(TimeNs now) {
  if (!alive() || next_turn_ != now) return;  // superseded
  if (now < suspended_until_) return wake(suspended_until_);
  if (now >= next_gap_) {
    const TimeNs length =
        config_.gaps.min_ns + prng_.below(config_.gaps.max_ns - config_.gaps.min_ns + 1);
    plan_gap(now + length);
    if (prng_.chance(config_.gaps.in_turn)) {
      gap_in_turn_ns_ = length;
    } else {
      next_turn_ = kNeverNs;
      suspended_until_ = now + length;
      return wake(suspended_until_);
    }
  }
  next_turn_ = kNeverNs;
  turn_start_ = now;
  spent_ns_ = 0;
  charge(config_.cpu.turn_ns);
  ++turns_;
  const IoCounters before = io_->counters();
  TurnClock clock(*this);
  const bool worked = engine_->turn(clock);
  check_limits();
  const bool acted = app_.turn();
  const IoCounters& after = io_->counters();
  busy_until_ = busy_time();
  watch_for_spin(acted || after.rx_datagrams != before.rx_datagrams ||
                 after.tx_datagrams != before.tx_datagrams);
  next_turn_ = kNeverNs;  // what asked for a turn meanwhile did not know how long this one lasts
  plan_next_turn(worked || acted);
}

void Host::plan_next_turn(bool worked) {
  const core::Core& core = engine_->core();
  if (worked || io_->has_input() || core.has_transmit() ||
      (app_.config.reads && core.has_events())) {
    return wake(busy_until_);
  }
  const Instant deadline = core.next_deadline();
  const TimeNs at = std::min(deadline == kNever ? kNeverNs : to_world(deadline), app_.next_at());
  if (at != kNeverNs) wake(std::max(at, busy_until_));
}

void Host::check_limits() {
  const core::Counters& counters = engine_->core().counters();
  const auto expect_within = [this](std::uint64_t value, std::uint64_t limit, const char* what) {
    if (value <= limit) return;
    world_.fail(name() + ": " + std::to_string(value) + " " + what + ", the limit is " +
                std::to_string(limit));
  };
  expect_within(counters.receive_pool_used_bytes.value(), config_.limits.receive_pool_bytes,
                "bytes of the receive pool in use");
  expect_within(counters.sends_active.value(), config_.limits.send_messages, "sends active");
  expect_within(counters.peers_active.value(), config_.limits.peers, "peers active");
  expect_within(io_->loaned_buffers(), io_->config().rx_buffers, "receive buffers on loan");
  for (const auto& [to, peer] : app_.peers()) {
    srd_peer_info info{};
    info.struct_bytes = sizeof info;
    if (!engine_->core().peer_info(peer, info)) continue;
    // A window that was cut leaves more in flight than it has room for, but nothing is added. One
    // datagram may always be out, and a tail probe.
    std::uint64_t& before = in_flight_[to];
    expect_within(info.in_flight_bytes,
                  std::max(info.window_bytes, before) + std::uint64_t{2} * info.datagram_bytes,
                  "bytes in flight to one peer");
    before = info.in_flight_bytes;
  }
}

void Host::watch_for_spin(bool moved) {
  if (moved || turn_start_ > idle_since_ + kIdleSpan) {
    idle_turns_ = 0;
    idle_since_ = turn_start_;
    return;
  }
  if (++idle_turns_ != kIdleTurnsMax) return;
  const core::Core& core = engine_->core();
  const Instant local = to_local(busy_until_);
  world_.fail("livelock: " + name() + " takes turn after turn in which nothing moves; deadline " +
              (core.next_deadline() <= local ? "stays due" : "is in the future") +
              ", has_transmit " + (core.has_transmit() ? "true" : "false") + ", has_events " +
              (core.has_events() ? "true" : "false"));
}

TimeNs Host::busy_time() const noexcept {
  return std::max(turn_start_ + spent_ns_, world_.now());
}

Instant Host::to_local(TimeNs at) const noexcept {
  const Wide rate = Wide{1'000'000} + static_cast<Wide>(config_.clock_ppm);
  return {clock_offset_ns_ + static_cast<TimeNs>(Wide{at} * rate / 1'000'000)};
}

TimeNs Host::to_world(Instant at) const noexcept {
  if (at.ns <= clock_offset_ns_) return 0;
  const Wide rate = Wide{1'000'000} + static_cast<Wide>(config_.clock_ppm);
  TimeNs guess = static_cast<TimeNs>(Wide{at.ns - clock_offset_ns_} * 1'000'000 / rate);
  while (to_local(guess) < at) ++guess;
  return guess;
}

}  // namespace srd::sim
