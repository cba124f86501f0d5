// SPDX-License-Identifier: Apache-2.0
#include "udp/udp_driver.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "base/error_text.hpp"
#include "sock/probe.hpp"
#include "udp/udp_io.hpp"

namespace srd::udp {

namespace {

static_assert(kDatagramBytesMax == sock::kUdpPayloadBytesMax);

/// Descriptors that one queue may need: sockets, epoll, route look-ups.
constexpr rlim_t kDescriptorsPerQueue = sock::PathPool::kSocketsMax + 3;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[kErrorTextBytes];
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(text, sizeof text, pattern, args);
  va_end(args);
  return text;
}

/// Sets the error text and returns the code.
Errc check(const Options& o) {
  if (o.paths < 1 || o.paths > kPathsMax) {
    fail(Errc::invalid_argument, "udp: paths=%u is out of range; use 1 to %u", unsigned{o.paths},
         unsigned{kPathsMax});
    return Errc::invalid_argument;
  }
  for (const auto& [name, value] :
       {std::pair{"rcvbuf_bytes", o.rcvbuf_bytes}, std::pair{"sndbuf_bytes", o.sndbuf_bytes}}) {
    if (value < kSocketBufferBytesMin || value > kSocketBufferBytesMax) {
      fail(Errc::invalid_argument,
           "udp: %s=%" PRIu32 " is out of range; use %" PRIu32 " to %" PRIu32, name, value,
           kSocketBufferBytesMin, kSocketBufferBytesMax);
      return Errc::invalid_argument;
    }
  }
  if (o.datagram_bytes != 0 &&
      (o.datagram_bytes < kDatagramBytesMin || o.datagram_bytes > kDatagramBytesMax)) {
    fail(Errc::invalid_argument,
         "udp: datagram_bytes=%" PRIu32 " is out of range; use %" PRIu32 " to %" PRIu32
         ", or 0 for what the route allows",
         o.datagram_bytes, kDatagramBytesMin, kDatagramBytesMax);
    return Errc::invalid_argument;
  }
  if (o.bind.family != 0 && o.bind.family != 4 && o.bind.family != 6) {
    fail(Errc::invalid_argument, "udp: address family %u is unknown; bind to IPv4 or IPv6",
         unsigned{o.bind.family});
    return Errc::invalid_argument;
  }
  return Errc::ok;
}

void explain(Errc error, const Address& bind) {
  const std::string where = to_string(bind);
  switch (error) {
    case Errc::address_in_use:
      fail(error,
           "udp: %s is in use by another socket; choose another port, or find its owner with: "
           "ss -ulpn sport = :%u",
           where.c_str(), unsigned{bind.port});
      return;
    case Errc::address_unavailable:
      fail(error,
           "udp: no interface of this host has the address of %s; list them with: ip address",
           where.c_str());
      return;
    case Errc::not_permitted:
      fail(error, "udp: binding %s is not permitted; ports below 1024 need CAP_NET_BIND_SERVICE",
           where.c_str());
      return;
    case Errc::too_many_files:
      fail(error, "udp: out of file descriptors; raise the limit with: ulimit -n 4096");
      return;
    case Errc::no_memory:
      fail(error,
           "udp: out of memory for sockets or receive buffers; give the program more, or fewer "
           "paths and receive buffers");
      return;
    case Errc::not_supported:
      fail(
          error,
          "udp: this kernel cannot open a UDP socket for %s; if IPv6 is switched off here, bind to "
          "0.0.0.0 instead",
          where.c_str());
      return;
    default:
      fail(error, "udp: cannot bind %s: %s", where.c_str(), srd::to_string(error));
      return;
  }
}

void advise_buffer(std::vector<std::string>& out, const char* what, const char* sysctl,
                   std::uint32_t wished, std::uint32_t granted) {
  const std::uint32_t needed = std::min(wished, kAdvisedBufferBytes);
  if (granted >= needed) return;
  out.push_back(format("socket %s buffers are limited to %" PRIu32 " bytes, %" PRIu32
                       " are wished; bursts may be %s. Run as root: sysctl -w %s=%" PRIu32,
                       what, granted, wished,
                       what[0] == 'r' ? "dropped while the program is not scheduled"
                                      : "refused, waiting for neighbours to resolve",
                       sysctl, wished));
}

class UdpDriver final : public Driver {
 public:
  UdpDriver(const Options& options, const Address& bind, const sock::KernelProbe& probe)
      : options_(options), bind_(bind), probe_(probe) {}

  std::string name() const override { return "udp"; }

  std::string description() const override { return "UDP sockets"; }

  std::vector<Feature> features() const override {
    const sock::SocketGrants& g = probe_.grants;
    return {{"gso", g.gso},
            {"gro", g.gro},
            {"ecn", g.ecn},
            {"timestamps", g.timestamps},
            {"pktinfo", g.local_info},
            {"error-queue", g.error_queue},
            {"drop-counter", g.drop_counter},
            {"ipv6", probe_.has_ipv6}};
  }

  Capabilities capabilities() const noexcept override {
    Capabilities c;
    c.datagram_bytes_max = datagram_bytes_max();
    c.rx_buffer_bytes = probe_.grants.rcvbuf_bytes;
    c.rx_buffers = RxBuffers::kDefaultCount;
    c.paths_max = kPathsMax;
    c.tx_burst_segments_max = tx_features().segments_max;
    c.tx_burst_bytes_max = kBurstBytesOnWire;
    c.ecn = probe_.grants.ecn;
    c.can_sleep = true;
    c.kernel_path = true;
    return c;
  }

  Result<std::unique_ptr<PacketIo>> open_queue(const QueueConfig& config) noexcept override {
    UdpIoConfig io;
    io.pool.bind = config.bind.family == 0 ? bind_ : config.bind;
    io.pool.paths = config.paths == 0 ? options_.paths : config.paths;
    io.pool.seed = config.seed;
    io.pool.wishes = wishes(options_);
    io.tx = tx_features();
    io.rx_buffers = config.rx_buffers == 0 ? RxBuffers::kDefaultCount : config.rx_buffers;
    io.datagram_bytes = datagram_bytes_max();
    io.calls = &syscalls(options_);
    if (io.pool.paths > kPathsMax || io.rx_buffers > RxBuffers::kCountMax) {
      fail(Errc::invalid_argument,
           "udp: paths=%u (1 to %u) or rx_buffers=%" PRIu32 " (up to %" PRIu32 ") is out of range",
           unsigned{io.pool.paths}, unsigned{kPathsMax}, io.rx_buffers, RxBuffers::kCountMax);
      return Errc::invalid_argument;
    }
    auto opened = UdpIo::open(io);
    if (!opened) explain(opened.errc(), io.pool.bind);
    return opened;
  }

  // Sockets reach all of the process's memory.
  Result<RegionKey> register_region(std::span<std::byte>) noexcept override { return kNoRegion; }

  void deregister_region(RegionKey) noexcept override {}

  std::vector<std::string> advice() const override {
    std::vector<std::string> out;
    const sock::SocketGrants& g = probe_.grants;
    advise_buffer(out, "receive", "net.core.rmem_max", options_.rcvbuf_bytes, g.rcvbuf_bytes);
    advise_buffer(out, "send", "net.core.wmem_max", options_.sndbuf_bytes, g.sndbuf_bytes);
    if (options_.gso && !g.gso) {
      out.emplace_back(
          "the kernel lacks UDP_SEGMENT, or refuses it over loopback: each datagram costs a pass "
          "through the network stack. Use Linux 4.18 or newer");
    }
    if (options_.gro && !g.gro) {
      out.emplace_back(
          "the kernel lacks UDP_GRO: each datagram takes a receive buffer of its own. "
          "Use Linux 5.0 or newer");
    }
    if (options_.ecn && !g.ecn) {
      out.emplace_back(
          "the kernel refuses the ECN options of sockets: congestion is seen by delay "
          "and loss only");
    }
    if (!g.timestamps) {
      out.emplace_back(
          "the kernel refuses SO_TIMESTAMPNS: time in the socket queue counts as network "
          "delay");
    }
    if (!g.error_queue) {
      out.emplace_back(
          "the kernel refuses IP_RECVERR: unreachable peers are noticed by time-out "
          "only");
    }
    if (!g.drop_counter) {
      out.emplace_back(
          "the kernel refuses SO_RXQ_OVFL: datagrams that a full socket buffer drops are noticed "
          "under load only");
    }
    if (!g.local_info) {
      out.emplace_back(
          "the kernel refuses IP_PKTINFO: on a host with several addresses, answers may leave from "
          "another than the one that was asked. Bind to one address");
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * kDescriptorsPerQueue) {
      out.push_back(format("only %" PRIu64
                           " file descriptors are allowed and one endpoint may need "
                           "%" PRIu64 ". Run: ulimit -n 4096",
                           std::uint64_t{limit.rlim_cur}, std::uint64_t{kDescriptorsPerQueue}));
    }
    return out;
  }

  std::vector<std::string> advice(const IoCounters& counted) const override {
    std::vector<std::string> out;
    const std::uint32_t granted = probe_.grants.rcvbuf_bytes;
    const std::uint32_t wished = options_.rcvbuf_bytes;
    if (counted.rx_host_drops > 0 && granted < wished) {
      out.push_back(format("datagrams were dropped by this host (%" PRIu64
                           " so far): socket receive "
                           "buffers are limited to %" PRIu32 " bytes, %" PRIu32
                           " are wished. Run as root: sysctl -w net.core.rmem_max=%" PRIu32,
                           counted.rx_host_drops, granted, wished, wished));
    }
    if (counted.paths_refused > 0) {
      out.push_back(format("too few file descriptors are allowed for all paths (%" PRIu64
                           " could not be opened so far; each local port takes one). Run before "
                           "the program: ulimit -n 4096",
                           counted.paths_refused));
    }
    if (counted.gso_fallbacks > 0) {
      out.push_back(format("a network device refused UDP_SEGMENT (%" PRIu64 " bursts were sent "
                           "singly, later ones to these destinations are, too). Look for "
                           "tx-checksumming and tx-udp-segmentation in: ethtool -k DEVICE",
                           counted.gso_fallbacks));
    }
    return out;
  }

  std::string last_error() const override { return error_text(); }

  static const sock::Syscalls& syscalls(const Options& o) noexcept {
    return o.syscalls != nullptr ? *o.syscalls : sock::kernel_syscalls();
  }

  static sock::SocketWishes wishes(const Options& o) noexcept {
    sock::SocketWishes w;
    w.rcvbuf_bytes = o.rcvbuf_bytes;
    w.sndbuf_bytes = o.sndbuf_bytes;
    w.gro = o.gro;
    w.ecn = o.ecn;
    return w;
  }

 private:
  /// The kernel builds a burst as one IP packet, so its length field is the limit. Counting headers
  /// per datagram, as the wire does, stays below it.
  static constexpr std::uint32_t kBurstBytesOnWire = 65535;

  [[nodiscard]] std::uint32_t datagram_bytes_max() const noexcept {
    return options_.datagram_bytes == 0 ? kDatagramBytesMax : options_.datagram_bytes;
  }

  [[nodiscard]] TxFeatures tx_features() const noexcept {
    TxFeatures f;
    f.gso = options_.gso && probe_.grants.gso;
    f.ecn = probe_.grants.ecn;
    f.segments_max = f.gso ? probe_.gso_segments_max : std::uint16_t{1};
    return f;
  }

  const Options options_;
  const Address bind_;
  const sock::KernelProbe probe_;
};

}  // namespace

Result<std::unique_ptr<Driver>> make_driver(const Options& options) {
  if (const Errc error = check(options); error != Errc::ok) return error;
  Address bind = options.bind;
  if (bind.family == 0) bind.family = sock::has_ipv6() ? 6 : 4;
  const auto probe =
      sock::probe_kernel(UdpDriver::syscalls(options), bind, UdpDriver::wishes(options));
  if (!probe) {
    explain(probe.errc(), bind);
    return probe.errc();
  }
  return std::unique_ptr<Driver>(std::make_unique<UdpDriver>(options, bind, *probe));
}

}  // namespace srd::udp
