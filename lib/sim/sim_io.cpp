// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_io.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/host.hpp"
#include "sim/world.hpp"

namespace srd::sim {
namespace {

constexpr std::uint16_t kFirstEphemeralPort = 49'152;
constexpr TimeNs kPortDrain = kSecond;
constexpr std::size_t kPathsMax = 100'000;
// What a released receive buffer is filled with, so that a late reader fails its content check.
constexpr std::byte kPoison{0xdd};

std::uint32_t index_of(PathId path) noexcept {
  return static_cast<std::uint32_t>(path);
}

}  // namespace

SimIo::SimIo(World& world, Host& host, const IoConfig& config, const Address& local)
    : world_(world),
      host_(host),
      config_(config),
      datagram_bytes_max_(config.datagram_bytes),
      local_(local),
      epoch_(world.next_io_epoch()),
      prng_(world.prng().next()) {
  buffers_.resize(config.rx_buffers);
  for (std::uint32_t i = config.rx_buffers; i > 0; --i) free_buffers_.push_back(i - 1);
  ports_[local.port].users = 1;
}

SimIo::~SimIo() = default;

Capabilities SimIo::capabilities(const IoConfig& config, bool kernel_path) noexcept {
  Capabilities caps;
  caps.datagram_bytes_max = config.datagram_bytes;
  caps.rx_buffer_bytes = config.rx_queue_datagrams * config.datagram_bytes;
  caps.rx_buffers = config.rx_buffers;
  caps.paths_max = 64;
  caps.tx_burst_segments_max = static_cast<std::uint16_t>(config.burst_segments_max);
  caps.tx_burst_bytes_max = config.burst_bytes_max;
  caps.tx_async = config.tx_async;
  caps.ecn = config.ecn;
  caps.kernel_path = kernel_path;
  return caps;
}

// --- paths
// -----------------------------------------------------------------------------------------

Result<PathId> SimIo::add_path(DestId dest, const Address& remote,
                               std::uint16_t local_port) noexcept {
  if (open_paths_ >= kPathsMax) return Errc::no_memory;
  std::uint32_t index = 0;
  if (free_paths_.size() > 64) {
    index = free_paths_.front();
    free_paths_.pop_front();
  } else {
    index = static_cast<std::uint32_t>(paths_.size());
    paths_.emplace_back();
  }
  paths_[index] = {dest, remote, local_port, true};
  ++dests_[static_cast<std::uint32_t>(dest)].paths;
  ++ports_[local_port].users;
  ++open_paths_;
  return PathId{index};
}

Result<PathId> SimIo::open_path(DestId dest, std::uint32_t entropy) noexcept {
  const auto index = static_cast<std::uint32_t>(dest);
  if (index >= dests_.size() || dests_[index].references == 0) return Errc::not_found;
  if (entropy == kServiceEntropy) return add_path(dest, dests_[index].address, local_.port);
  std::uint64_t state = entropy;
  const std::uint64_t port = kFirstEphemeralPort + split_mix(state) % config_.ports;
  return add_path(dest, dests_[index].address, static_cast<std::uint16_t>(port));
}

Result<PathId> SimIo::open_return_path(const RxDatagram& datagram) noexcept {
  const DestId dest{find_or_add_dest(*datagram.source, false)};
  return add_path(dest, *datagram.source, static_cast<std::uint16_t>(datagram.local));
}

void SimIo::close_path(PathId path) noexcept {
  const std::uint32_t index = index_of(path);
  if (index >= paths_.size() || !paths_[index].open) {
    world_.fail("close_path(" + std::to_string(index) + ") on " + host_.name() + ": not open");
    return;
  }
  paths_[index].open = false;
  --dests_[static_cast<std::uint32_t>(paths_[index].dest)].paths;
  Port& port = ports_[paths_[index].local_port];
  if (--port.users == 0) port.drains_until = world_.now() + kPortDrain;
  free_paths_.push_back(index);
  --open_paths_;
}

Result<DestId> SimIo::resolve(const Address& to) noexcept {
  if (to.family != local_.family) return Errc::no_route;
  const std::uint32_t index = find_or_add_dest(to, true);
  ++dests_[index].references;
  return DestId{index};
}

// A forgotten destination lives on while paths lead to it, but is not the one that resolve() gives.
std::uint32_t SimIo::find_or_add_dest(const Address& to, bool known_only_if_resolved) {
  std::uint32_t free = static_cast<std::uint32_t>(dests_.size());
  for (std::uint32_t i = 0; i < dests_.size(); ++i) {
    const bool used = dests_[i].references > 0 || (dests_[i].paths > 0 && !known_only_if_resolved);
    if (used && same_address(dests_[i].address, to)) return i;
    if (dests_[i].references == 0 && dests_[i].paths == 0) free = i;
  }
  if (free == dests_.size()) dests_.emplace_back();
  dests_[free] = {to, 0, 0};
  return free;
}

void SimIo::forget(DestId dest) noexcept {
  const auto index = static_cast<std::uint32_t>(dest);
  if (index >= dests_.size() || dests_[index].references == 0) {
    world_.fail("forget() of a destination that is not resolved, host " + host_.name());
    return;
  }
  --dests_[index].references;
}

std::uint32_t SimIo::datagram_bytes(DestId) const noexcept {
  return config_.datagram_bytes;
}

bool SimIo::describe_path(PathId path, Address& local, Address& remote) const noexcept {
  const std::uint32_t index = index_of(path);
  if (index >= paths_.size() || !paths_[index].open) return false;
  local = local_;
  local.port = paths_[index].local_port;
  remote = paths_[index].remote;
  return true;
}

bool SimIo::listens(std::uint16_t port) const noexcept {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return false;
  return found->second.users > 0 || found->second.drains_until > world_.now();
}

// --- receive
// ---------------------------------------------------------------------------------------

bool SimIo::handle_arrival(Train& train) {
  if (!listens(train.destination.port)) return false;
  const std::span<const Packet> packets(train.packets);
  if (config_.gro) {
    enqueue(train, packets);
  } else {
    for (std::size_t i = 0; i < packets.size(); ++i) enqueue(train, packets.subspan(i, 1));
  }
  return true;
}

// A GRO buffer is dropped whole: the kernel charges it as one.
void SimIo::enqueue(const Train& train, std::span<const Packet> packets) {
  if (rx_queued_ + packets.size() > config_.rx_queue_datagrams) {
    counters_.rx_host_drops += packets.size();
    return;
  }
  Arrival arrival;
  if (!spare_memory_.empty()) {
    arrival.memory = std::move(spare_memory_.back());
    spare_memory_.pop_back();
    arrival.memory.clear();
  }
  arrival.source = train.source;
  arrival.local_port = train.destination.port;
  arrival.at = world_.now();
  for (const Packet& packet : packets) {
    const auto offset = static_cast<std::uint32_t>(arrival.memory.size());
    const auto first = train.memory.begin() + packet.offset;
    arrival.memory.insert(arrival.memory.end(), first, first + packet.bytes);
    arrival.packets.push_back({offset, packet.bytes, packet.ecn});
  }
  rx_queued_ += static_cast<std::uint32_t>(packets.size());
  rx_queue_.push_back(std::move(arrival));
}

std::uint32_t SimIo::lend(Arrival& arrival) {
  const std::uint32_t index = free_buffers_.back();
  free_buffers_.pop_back();
  Buffer& buffer = buffers_[index];
  buffer.source = arrival.source;
  buffer.local_port = arrival.local_port;
  buffer.at = arrival.at;
  buffer.packets.swap(arrival.packets);
  buffer.memory.swap(arrival.memory);
  buffer.references = static_cast<std::uint32_t>(buffer.packets.size());
  ++loaned_;
  return index;
}

std::uint64_t SimIo::flow_of(std::uint16_t port, const Address& source) const noexcept {
  std::uint64_t words[2];
  std::memcpy(words, source.bytes, sizeof words);
  std::uint64_t state = words[0] ^ (std::uint64_t{port} << 16 | source.port);
  std::uint64_t mixed = split_mix(state) ^ words[1];
  return split_mix(mixed);
}

void SimIo::fill(RxDatagram& out, std::uint32_t buffer_index, std::size_t packet_index) {
  Buffer& buffer = buffers_[buffer_index];
  const Packet& packet = buffer.packets[packet_index];
  out = {};
  out.data = buffer.memory.data() + packet.offset;
  out.bytes = packet.bytes;
  out.buffer = BufferId{buffer_index};
  if (config_.timestamps) out.arrived = host_.to_local(buffer.at);
  out.flow = flow_of(buffer.local_port, buffer.source);
  out.source = &buffer.source;
  out.local = buffer.local_port;
  out.ecn = config_.ecn ? packet.ecn : Ecn::not_ect;
  out.scarce = free_buffers_.size() < buffers_.size() / 4;
  out.burst_start = packet_index == 0;
  ++counters_.rx_datagrams;
  counters_.rx_bytes += packet.bytes;
}

std::size_t SimIo::rx_burst(std::span<RxDatagram> out) noexcept {
  ++counters_.rx_calls;
  std::size_t count = 0;
  while (count < out.size()) {
    if (rx_current_ == UINT32_MAX) {
      if (rx_queue_.empty() || free_buffers_.empty()) break;
      rx_current_ = lend(rx_queue_.front());
      rx_queue_.pop_front();
      rx_cursor_ = 0;
      host_.charge(host_.cpu().rx_buffer_ns);
    }
    const std::size_t total = buffers_[rx_current_].packets.size();
    fill(out[count++], rx_current_, rx_cursor_++);
    --rx_queued_;
    if (rx_cursor_ == total) rx_current_ = UINT32_MAX;
  }
  host_.charge(host_.cpu().rx_datagram_ns * count);
  return count;
}

void SimIo::rx_release(std::span<const BufferId> buffers) noexcept {
  for (const BufferId id : buffers) {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= buffers_.size() || buffers_[index].references == 0) {
      world_.fail("rx_release of a buffer that is not on loan, host " + host_.name());
      continue;
    }
    Buffer& buffer = buffers_[index];
    if (--buffer.references > 0) continue;
    std::fill(buffer.memory.begin(), buffer.memory.end(), kPoison);
    if (spare_memory_.size() < 64) spare_memory_.push_back(std::move(buffer.memory));
    buffer.memory = {};
    buffer.packets.clear();
    free_buffers_.push_back(index);
    --loaned_;
  }
}

std::uint8_t SimIo::rx_fill() const noexcept {
  return static_cast<std::uint8_t>(std::uint64_t{rx_queued_} * 255 / config_.rx_queue_datagrams);
}

// --- transmit
// --------------------------------------------------------------------------------------

bool SimIo::check(const TxDatagram& datagram) {
  const std::uint32_t index = index_of(datagram.path);
  std::string problem;
  if (index >= paths_.size() || !paths_[index].open) problem = "path is not open";
  if (datagram.header_bytes > kHeaderBytesMax) problem = "header is too long";
  if (datagram.payload_count > kPayloadSegmentsMax) problem = "too many payload pieces";
  if (datagram.bytes() > datagram_bytes_max_) problem = "longer than the device takes";
  if (problem.empty()) return true;
  world_.fail("tx_burst on " + host_.name() + ": " + problem);
  return false;
}

// Datagrams at the front of `in` that go out as one unit: one path, one size (the last may be
// shorter).
std::size_t SimIo::run_length(std::span<const TxDatagram> in) const noexcept {
  const std::uint32_t size = in[0].bytes();
  std::size_t count = 1;
  std::uint64_t total = size + 28;
  while (count < in.size() && count < config_.burst_segments_max) {
    const TxDatagram& next = in[count];
    if (next.path != in[0].path || next.ecn != in[0].ecn || next.bytes() > size) break;
    total += next.bytes();
    if (total > config_.burst_bytes_max) break;
    ++count;
    if (next.bytes() < size) break;
  }
  return count;
}

void SimIo::tx_burst(std::span<const TxDatagram> in) noexcept {
  ++counters_.tx_calls;
  refused_paths_.clear();
  while (!in.empty()) {
    const std::size_t count = run_length(in);
    send_run(in.first(count));
    in = in.subspan(count);
  }
}

void SimIo::send_run(std::span<const TxDatagram> run) {
  const PathId path = run[0].path;
  for (const TxDatagram& datagram : run) {
    if (!check(datagram)) return;
  }
  host_.charge(host_.cpu().tx_train_ns + host_.cpu().tx_datagram_ns * run.size());
  const TimeNs now = host_.busy_time();
  const std::uint64_t waiting =
      nic_busy_until_ > now ? (nic_busy_until_ - now) * (config_.nic_rate_bps / 8) / kSecond : 0;
  const bool refused =
      std::find(refused_paths_.begin(), refused_paths_.end(), path) != refused_paths_.end() ||
      waiting > config_.tx_queue_bytes || prng_.chance(config_.refuse);
  const bool too_long = run[0].bytes() > config_.datagram_bytes;
  if (refused || too_long) {
    refused_paths_.push_back(path);
    counters_.tx_refused += run.size();
    for (const TxDatagram& datagram : run) {
      done_.push_back({datagram.cookie, too_long ? Errc::message_too_long : Errc::would_block});
    }
    return;
  }
  const std::uint32_t index = world_.trains().take();
  Train& train = world_.trains()[index];
  train.source = local_;
  train.source.port = paths_[index_of(path)].local_port;
  train.destination = paths_[index_of(path)].remote;
  train.from = host_.id();
  train.io_epoch = epoch_;
  std::uint64_t wire_bytes = 0;
  for (const TxDatagram& datagram : run) {
    wire_bytes += datagram.bytes() + world_.fabric().config().overhead_bytes;
    counters_.tx_bytes += datagram.bytes();
  }
  counters_.tx_datagrams += run.size();
  TimeNs start = std::max(now, nic_busy_until_);
  const TimeNs span = wire_bytes * 8 * kSecond / config_.nic_rate_bps;
  train.head = start + span / run.size();
  train.tail = start + span;
  nic_busy_until_ = train.tail;
  const bool by_reference = config_.tx_async && std::any_of(run.begin(), run.end(), [](auto& d) {
                              return d.cookie != 0 && !d.copy;
                            });
  if (by_reference) {
    train.unsent.assign(run.begin(), run.end());
    ++departing_;
    world_.schedule_departure(index, train.head);
  } else {
    load(train, run);
    if (config_.tx_async) {
      for (const TxDatagram& datagram : run) {
        if (datagram.cookie != 0) {
          done_.push_back({datagram.cookie, Errc::ok});
        }
      }
    }
    world_.launch(index);
  }
}

void SimIo::load(Train& train, std::span<const TxDatagram> run) {
  for (const TxDatagram& datagram : run) {
    const auto offset = static_cast<std::uint32_t>(train.memory.size());
    train.memory.insert(train.memory.end(), datagram.header.begin(),
                        datagram.header.begin() + datagram.header_bytes);
    for (std::size_t i = 0; i < datagram.payload_count; ++i) {
      const Segment& segment = datagram.payload[i];
      if (segment.bytes == 0) continue;
      train.memory.insert(train.memory.end(), segment.data, segment.data + segment.bytes);
    }
    train.packets.push_back({offset, datagram.bytes(), config_.ecn ? datagram.ecn : Ecn::not_ect});
  }
}

void SimIo::handle_departure(Train& train) {
  --departing_;
  load(train, train.unsent);
  for (const TxDatagram& datagram : train.unsent) {
    if (datagram.cookie != 0) {
      done_.push_back({datagram.cookie, Errc::ok});
    }
  }
  train.unsent.clear();
}

std::size_t SimIo::tx_done(std::span<TxDone> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !done_.empty()) {
    out[count++] = done_.front();
    done_.pop_front();
  }
  return count;
}

// --- the rest
// --------------------------------------------------------------------------------------

void SimIo::handle_icmp(PathEvent::Kind kind, std::uint16_t local_port, const Address& remote,
                        std::span<const std::byte> quoted) {
  ++counters_.icmp_errors;
  PathEvent event;
  event.kind = kind;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const Path& path = paths_[i];
    if (path.open && path.local_port == local_port && same_address(path.remote, remote)) {
      event.path = PathId{static_cast<std::uint32_t>(i)};
      event.dest = path.dest;
      break;
    }
  }
  event.quoted_bytes = static_cast<std::uint8_t>(std::min(quoted.size(), event.quoted.size()));
  std::copy_n(quoted.begin(), event.quoted_bytes, event.quoted.begin());
  path_events_.push_back(event);
}

std::size_t SimIo::poll_path_events(std::span<PathEvent> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !path_events_.empty()) {
    out[count++] = path_events_.front();
    path_events_.pop_front();
  }
  return count;
}

// Hosts are woken by the world, not by a descriptor.
Arm SimIo::arm() noexcept {
  return has_input() ? Arm::work_pending : Arm::unsupported;
}

}  // namespace srd::sim
