// SPDX-License-Identifier: Apache-2.0
#include "udp/udp_rx.hpp"

#include <linux/sock_diag.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace srd::udp {

namespace {

// Times a read is tried again because an ICMP error stood in its way.
constexpr unsigned kTriesMax = 8;

std::uint64_t flow_hash(const Address& remote, std::uint32_t local, std::uint16_t port) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, remote.bytes, 8);
  std::memcpy(&high, remote.bytes + 8, 8);
  const std::uint64_t ports = std::uint64_t{remote.port} << 48 | std::uint64_t{port} << 32 | local;
  std::uint64_t h = (low ^ 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  h = (std::rotl(h, 31) ^ high ^ std::uint64_t{remote.scope} << 32) * 0x94d049bb133111ebU;
  h = (std::rotl(h, 31) ^ ports) * 0xbf58476d1ce4e5b9U;
  return h ^ (h >> 29);
}

/// What the control messages of one buffer say.
struct Notes {
  std::uint64_t stamp_ns = 0;
  int segment = 0;
  Address local{};
  std::uint32_t drops = 0;
  bool has_drops = false;
  Ecn ecn = Ecn::not_ect;
};

void read_ip(int level, int type, const char* data, std::size_t bytes, Notes& notes) noexcept {
  if (level == IPPROTO_IP && type == IP_TOS) {
    std::uint8_t tos = 0;
    if (sock::control_value(data, bytes, tos)) notes.ecn = Ecn{static_cast<std::uint8_t>(tos & 3)};
  } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
    int tos = 0;
    if (sock::control_value(data, bytes, tos)) notes.ecn = Ecn{static_cast<std::uint8_t>(tos & 3)};
  } else if (level == IPPROTO_IP && type == IP_PKTINFO) {
    in_pktinfo info{};
    if (sock::control_value(data, bytes, info)) {
      notes.local = sock::from_in_addr(info.ipi_spec_dst, 0);
    }
  } else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
    in6_pktinfo info{};
    if (sock::control_value(data, bytes, info)) {
      notes.local = sock::from_in6_addr(info.ipi6_addr, 0, info.ipi6_ifindex);
    }
  }
}

void read_control(const msghdr& message, Notes& notes) noexcept {
  sock::for_each_control(message, [&](int level, int type, const char* data, std::size_t bytes) {
    if (level == SOL_SOCKET && type == SCM_TIMESTAMPNS) {
      timespec t{};
      if (sock::control_value(data, bytes, t)) {
        notes.stamp_ns = sock::to_ns(t);
      }
    } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      notes.has_drops = sock::control_value(data, bytes, notes.drops);
    } else if (level == IPPROTO_UDP && type == UDP_GRO) {
      sock::control_value(data, bytes, notes.segment);
    } else {
      read_ip(level, type, data, bytes, notes);
    }
  });
}

}  // namespace

Receiver::Receiver(const sock::Syscalls& calls, sock::PathPool& pool, sock::ErrorQueue& errors,
                   std::uint32_t buffers) noexcept
    : calls_(calls), pool_(pool), errors_(errors), buffers_(buffers) {
  for (unsigned i = 0; i < kReadMax; ++i) {
    iovecs_[i].iov_len = RxBuffers::kBytes;
    msghdr& message = headers_[i].msg_hdr;
    message.msg_name = &names_[i].any;
    message.msg_iov = &iovecs_[i];
    message.msg_iovlen = 1;
    message.msg_control = &controls_[i];
  }
}

Errc Receiver::open() noexcept {
  if (!buffers_.is_valid()) return Errc::no_memory;
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  return epoll_.is_open() ? Errc::ok : sock::setup_error(errno);
}

bool Receiver::add_socket(unsigned socket, int fd) noexcept {
  SocketState& state = sockets_[socket];
  state = SocketState{};
  state.empty_at_ns = sock::monotonic_now().ns;
  state.port = sock::bound_address(fd).port;
  epoll_event event{};
  event.events = interest_off_ ? 0U : static_cast<std::uint32_t>(EPOLLIN);
  event.data.u32 = socket;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Receiver::remove_socket(unsigned socket) noexcept {
  if (hot_ == socket) hot_ = sock::PathPool::kServiceSocket;
  if (!is_ready_[socket]) return;
  is_ready_.reset(socket);
  auto* end =
      std::remove(ready_.begin(), ready_.begin() + ready_count_, static_cast<std::uint8_t>(socket));
  ready_count_ = static_cast<unsigned>(end - ready_.begin());
}

std::size_t Receiver::burst(std::span<RxDatagram> out) noexcept {
  std::size_t n = emit(out);
  if (n == out.size()) return n;
  if (buffers_.free_count() == 0) {
    if (n == 0) starved_.add();
    sweep();  // errors can still be read
    return n;
  }
  if (last_now_.ns - swept_at_ns_ < kSweepBusyNs) {
    n = read_ready(out, n);
    n = read_hot(out, n);
    if (n == out.size() || is_swept_lately(n > 0)) return n;
  }
  sweep();
  n = read_ready(out, n);
  if (n == 0) all_empty_at_ns_ = swept_at_ns_;
  return n;
}

// Whether epoll can be left unasked: it named no other socket the last time, and that was just now.
bool Receiver::is_swept_lately(bool busy) noexcept {
  if (others_busy_) return false;
  if (busy) return last_now_.ns - swept_at_ns_ < kSweepBusyNs;
  last_now_ = sock::monotonic_now();
  sockets_[hot_].empty_at_ns = last_now_.ns;
  fill_ = 0;
  return last_now_.ns - swept_at_ns_ < kSweepIdleNs;
}

std::size_t Receiver::read_hot(std::span<RxDatagram> out, std::size_t n) noexcept {
  while (n < out.size()) {
    const ReadResult result = read(hot_, out.size() - n);
    n += emit(out.subspan(n));
    if (result != ReadResult::more) break;
  }
  return n;
}

std::size_t Receiver::read_ready(std::span<RxDatagram> out, std::size_t n) noexcept {
  while (n < out.size() && ready_count_ > 0) {
    const unsigned socket = ready_[ready_count_ - 1];
    const ReadResult result = read(socket, out.size() - n);
    n += emit(out.subspan(n));
    if (result == ReadResult::starved) break;
    if (result == ReadResult::dry) {
      --ready_count_;
      is_ready_.reset(socket);
    }
  }
  return n;
}

void Receiver::sweep() noexcept {
  std::array<epoll_event, kSockets> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  swept_at_ns_ = last_now_.ns;
  for (int i = 0; i < n; ++i) {
    const unsigned socket = events[static_cast<std::size_t>(i)].data.u32;
    const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
    if ((what & EPOLLERR) != 0) errors_.drain(socket);
    if ((what & EPOLLIN) == 0) continue;
    mark_ready(socket);
    last_read_empty_ = false;  // and there may be more than one
  }
  others_busy_ = std::any_of(ready_.begin(), ready_.begin() + ready_count_,
                             [this](std::uint8_t socket) { return socket != hot_; });
}

void Receiver::mark_ready(unsigned socket) noexcept {
  if (is_ready_[socket]) return;
  is_ready_.set(socket);
  ready_[ready_count_++] = static_cast<std::uint8_t>(socket);
}

std::size_t Receiver::emit(std::span<RxDatagram> out) noexcept {
  std::size_t n = 0;
  const bool scarce = buffers_.is_scarce();
  while (n < out.size() && pending_head_ != pending_tail_) {
    Pending& p = pending_[pending_head_];
    RxDatagram& datagram = out[n++];
    const std::uint32_t bytes = std::min(p.segment, p.bytes - p.at);
    datagram.data = buffers_.data(p.buffer) + p.at;
    datagram.bytes = bytes;
    datagram.buffer = BufferId{p.buffer};
    datagram.arrived = p.arrived;
    datagram.flow = p.flow;
    datagram.source = &buffers_.source(p.buffer);
    datagram.local = p.local;
    datagram.ecn = p.ecn;
    datagram.scarce = scarce;
    datagram.burst_start = p.at == 0;
    p.at += bytes;
    if (p.at >= p.bytes) ++pending_head_;
  }
  return n;
}

void Receiver::prepare(unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    slot_buffers_[i] = buffers_.peek(i);
    iovecs_[i].iov_base = buffers_.data(slot_buffers_[i]);
    msghdr& message = headers_[i].msg_hdr;
    message.msg_namelen = sizeof(sockaddr_in6);
    message.msg_controllen = sizeof(Control);
  }
}

// How many buffers were filled, or -1.
int Receiver::receive(int fd, unsigned count) noexcept {
  if (count > 1) return calls_.recvmmsg(fd, headers_.data(), count, MSG_DONTWAIT, nullptr);
  // Measured: 0.2 us less than recvmmsg with one message.
  const ssize_t bytes = calls_.recvmsg(fd, &headers_[0].msg_hdr, MSG_DONTWAIT);
  if (bytes < 0) return -1;
  headers_[0].msg_len = static_cast<unsigned>(bytes);
  return 1;
}

// Only called with nothing pending. A read of one says "dry" whatever it leaves: the next turn
// comes back for that, and whoever waits for a single answer is not kept by a look for a second
// one.
Receiver::ReadResult Receiver::read(unsigned socket, std::size_t wanted) noexcept {
  const std::size_t expected = last_read_empty_ ? 1 : read_size_;
  const auto count =
      static_cast<unsigned>(std::min<std::size_t>({expected, wanted, buffers_.free_count()}));
  if (count == 0) return ReadResult::starved;
  prepare(count);
  int got = -1;
  for (unsigned tries = 0; tries < kTriesMax && got < 0; ++tries) {
    got = receive(pool_.fd(socket), count);
    calls_made_.add();
    if (got >= 0) break;
    if (errno == EAGAIN) {
      last_read_empty_ = true;
      return ReadResult::dry;
    }
    if (errno != EINTR) errors_.drain(socket);
  }
  if (got <= 0) return ReadResult::dry;

  const auto n = static_cast<unsigned>(got);
  last_now_ = sock::monotonic_now();
  pending_head_ = pending_tail_ = 0;
  buffers_.take(n);
  for (unsigned i = 0; i < n; ++i) accept(socket, i);
  hot_ = last_rx_socket_ = socket;
  if (last_read_empty_) {
    last_read_empty_ = false;
    return ReadResult::dry;
  }
  if (n == count) {
    if (count == read_size_) read_size_ = std::min(2 * read_size_, kReadMax);
    sample_fill(socket);
    return ReadResult::more;
  }
  if (n < read_size_ / 4) read_size_ = std::max(read_size_ / 2, kReadMin);
  sockets_[socket].empty_at_ns = last_now_.ns;
  fill_ = 0;
  return ReadResult::dry;
}

void Receiver::accept(unsigned socket, unsigned slot) noexcept {
  const msghdr& message = headers_[slot].msg_hdr;
  const std::uint32_t buffer = slot_buffers_[slot];
  const std::uint32_t bytes = headers_[slot].msg_len;
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    truncated_.add();
    buffers_.give_back(buffer);
    return;
  }
  Notes notes;
  read_control(message, notes);
  SocketState& state = sockets_[socket];
  if (notes.has_drops) count_drops(state, notes.drops);

  Address& source = buffers_.source(buffer);
  names_[slot].bytes = message.msg_namelen;
  source = sock::from_socket_address(names_[slot]);
  const std::uint32_t segment =
      notes.segment > 0 ? static_cast<std::uint32_t>(notes.segment) : bytes;
  const std::uint32_t count = bytes == 0 ? 1 : (bytes + segment - 1) / segment;
  buffers_.set_references(buffer, count);

  Pending& p = pending_[pending_tail_++];
  p.buffer = buffer;
  p.bytes = bytes;
  p.at = 0;
  p.segment = segment;
  p.local = socket | intern_local(state, notes.local) << kLocalShift;
  p.flow = flow_hash(source, p.local, state.port);
  p.arrived = arrival(socket, notes.stamp_ns);
  p.ecn = notes.ecn;
  datagrams_.add(count);
  bytes_.add(bytes);
}

// Wall clock minus monotonic clock. The two are read one after the other, and a preemption may come
// between: the tightest of a few readings counts, or round trips would look shorter than they are.
std::uint64_t Receiver::wall_ahead_ns() const noexcept {
  std::uint64_t best = 0, tightest = UINT64_MAX;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t before = sock::clock_ns(CLOCK_MONOTONIC);
    timespec wall{};
    calls_.clock_gettime(CLOCK_REALTIME, &wall);
    const std::uint64_t span = sock::clock_ns(CLOCK_MONOTONIC) - before;
    if (span >= tightest) continue;
    tightest = span;
    best = sock::to_ns(wall) - before - span / 2;
  }
  return best;
}

// The stamp is wall-clock time, which may step. Nothing can have arrived before the socket was last
// seen empty, so a step does no harm (PROTOCOL.md 8.1: time in the socket queue is not network
// delay).
Instant Receiver::arrival(unsigned socket, std::uint64_t stamp_ns) noexcept {
  const std::uint64_t now = last_now_.ns;
  if (stamp_ns == 0) return last_now_;
  if (now - wall_read_at_ns_ > kWallClockNs) {
    wall_read_at_ns_ = now;
    wall_ahead_ns_ = wall_ahead_ns();
  }
  const std::uint64_t wall_now = now + wall_ahead_ns_;
  if (stamp_ns >= wall_now) return last_now_;
  const std::uint64_t empty_at = std::max(all_empty_at_ns_, sockets_[socket].empty_at_ns);
  const std::uint64_t age_max = now - std::min(now, empty_at);
  return Instant{now - std::min(wall_now - stamp_ns, age_max)};
}

std::uint32_t Receiver::intern_local(SocketState& state, const Address& local) noexcept {
  if (local.family == 0) return 0;  // bound to one address: the kernel's choice is right
  if (state.last_local == 0 || !same_address(pool_.local_address(state.last_local), local)) {
    state.last_local = pool_.intern_local(local);
  }
  return state.last_local;
}

void Receiver::count_drops(SocketState& state, std::uint32_t drops) noexcept {
  host_drops_.add(drops - state.drops_seen);  // 32-bit and free-running in the kernel
  state.drops_seen = drops;
}

void Receiver::sample_fill(unsigned socket) noexcept {
  if (last_now_.ns - filled_at_ns_ < kFillEveryNs) return;
  filled_at_ns_ = last_now_.ns;
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof info;
  if (::getsockopt(pool_.fd(socket), SOL_SOCKET, SO_MEMINFO, info.data(), &size) != 0) return;
  const std::uint64_t limit = std::max(info[SK_MEMINFO_RCVBUF], 1U);
  fill_ = static_cast<std::uint8_t>(
      std::min<std::uint64_t>(std::uint64_t{info[SK_MEMINFO_RMEM_ALLOC]} * 255 / limit, 255));
  count_drops(sockets_[socket], info[SK_MEMINFO_DROPS]);
}

void Receiver::release(std::span<const BufferId> buffers) noexcept {
  for (const BufferId buffer : buffers) buffers_.release(buffer);
  if (interest_off_ && buffers_.free_count() > 0) set_interest(true);
}

// The epoll descriptor is level-triggered: what arrives after this check wakes the sleeper, so
// there is nothing to arm. Only without free buffers the sockets are masked, or the sleeper would
// spin on data it cannot read.
Arm Receiver::arm() noexcept {
  const bool starved = buffers_.free_count() == 0;
  if (pending_head_ != pending_tail_) return Arm::work_pending;
  if (starved && !interest_off_) set_interest(false);
  epoll_event event;
  return ::epoll_wait(epoll_.get(), &event, 1, 0) > 0 ? Arm::work_pending : Arm::armed;
}

void Receiver::set_interest(bool readable) noexcept {
  interest_off_ = !readable;
  for (unsigned socket = 0; socket < kSockets; ++socket) {
    if (pool_.fd(socket) < 0) continue;
    epoll_event event{};
    event.events = readable ? static_cast<std::uint32_t>(EPOLLIN) : 0U;
    event.data.u32 = socket;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, pool_.fd(socket), &event);
  }
}

void Receiver::read_counters(IoCounters& out) const noexcept {
  out.rx_datagrams = datagrams_.value();
  out.rx_bytes = bytes_.value();
  out.rx_calls = calls_made_.value();
  out.rx_truncated = truncated_.value();
  out.rx_host_drops = host_drops_.value();
  out.rx_starved = starved_.value();
}

}  // namespace srd::udp
