// SPDX-License-Identifier: Apache-2.0
#include "udp/udp_tx.hpp"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace srd::udp {

namespace {

constexpr std::uint8_t kNoSocket = 0xff;
// Times one message is offered again because another peer's ICMP error stood in its way.
constexpr unsigned kTriesMax = 4;

Errc send_error(int error) noexcept {
  switch (error) {
    case EMSGSIZE:
      return Errc::message_too_long;
    case EPERM:
    case EACCES:
      return Errc::not_permitted;
    default:
      return Errc::no_route;
  }
}

void add_segment(iovec& out, const void* data, std::size_t bytes) noexcept {
  out.iov_base = const_cast<void*>(data);  // sendmsg(2) does not write to it
  out.iov_len = bytes;
}

void add_local(sock::ControlWriter& control, int family, const Address& local) noexcept {
  // No interface index, so that routing still spreads over several; except where the address means
  // nothing without it.
  if (family == AF_INET) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, local.bytes, sizeof info.ipi_spec_dst);
    control.add(IPPROTO_IP, IP_PKTINFO, info);
    return;
  }
  sock::SocketAddress address{};
  if (!sock::to_socket_address(local, AF_INET6, address)) return;
  in6_pktinfo info{};
  info.ipi6_addr = address.v6.sin6_addr;
  info.ipi6_ifindex = local.scope;
  control.add(IPPROTO_IPV6, IPV6_PKTINFO, info);
}

}  // namespace

void Sender::burst(std::span<const TxDatagram> in) noexcept {
  ++call_;
  while (!in.empty()) {
    const std::size_t n = std::min(in.size(), kChunk);
    send_chunk(in.first(n));
    in = in.subspan(n);
  }
}

// Groups the chunk by socket, in order, so that each socket is served by as few system calls as its
// messages allow. A path has one socket: its order is kept.
void Sender::send_chunk(std::span<const TxDatagram> in) noexcept {
  in_ = in;
  std::array<std::uint8_t, kChunk> socket_of;
  std::array<std::uint8_t, sock::PathPool::kSocketsMax> touched;
  std::array<std::uint16_t, sock::PathPool::kSocketsMax> start;
  std::size_t sockets = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    socket_of[i] = kNoSocket;
    sock::Path* path = pool_.open_entry(in[i].path);
    if (path == nullptr) {
      refuse(in[i], Errc::no_route);
      continue;
    }
    bytes_[i] = in[i].bytes();
    socket_of[i] = path->socket;
    if (per_socket_[path->socket]++ == 0) touched[sockets++] = path->socket;
  }
  std::uint16_t at = 0;
  for (std::size_t s = 0; s < sockets; ++s) {
    start[touched[s]] = at;
    at = static_cast<std::uint16_t>(at + per_socket_[touched[s]]);
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (socket_of[i] != kNoSocket) order_[start[socket_of[i]]++] = static_cast<std::uint16_t>(i);
  }
  std::size_t first = 0;
  for (std::size_t s = 0; s < sockets; ++s) {
    const std::size_t last = start[touched[s]];
    per_socket_[touched[s]] = 0;
    send_socket(touched[s], first, last);
    first = last;
  }
}

// `first`..`last`: positions in order_, all of one socket.
void Sender::send_socket(unsigned socket, std::size_t first, std::size_t last) noexcept {
  iovec_at_[first] = 0;
  runs_.count = 0;
  for (std::size_t i = first; i < last;) {
    sock::Path& path = *pool_.open_entry(in_[order_[i]].path);
    const std::size_t count = run_length(path, i, last);
    for (std::size_t k = 0; k < count; ++k) gather(i + k);
    add_message(runs_, path, i, count);
    i += count;
  }
  flush(socket, runs_);
}

std::size_t Sender::run_length(const sock::Path& path, std::size_t first,
                               std::size_t last) const noexcept {
  const TxDatagram& head = in_[order_[first]];
  const std::uint32_t size = bytes_[order_[first]];
  if (!features_.gso || path.no_gso || size == 0) return 1;
  const std::size_t end = std::min(last, first + features_.segments_max);
  std::uint32_t sum = size;
  std::size_t i = first + 1;
  for (; i < end; ++i) {
    const TxDatagram& next = in_[order_[i]];
    const std::uint32_t bytes = bytes_[order_[i]];
    sum += bytes;
    if (next.path != head.path || next.ecn != head.ecn || bytes > size || bytes == 0 ||
        sum > sock::kUdpPayloadBytesMax) {
      break;
    }
    if (bytes < size) return i + 1 - first;  // a shorter one ends the run
  }
  return i - first;
}

void Sender::gather(std::size_t position) noexcept {
  const TxDatagram& datagram = in_[order_[position]];
  std::size_t at = iovec_at_[position];
  add_segment(iovecs_[at++], datagram.header.data(), datagram.header_bytes);
  for (std::size_t i = 0; i < datagram.payload_count; ++i) {
    add_segment(iovecs_[at++], datagram.payload[i].data, datagram.payload[i].bytes);
  }
  iovec_at_[position + 1] = static_cast<std::uint16_t>(at);
}

void Sender::add_message(Batch& batch, sock::Path& path, std::size_t first,
                         std::size_t count) noexcept {
  const TxDatagram& head = in_[order_[first]];
  sock::ControlWriter control(batch.controls[batch.count].bytes.data());
  if (count > 1) {
    control.add(IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(bytes_[order_[first]]));
  }
  // Sockets mark ECT(0) by default.
  if (features_.ecn && head.ecn != Ecn::ect0) {
    const int bits = static_cast<int>(head.ecn);
    if (path.v4) {
      control.add(IPPROTO_IP, IP_TOS, bits);
    } else {
      control.add(IPPROTO_IPV6, IPV6_TCLASS, bits);
    }
  }
  if (path.local != 0) add_local(control, pool_.family(), pool_.local_address(path.local));

  msghdr& message = batch.headers[batch.count].msg_hdr;
  message.msg_name = &path.remote.any;
  message.msg_namelen = path.remote.bytes;
  message.msg_iov = &iovecs_[iovec_at_[first]];
  message.msg_iovlen = static_cast<std::size_t>(iovec_at_[first + count] - iovec_at_[first]);
  message.msg_control = control.bytes() == 0 ? nullptr : &batch.controls[batch.count];
  message.msg_controllen = control.bytes();
  message.msg_flags = 0;
  batch.messages[batch.count] = {&path, static_cast<std::uint16_t>(first),
                                 static_cast<std::uint16_t>(count)};
  ++batch.count;
}

void Sender::flush(unsigned socket, Batch& batch) noexcept {
  std::size_t at = 0;
  unsigned tries = 0;
  last_socket_ = socket;
  while (at < batch.count) {
    if (batch.messages[at].path->refused_in == call_) {
      refuse_message(batch.messages[at++], Errc::would_block);
      continue;
    }
    std::size_t end = at + 1;
    while (end < batch.count && batch.messages[end].path->refused_in != call_) ++end;
    const int sent = send(socket, &batch.headers[at], end - at);
    calls_made_.add();
    if (sent > 0) {
      for (int i = 0; i < sent; ++i, ++at) {
        datagrams_.add(batch.messages[at].count);
        payload_bytes_.add(batch.headers[at].msg_len);
      }
      tries = 0;
      continue;
    }
    switch (handle_error(socket, batch.messages[at], errno, tries++)) {
      case Verdict::retry:
        break;
      case Verdict::skip_message:
        ++at;
        tries = 0;
        break;
      case Verdict::stop_socket:
        for (; at < batch.count; ++at) refuse_message(batch.messages[at], Errc::would_block);
        break;
    }
  }
}

// Returns how many were sent, or -1 with the error of the first. The error of a later one stays
// hidden until it is the first of a call.
int Sender::send(unsigned socket, mmsghdr* messages, std::size_t count) noexcept {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const int fd = pool_.fd(socket);
  if (count > 1) return calls_.sendmmsg(fd, messages, static_cast<unsigned>(count), kFlags);
  // Measured: 0.1 us less than sendmmsg with one message.
  const ssize_t bytes = calls_.sendmsg(fd, &messages->msg_hdr, kFlags);
  if (bytes < 0) return -1;
  messages->msg_len = static_cast<unsigned>(bytes);
  return 1;
}

Sender::Verdict Sender::handle_error(unsigned socket, Message& message, int error,
                                     unsigned tries) noexcept {
  switch (error) {
    case EINTR:
      return Verdict::retry;
    case EAGAIN:
    case ENOMEM:
      return Verdict::stop_socket;  // the socket's send buffer is full, for all its paths
    case ENOBUFS:                   // the queue of one device is full
      refuse_message(message, Errc::would_block);
      return Verdict::skip_message;
    case EIO:
    case EINVAL:
    case EOPNOTSUPP:
      if (message.count > 1) {
        send_singly(socket, message);
        return Verdict::skip_message;
      }
      break;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENONET:
    case EPROTO:
    case ENOPROTOOPT:
    case EACCES:
    case EMSGSIZE:
      // Perhaps not about this message at all, but an ICMP error that some other peer caused. Only
      // a message that still fails with the error queue empty has failed itself.
      if (errors_.drain(socket) > 0 && error != EMSGSIZE ? tries < kTriesMax : tries == 0) {
        return Verdict::retry;
      }
      break;
    default:
      break;
  }
  refuse_message(message, send_error(error));
  return Verdict::skip_message;
}

// A device may accept UDP_SEGMENT and then fail the send (no checksum offload, IPsec, a tunnel),
// and EINVAL is also what too long segments give. Datagrams one by one tell which.
void Sender::send_singly(unsigned socket, Message& message) noexcept {
  const std::uint64_t sent_before = datagrams_.value();
  singles_.count = 0;
  for (std::size_t i = 0; i < message.count; ++i) {
    add_message(singles_, *message.path, message.first + i, 1);
  }
  flush(socket, singles_);
  if (datagrams_.value() == sent_before) return;
  gso_fallbacks_.add();
  pool_.mark_no_gso(*message.path);
}

void Sender::refuse_message(const Message& message, Errc status) noexcept {
  message.path->refused_in = call_;
  for (std::size_t i = 0; i < message.count; ++i) {
    refuse(in_[order_[message.first + i]], status);
  }
}

void Sender::refuse(const TxDatagram& datagram, Errc status) noexcept {
  refused_.add();
  if (datagram.cookie == 0) return;
  if (done_tail_ - done_head_ == kDoneMax) ++done_head_;
  done_[done_tail_++ % kDoneMax] = {datagram.cookie, status};
}

std::size_t Sender::poll_done(std::span<TxDone> out) noexcept {
  std::size_t n = 0;
  while (n < out.size() && done_head_ != done_tail_) out[n++] = done_[done_head_++ % kDoneMax];
  return n;
}

void Sender::read_counters(IoCounters& out) const noexcept {
  out.tx_datagrams = datagrams_.value();
  out.tx_bytes = payload_bytes_.value();
  out.tx_calls = calls_made_.value();
  out.tx_refused = refused_.value();
  out.gso_fallbacks = gso_fallbacks_.value();
}

}  // namespace srd::udp
