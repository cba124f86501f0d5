// SPDX-License-Identifier: Apache-2.0
#include "support/pair_driver.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "srd/driver.hpp"
#include "srd/runtime/drivers.hpp"

#include "base/error_text.hpp"
#include "base/options.hpp"
#include "base/unique_fd.hpp"

namespace srd::test {

namespace {

constexpr std::uint32_t kDatagramBytes = 1472;
constexpr std::size_t kQueueMax = 4096;
constexpr std::uint16_t kFirstEphemeralPort = 40000;

Address local(std::uint16_t port) {
  Address address{};
  address.family = 4;
  address.port = port;
  address.bytes[0] = 127;
  address.bytes[3] = 1;
  return address;
}

// A datagram on its way: entropy stands for the source port that a real path would have.
struct Packet {
  std::vector<std::byte> bytes;
  Address source{};
  std::uint32_t entropy = 0;
};

struct Inbox {
  std::mutex mutex;
  std::deque<Packet> packets;
  UniqueFd event;
};

// All bound ports of the process.
class Network {
 public:
  Result<std::uint16_t> bind(std::uint16_t port, const std::shared_ptr<Inbox>& inbox) {
    const std::lock_guard lock(mutex_);
    if (port == 0) port = next_port_++;
    if (!inboxes_.emplace(port, inbox).second) return Errc::address_in_use;
    return port;
  }

  void unbind(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    inboxes_.erase(port);
  }

  void deliver(std::uint16_t to, Packet packet) {
    const std::shared_ptr<Inbox> inbox = find(to);
    if (inbox == nullptr) return;
    const std::lock_guard lock(inbox->mutex);
    if (inbox->packets.size() >= kQueueMax) return;
    inbox->packets.push_back(std::move(packet));
    if (!inbox->event.is_open()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(inbox->event.get(), &one, sizeof one);
  }

 private:
  std::shared_ptr<Inbox> find(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    const auto found = inboxes_.find(port);
    return found == inboxes_.end() ? nullptr : found->second;
  }

  std::mutex mutex_;
  std::map<std::uint16_t, std::shared_ptr<Inbox>> inboxes_;
  std::uint16_t next_port_ = kFirstEphemeralPort;
};

Network& network() {
  static Network network;
  return network;
}

class PairIo final : public PacketIo {
 public:
  PairIo(std::uint16_t port, std::shared_ptr<Inbox> inbox)
      : port_(port), inbox_(std::move(inbox)) {}

  ~PairIo() override { network().unbind(port_); }

  std::size_t rx_burst(std::span<RxDatagram> out) noexcept override {
    const std::lock_guard lock(inbox_->mutex);
    std::size_t count = 0;
    for (; count < out.size() && !inbox_->packets.empty(); ++count) {
      const std::uint32_t id = next_buffer_++;
      Packet& packet = loaned_.emplace(id, std::move(inbox_->packets.front())).first->second;
      inbox_->packets.pop_front();
      out[count] = {};
      out[count].data = packet.bytes.data();
      out[count].bytes = static_cast<std::uint32_t>(packet.bytes.size());
      out[count].buffer = BufferId{id};
      out[count].flow = std::uint64_t{packet.source.port} << 32 | packet.entropy;
      out[count].source = &packet.source;
      out[count].local = packet.entropy;
      out[count].burst_start = true;
      counters_.rx_datagrams++;
      counters_.rx_bytes += packet.bytes.size();
    }
    if (inbox_->packets.empty() && inbox_->event.is_open()) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const auto got = ::read(inbox_->event.get(), &ignored, sizeof ignored);
    }
    return count;
  }

  void rx_release(std::span<const BufferId> buffers) noexcept override {
    for (const BufferId id : buffers) loaned_.erase(static_cast<std::uint32_t>(id));
  }

  void tx_burst(std::span<const TxDatagram> in) noexcept override {
    PairFaults& faults = pair_faults();
    for (const TxDatagram& datagram : in) {
      const Path& path = paths_.at(static_cast<std::uint32_t>(datagram.path));
      const std::uint64_t number = ++faults.tx_datagrams;
      counters_.tx_datagrams++;
      counters_.tx_bytes += datagram.bytes();
      const unsigned drop = faults.drop_one_in.load();
      const std::uint16_t dead = faults.dead_port.load();
      if (drop != 0 && number % drop == 0) continue;
      if (dead != 0 && (path.to.port == dead || port_ == dead)) continue;
      network().deliver(path.to.port, pack(datagram, path));
    }
  }

  std::size_t tx_done(std::span<TxDone>) noexcept override { return 0; }

  std::size_t poll_path_events(std::span<PathEvent>) noexcept override { return 0; }

  Arm arm() noexcept override {
    if (!inbox_->event.is_open()) return Arm::unsupported;
    const std::lock_guard lock(inbox_->mutex);
    return inbox_->packets.empty() ? Arm::armed : Arm::work_pending;
  }

  int event_fd() const noexcept override { return inbox_->event.get(); }

  Result<Address> local_address() const noexcept override { return local(port_); }

  IoCounters counters() const noexcept override {
    IoCounters out = counters_;
    out.rx_host_drops = pair_faults().host_drops.load();
    return out;
  }

  std::uint8_t rx_fill() const noexcept override { return 0; }

  Result<PathId> open_path(DestId dest, std::uint32_t entropy) noexcept override {
    return add_path({dests_.at(static_cast<std::uint32_t>(dest)), entropy});
  }

  Result<PathId> open_return_path(const RxDatagram& datagram) noexcept override {
    return add_path({*datagram.source, datagram.local});
  }

  void close_path(PathId path) noexcept override { paths_.erase(static_cast<std::uint32_t>(path)); }

  Result<DestId> resolve(const Address& to) noexcept override {
    if (to.family != 4) return Errc::no_route;
    dests_.emplace(next_dest_, to);
    return DestId{next_dest_++};
  }

  void forget(DestId dest) noexcept override { dests_.erase(static_cast<std::uint32_t>(dest)); }

  std::uint32_t datagram_bytes(DestId) const noexcept override { return kDatagramBytes; }

  bool describe_path(PathId path, Address& from, Address& to) const noexcept override {
    const auto found = paths_.find(static_cast<std::uint32_t>(path));
    if (found == paths_.end()) return false;
    from = local(port_);
    to = found->second.to;
    return true;
  }

 private:
  struct Path {
    Address to{};
    std::uint32_t entropy = 0;
  };

  Result<PathId> add_path(const Path& path) {
    paths_.emplace(next_path_, path);
    return PathId{next_path_++};
  }

  Packet pack(const TxDatagram& datagram, const Path& path) const {
    Packet packet{std::vector<std::byte>(datagram.bytes()), local(port_), path.entropy};
    std::byte* to = packet.bytes.data();
    std::memcpy(to, datagram.header.data(), datagram.header_bytes);
    to += datagram.header_bytes;
    for (std::size_t i = 0; i < datagram.payload_count; ++i) {
      std::memcpy(to, datagram.payload[i].data, datagram.payload[i].bytes);
      to += datagram.payload[i].bytes;
    }
    return packet;
  }

  const std::uint16_t port_;
  std::shared_ptr<Inbox> inbox_;
  std::unordered_map<std::uint32_t, Packet> loaned_;
  std::unordered_map<std::uint32_t, Path> paths_;
  std::unordered_map<std::uint32_t, Address> dests_;
  std::uint32_t next_buffer_ = 0, next_path_ = 0, next_dest_ = 0;
  IoCounters counters_{};
};

thread_local std::string last_error_of_thread;

class PairDriver final : public Driver {
 public:
  explicit PairDriver(const Capabilities& can) : can_(can) {}

  std::string name() const override { return "pair"; }

  std::string description() const override { return "queues in memory"; }

  Capabilities capabilities() const noexcept override { return can_; }

  std::vector<Feature> features() const override { return {{"sleep", can_.can_sleep}}; }

  Result<std::unique_ptr<PacketIo>> open_queue(const QueueConfig& config) noexcept override {
    auto inbox = std::make_shared<Inbox>();
    if (can_.can_sleep) inbox->event = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    const auto port = network().bind(config.bind.port, inbox);
    if (!port) {
      last_error_of_thread = "pair: port " + std::to_string(config.bind.port) + " is taken";
      return port.errc();
    }
    return std::unique_ptr<PacketIo>(std::make_unique<PairIo>(*port, std::move(inbox)));
  }

  Result<RegionKey> register_region(std::span<std::byte>) noexcept override { return kNoRegion; }

  void deregister_region(RegionKey) noexcept override {}

  std::vector<std::string> advice() const override { return {}; }

  std::vector<std::string> advice(const IoCounters& counted) const override {
    if (counted.rx_host_drops == 0) return {};
    return {"datagrams were dropped (" + std::to_string(counted.rx_host_drops) +
            " so far). Run: x"};
  }

  std::string last_error() const override { return last_error_of_thread; }

 private:
  const Capabilities can_;
};

Result<runtime::OpenedDevice> open_pair(const runtime::DeviceString& device) {
  Capabilities can;
  can.rx_buffer_bytes = kQueueMax * kDatagramBytes;
  can.rx_buffers = kQueueMax;
  can.paths_max = 64;
  can.can_sleep = true;
  can.kernel_path = true;
  std::uint64_t paths = 8;
  std::uint64_t datagram_bytes = kDatagramBytes;
  Options options(device.options);
  options.take_flag("sleep", can.can_sleep);
  options.take_flag("reliable", can.reliable);
  options.take_flag("regions", can.tx_needs_region);
  options.take_number("datagram_bytes", 1, kDatagramBytes, datagram_bytes);
  options.take_number("paths", 1, 64, paths);
  const std::string subject = "srd_context_open: device \"" + device.text + "\"";
  if (const Errc status = options.finish(subject.c_str()); status != Errc::ok) return status;
  can.datagram_bytes_max = static_cast<std::uint32_t>(datagram_bytes);
  runtime::OpenedDevice opened{std::make_unique<PairDriver>(can), {}};
  opened.queue.paths = static_cast<std::uint16_t>(paths);
  if (!device.place.empty()) {
    const auto bind = parse_address(device.place);
    if (!bind) return bind.errc();
    opened.queue.bind = *bind;
  }
  return opened;
}

}  // namespace

PairFaults& pair_faults() {
  static PairFaults faults;
  return faults;
}

void register_pair_driver() {
  runtime::register_driver({"pair", open_pair});
}

}  // namespace srd::test
