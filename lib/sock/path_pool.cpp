// SPDX-License-Identifier: Apache-2.0
#include "sock/path_pool.hpp"

#include <algorithm>

#include "base/prng.hpp"

namespace srd::sock {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kPathBuckets = 1U << 16;

std::uint64_t hash_address(const Address& address) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, address.bytes, 8);
  std::memcpy(&high, address.bytes + 8, 8);
  std::uint64_t state = low ^ (std::uint64_t{address.port} << 32) ^ address.scope;
  state = split_mix(state) ^ high;
  return split_mix(state);
}

}  // namespace

PathPool::PathPool(const Syscalls& calls, const Config& config, SocketObserver& observer) noexcept
    : calls_(calls), config_(config), observer_(observer) {}

void PathPool::close_all() noexcept {
  for (unsigned i = 0; i < kSocketsMax; ++i) {
    if (sockets_[i].fd.is_open()) close_socket(i);
  }
}

Errc PathPool::open() noexcept {
  paths_ = LazyArray<Path>(kPathsMax);
  dests_ = LazyArray<Dest>(kDestsMax);
  buckets_ = LazyArray<std::uint32_t>(kDestsMax);
  path_buckets_ = LazyArray<std::uint32_t>(kPathBuckets);
  if (!paths_.is_valid() || !dests_.is_valid() || !buckets_.is_valid() ||
      !path_buckets_.is_valid()) {
    return Errc::no_memory;
  }

  SocketWishes wishes = config_.wishes;
  wishes.local_info = is_wildcard(config_.bind);
  SocketGrants grants;
  auto fd = open_socket(calls_, config_.bind, wishes, grants);
  if (!fd) return fd.errc();
  Socket& service = sockets_[kServiceSocket];
  service.local = bound_address(fd->get());
  if (service.local.family == 0) return Errc::not_supported;
  service.fd = std::move(*fd);
  service.users = 1;  // never drains
  if (!observer_.socket_opened(kServiceSocket, service.fd.get())) return Errc::no_memory;
  return Errc::ok;
}

std::uint32_t PathPool::bucket(const Address& address) const noexcept {
  return static_cast<std::uint32_t>(hash_address(address)) % kDestsMax;
}

PathPool::Dest* PathPool::dest_entry(DestId id) noexcept {
  const auto i = static_cast<std::uint32_t>(id);
  return i < kDestsMax && dests_[i].used ? &dests_[i] : nullptr;
}

const PathPool::Dest* PathPool::dest_entry(DestId id) const noexcept {
  return const_cast<PathPool*>(this)->dest_entry(id);
}

DestId PathPool::find_dest(const Address& remote) const noexcept {
  for (std::uint32_t i = buckets_[bucket(remote)]; i != 0; i = dests_[i - 1].next) {
    if (same_address(dests_[i - 1].address, remote)) return DestId{i - 1};
  }
  return kNoDest;
}

Result<DestId> PathPool::add_dest(const Address& to) noexcept {
  SocketAddress probe{};
  if (to.port == 0 || !to_socket_address(to, family(), probe)) return Errc::no_route;
  const DestId known = find_dest(to);
  if (known != kNoDest) {
    ++dests_[static_cast<std::uint32_t>(known)].references;
    return known;
  }
  std::uint32_t index = free_dest_;
  if (index != kNone) {
    free_dest_ = dests_[index].next;
  } else if (dests_used_ < kDestsMax) {
    index = dests_used_++;
  } else {
    return Errc::no_memory;
  }
  std::uint32_t& head = buckets_[bucket(to)];
  Dest& dest = dests_[index];
  dest = Dest{};
  dest.address = to;
  dest.used = true;
  dest.references = 1;
  dest.next = head;
  head = index + 1;
  return DestId{index};
}

void PathPool::unlink_dest(std::uint32_t index) noexcept {
  std::uint32_t* link = &buckets_[bucket(dests_[index].address)];
  while (*link != 0 && *link != index + 1) link = &dests_[*link - 1].next;
  if (*link != 0) *link = dests_[index].next;
}

void PathPool::free_dest(std::uint32_t index) noexcept {
  dests_[index].used = false;
  dests_[index].next = free_dest_;
  free_dest_ = index;
}

void PathPool::forget(DestId id) noexcept {
  Dest* dest = dest_entry(id);
  if (dest == nullptr || dest->forgotten || --dest->references > 0) return;
  const auto index = static_cast<std::uint32_t>(id);
  unlink_dest(index);
  dest->forgotten = true;
  if (dest->paths == 0) free_dest(index);
}

const Address* PathPool::dest_address(DestId id) const noexcept {
  const Dest* dest = dest_entry(id);
  return dest == nullptr ? nullptr : &dest->address;
}

bool PathPool::open_pool_socket(unsigned index) noexcept {
  Address bind = config_.bind;
  bind.port = 0;
  SocketGrants grants;
  auto fd = open_socket(calls_, bind, config_.wishes, grants);
  if (!fd) return false;
  Socket& socket = sockets_[index];
  socket.local = bound_address(fd->get());
  socket.fd = std::move(*fd);
  socket.users = 0;
  if (observer_.socket_opened(index, socket.fd.get())) return true;
  socket.fd = UniqueFd();
  return false;
}

void PathPool::close_socket(unsigned index) noexcept {
  observer_.socket_closing(index, sockets_[index].fd.get());
  sockets_[index].fd = UniqueFd();
}

// Three rounds, each starting where the entropy points: ports of the configured pool that are new
// to this destination, ports beyond it (a re-roll must not fail because all of the pool is in use),
// and only then a port that is still draining.
Result<unsigned> PathPool::choose_socket(const Dest& dest, std::uint32_t entropy) noexcept {
  if (entropy == kServiceEntropy) return kServiceSocket;
  const unsigned base = std::clamp(config_.paths + config_.paths / 2U, 1U, kPoolSocketsMax);
  std::uint64_t state = config_.seed ^ entropy;
  const std::uint64_t start = split_mix(state);
  bool may_open = true;
  const auto try_range = [&](unsigned first, unsigned count, bool allow_draining) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned socket = first + static_cast<unsigned>((start + i) % count);
      if (dest.open[socket] || (!allow_draining && dest.draining[socket])) continue;
      if (sockets_[socket].fd.is_open()) return socket;
      // Out of descriptors: keep looking for a socket that is open already.
      if (may_open && open_pool_socket(socket)) return socket;
      may_open = false;
    }
    return 0U;
  };
  if (const unsigned socket = try_range(1, base, false)) return socket;
  if (base < kPoolSocketsMax) {
    if (const unsigned socket = try_range(1 + base, kPoolSocketsMax - base, false)) return socket;
  }
  if (const unsigned socket = try_range(1, kPoolSocketsMax, true)) return socket;
  return Errc::no_memory;
}

std::uint32_t PathPool::path_bucket(unsigned socket, const SocketAddress& remote) const noexcept {
  std::array<std::uint64_t, 4> words{};
  static_assert(sizeof remote.v6 <= sizeof words);
  std::memcpy(words.data(), &remote.v6, sizeof remote.v6);
  std::uint64_t hash = socket;
  for (const std::uint64_t word : words) {
    std::uint64_t state = hash ^ word;
    hash = split_mix(state);
  }
  return static_cast<std::uint32_t>(hash) % kPathBuckets;
}

void PathPool::unlink_path(std::uint32_t index) noexcept {
  std::uint32_t* link = &path_buckets_[path_bucket(paths_[index].socket, paths_[index].remote)];
  while (*link != 0 && *link != index + 1) link = &paths_[*link - 1].next;
  if (*link != 0) *link = paths_[index].next;
}

Result<PathId> PathPool::take_path(unsigned socket, const Address& remote) noexcept {
  SocketAddress to{};
  if (!to_socket_address(remote, family(), to)) return Errc::no_route;
  std::uint32_t index = free_path_;
  if (index != kNone) {
    free_path_ = paths_[index].next;
  } else if (paths_used_ < kPathsMax) {
    index = paths_used_++;
  } else {
    return Errc::no_memory;
  }
  Path& path = paths_[index];
  path = Path{};
  path.remote = to;
  path.dest = kNoDest;
  path.socket = static_cast<std::uint8_t>(socket);
  path.v4 = remote.family == 4;
  path.state = Path::State::open;
  std::uint32_t& head = path_buckets_[path_bucket(socket, to)];
  path.next = head;
  head = index + 1;
  ++sockets_[socket].users;
  return PathId{index};
}

Result<PathId> PathPool::open_path(Instant now, DestId id, std::uint32_t entropy) noexcept {
  expire(now);
  Dest* dest = dest_entry(id);
  if (dest == nullptr || dest->forgotten) return Errc::not_found;
  const auto socket = choose_socket(*dest, entropy);
  if (!socket) {
    refused_.add();
    return socket.errc();
  }
  const auto path = take_path(*socket, dest->address);
  if (!path) {
    if (*socket != kServiceSocket && sockets_[*socket].users == 0) close_socket(*socket);
    return path.errc();
  }
  Path& entry = *open_entry(*path);
  entry.dest = id;
  entry.no_gso = dest->no_gso;
  dest->open.set(*socket);
  ++dest->paths;
  return *path;
}

Result<PathId> PathPool::open_return_path(Instant now, unsigned socket, std::uint32_t local,
                                          const Address& remote) noexcept {
  expire(now);
  if (socket >= kSocketsMax || local >= locals_used_ || !sockets_[socket].fd.is_open()) {
    return Errc::not_found;
  }
  const auto path = take_path(socket, remote);
  if (path) open_entry(*path)->local = static_cast<std::uint16_t>(local);
  return path;
}

void PathPool::close_path(Instant now, PathId id) noexcept {
  expire(now);
  Path* path = open_entry(id);
  if (path == nullptr) return;
  const auto index = static_cast<std::uint32_t>(id);
  unlink_path(index);
  path->state = Path::State::draining;
  path->drained_at = now.ns + kDrainNs;
  path->next = kNone;
  if (Dest* dest = dest_entry(path->dest)) {
    dest->open.reset(path->socket);
    dest->draining.set(path->socket);
  }
  // All drain equally long: the list is in order of expiry.
  if (drain_head_ == kNone) {
    drain_head_ = index;
    next_expiry_ns_ = path->drained_at;
  } else {
    paths_[drain_tail_].next = index;
  }
  drain_tail_ = index;
}

void PathPool::expire_drained(Instant now) noexcept {
  while (drain_head_ != kNone && paths_[drain_head_].drained_at <= now.ns) {
    const std::uint32_t index = drain_head_;
    Path& path = paths_[index];
    drain_head_ = path.next;
    Socket& socket = sockets_[path.socket];
    if (--socket.users == 0) close_socket(path.socket);
    if (Dest* dest = dest_entry(path.dest)) {
      dest->draining.reset(path.socket);
      if (--dest->paths == 0 && dest->forgotten) {
        free_dest(static_cast<std::uint32_t>(path.dest));
      }
    }
    path.state = Path::State::free;
    path.next = free_path_;
    free_path_ = index;
  }
  if (drain_head_ == kNone) drain_tail_ = kNone;
  next_expiry_ns_ = drain_head_ == kNone ? UINT64_MAX : paths_[drain_head_].drained_at;
}

PathId PathPool::find_path(unsigned socket, const Address& remote) const noexcept {
  SocketAddress to{};
  if (!to_socket_address(remote, family(), to)) return kNoPath;
  for (std::uint32_t i = path_buckets_[path_bucket(socket, to)]; i != 0; i = paths_[i - 1].next) {
    const Path& path = paths_[i - 1];
    if (path.socket == socket && std::memcmp(&path.remote.v6, &to.v6, sizeof to.v6) == 0) {
      return PathId{i - 1};
    }
  }
  return kNoPath;
}

void PathPool::mark_no_gso(Path& path) noexcept {
  path.no_gso = true;
  if (Dest* dest = dest_entry(path.dest)) dest->no_gso = true;
}

unsigned PathPool::open_sockets() const noexcept {
  return static_cast<unsigned>(std::count_if(sockets_.begin(), sockets_.end(),
                                             [](const Socket& s) { return s.fd.is_open(); }));
}

std::uint32_t PathPool::intern_local(const Address& local) noexcept {
  for (std::uint32_t i = 1; i < locals_used_; ++i) {
    if (same_address(locals_[i], local)) return i;
  }
  if (locals_used_ == kLocalsMax) return 0;
  locals_[locals_used_] = local;
  return locals_used_++;
}

}  // namespace srd::sock
