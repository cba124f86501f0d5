// SPDX-License-Identifier: Apache-2.0
// Source ports and paths in virtual time: choice, re-roll, draining, limits.
#include "sock/path_pool.hpp"

#include <set>

#include <gtest/gtest.h>

namespace srd::sock {

namespace {

class PathPoolTest : public testing::Test, public SocketObserver {
 protected:
  void SetUp() override { make(4); }

  void make(std::uint16_t paths) {
    if (pool_ != nullptr) pool_->close_all();
    PathPool::Config config;
    config.bind = parse_address("127.0.0.1:0").value();
    config.paths = paths;
    pool_ = std::make_unique<PathPool>(kernel_syscalls(), config, *this);
    ASSERT_EQ(pool_->open(), Errc::ok);
  }

  void TearDown() override { pool_->close_all(); }

  DestId dest(std::uint16_t port) {
    Address to = parse_address("127.0.0.1:0").value();
    to.port = port;
    return pool_->add_dest(to).value();
  }

  unsigned socket_of(PathId path) { return pool_->open_entry(path)->socket; }

  std::uint16_t port_of(PathId path) { return pool_->socket_address(socket_of(path)).port; }

  static Instant at_ms(std::uint64_t ms) { return Instant{ms * 1'000'000}; }

  bool socket_opened(unsigned, int) noexcept override {
    ++opened_;
    return !refuse_sockets_;
  }

  void socket_closing(unsigned index, int) noexcept override { closed_.insert(index); }

  std::unique_ptr<PathPool> pool_;
  unsigned opened_ = 0;
  bool refuse_sockets_ = false;
  std::multiset<unsigned> closed_;
};

TEST_F(PathPoolTest, OpensSocketsOnlyWhenPathsNeedThem) {
  EXPECT_EQ(pool_->open_sockets(), 1U) << "an idle server needs its service socket only";
  ASSERT_TRUE(pool_->open_path(at_ms(0), dest(1000), 1));
  EXPECT_EQ(pool_->open_sockets(), 2U);
}

TEST_F(PathPoolTest, SharesSocketsBetweenDestinations) {
  for (std::uint16_t port = 1; port <= 1000; ++port) {
    for (std::uint32_t entropy = 0; entropy < 4; ++entropy) {
      ASSERT_TRUE(pool_->open_path(at_ms(0), dest(port), entropy));
    }
  }
  EXPECT_LE(pool_->open_sockets(), 1U + 4 + 2) << "paths + paths / 2 ports and the service port";
}

TEST_F(PathPoolTest, NeverGivesOneDestinationTheSameSocketTwice) {
  make(64);
  std::set<unsigned> used;
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(used.insert(socket_of(pool_->open_path(at_ms(0), dest(7), i).value())).second);
  }
}

TEST_F(PathPoolTest, EntropyChoosesTheSocket) {
  make(32);
  std::set<unsigned> chosen;
  for (std::uint16_t port = 1; port <= 64; ++port) {
    chosen.insert(socket_of(pool_->open_path(at_ms(0), dest(port), port).value()));
  }
  EXPECT_GE(chosen.size(), 24U) << "64 draws from 48 sockets leave about 12 untouched";
  const unsigned first = socket_of(pool_->open_path(at_ms(0), dest(1001), 5).value());
  EXPECT_EQ(socket_of(pool_->open_path(at_ms(0), dest(1002), 5).value()), first);
}

TEST_F(PathPoolTest, RerollsToNewPortsBeyondThePoolWhileOldOnesDrain) {
  const DestId to = dest(7);
  std::set<std::uint16_t> ports;
  PathId path = pool_->open_path(at_ms(0), to, 1).value();
  ports.insert(port_of(path));
  for (std::uint32_t i = 0; i < 50; ++i) {
    pool_->close_path(at_ms(1), path);
    path = pool_->open_path(at_ms(1), to, 1).value();  // not even other entropy
    EXPECT_TRUE(ports.insert(port_of(path)).second) << "re-roll " << i;
  }
}

TEST_F(PathPoolTest, ReusesADrainingSocketRatherThanFail) {
  const DestId to = dest(7);
  for (std::uint32_t i = 0; i < 3 * PathPool::kPoolSocketsMax; ++i) {
    const auto path = pool_->open_path(at_ms(0), to, i);
    ASSERT_TRUE(path) << i;
    pool_->close_path(at_ms(0), *path);
  }
  EXPECT_EQ(pool_->open_sockets(), PathPool::kSocketsMax);
}

TEST_F(PathPoolTest, FailsWhenEverySocketHasAnOpenPathToTheDestination) {
  const DestId to = dest(7);
  for (std::uint32_t i = 0; i < PathPool::kPoolSocketsMax; ++i) {
    ASSERT_TRUE(pool_->open_path(at_ms(0), to, i));
  }
  EXPECT_EQ(pool_->open_path(at_ms(0), to, 0).errc(), Errc::no_memory);
  EXPECT_TRUE(pool_->open_path(at_ms(0), dest(8), 0)) << "others are not concerned";
}

TEST_F(PathPoolTest, ReceivesForASecondAfterTheLastPathClosed) {
  const PathId path = pool_->open_path(at_ms(0), dest(7), 1).value();
  const unsigned socket = socket_of(path);
  pool_->close_path(at_ms(100), path);
  pool_->expire(at_ms(1099));
  EXPECT_GE(pool_->fd(socket), 0);
  EXPECT_EQ(closed_.count(socket), 0U);
  pool_->expire(at_ms(1100));
  EXPECT_LT(pool_->fd(socket), 0);
  EXPECT_EQ(closed_.count(socket), 1U) << "the observer must hear of it";
}

TEST_F(PathPoolTest, KeepsASocketThatAnotherPathUses) {
  const PathId a = pool_->open_path(at_ms(0), dest(7), 1).value();
  const PathId b = pool_->open_path(at_ms(0), dest(8), 1).value();
  ASSERT_EQ(socket_of(a), socket_of(b));
  const unsigned socket = socket_of(a);
  pool_->close_path(at_ms(0), a);
  pool_->expire(at_ms(5000));
  EXPECT_GE(pool_->fd(socket), 0);
  EXPECT_NE(pool_->open_entry(b), nullptr);
}

TEST_F(PathPoolTest, DoesNotReuseAPathIdWhileItDrains) {
  const PathId path = pool_->open_path(at_ms(0), dest(7), 1).value();
  pool_->close_path(at_ms(0), path);
  EXPECT_NE(pool_->open_path(at_ms(999), dest(7), 2).value(), path);
  EXPECT_EQ(pool_->open_path(at_ms(1000), dest(7), 3).value(), path) << "afterwards it is free";
}

TEST_F(PathPoolTest, ClosingTwiceIsHarmless) {
  const PathId path = pool_->open_path(at_ms(0), dest(7), 1).value();
  pool_->close_path(at_ms(0), path);
  pool_->close_path(at_ms(1), path);
  pool_->expire(at_ms(2000));
  pool_->close_path(at_ms(2000), path);
  pool_->expire(at_ms(9000));
  EXPECT_EQ(pool_->open_sockets(), 1U);
}

TEST_F(PathPoolTest, ForgottenDestinationsAreReusedWhenTheirPathsHaveDrained) {
  const DestId to = dest(7);
  const PathId path = pool_->open_path(at_ms(0), to, 1).value();
  pool_->forget(to);
  EXPECT_NE(dest(7), to) << "the address gets a new id";
  EXPECT_NE(dest(9), to) << "still in use by a path";
  pool_->close_path(at_ms(0), path);
  pool_->expire(at_ms(1000));
  EXPECT_EQ(dest(10), to);
}

// A forged packet from a known address makes a second user of it, and its end must not be the first
// one's.
TEST_F(PathPoolTest, ADestinationLivesAsLongAsItsLastUser) {
  const DestId mine = dest(1000);
  EXPECT_EQ(dest(1000), mine);
  pool_->forget(mine);
  EXPECT_TRUE(pool_->open_path(at_ms(0), mine, 1));
  EXPECT_NE(dest(1001), mine);
  pool_->forget(mine);
  EXPECT_FALSE(pool_->open_path(at_ms(0), mine, 2));
}

TEST_F(PathPoolTest, FindsDestinationsAmongMany) {
  std::vector<DestId> ids;
  for (std::uint16_t port = 1; port <= 20000; ++port) ids.push_back(dest(port));
  for (std::uint16_t port = 2; port <= 20000; port = static_cast<std::uint16_t>(port + 2)) {
    pool_->forget(ids[port - 1U]);
  }
  Address to = parse_address("127.0.0.1:0").value();
  for (std::uint16_t port = 1; port <= 20000; ++port) {
    to.port = port;
    EXPECT_EQ(pool_->find_dest(to), port % 2 == 1 ? ids[port - 1U] : kNoDest);
  }
}

TEST_F(PathPoolTest, ReturnPathsFillTheTableAndThenFail) {
  const Address remote = parse_address("127.0.0.1:9").value();
  std::vector<PathId> paths;
  for (std::uint32_t i = 0; i < PathPool::kPathsMax; ++i) {
    const auto path = pool_->open_return_path(at_ms(0), PathPool::kServiceSocket, 0, remote);
    ASSERT_TRUE(path) << i;
    paths.push_back(*path);
  }
  EXPECT_EQ(pool_->open_return_path(at_ms(0), 0, 0, remote).errc(), Errc::no_memory);
  EXPECT_EQ(pool_->open_path(at_ms(0), dest(7), 1).errc(), Errc::no_memory);
  EXPECT_EQ(pool_->open_sockets(), 1U) << "no socket stays open for a path that could not be made";
  pool_->close_path(at_ms(0), paths[17]);
  EXPECT_EQ(pool_->open_return_path(at_ms(1000), 0, 0, remote).value(), paths[17]);
}

TEST_F(PathPoolTest, FindsOpenPathsBySocketAndRemote) {
  std::vector<PathId> paths;
  Address remote = parse_address("127.0.0.1:0").value();
  for (std::uint16_t port = 1; port <= 5000; ++port) {
    remote.port = port;
    paths.push_back(pool_->open_return_path(at_ms(0), 0, 0, remote).value());
  }
  for (std::uint16_t port = 2; port <= 5000; port = static_cast<std::uint16_t>(port + 2)) {
    pool_->close_path(at_ms(0), paths[port - 1U]);
  }
  for (std::uint16_t port = 1; port <= 5000; ++port) {
    remote.port = port;
    EXPECT_EQ(pool_->find_path(0, remote), port % 2 == 1 ? paths[port - 1U] : kNoPath);
    EXPECT_EQ(pool_->find_path(1, remote), kNoPath);
  }
}

TEST_F(PathPoolTest, RefusesReturnPathsOfUnknownSockets) {
  const Address remote = parse_address("127.0.0.1:9").value();
  EXPECT_EQ(pool_->open_return_path(at_ms(0), 5, 0, remote).errc(), Errc::not_found);
  EXPECT_EQ(pool_->open_return_path(at_ms(0), 200, 0, remote).errc(), Errc::not_found);
  EXPECT_EQ(pool_->open_return_path(at_ms(0), 0, 77, remote).errc(), Errc::not_found);
}

TEST_F(PathPoolTest, UsesOpenSocketsWhenNoMoreCanBeOpened) {
  const PathId first = pool_->open_path(at_ms(0), dest(7), 1).value();
  refuse_sockets_ = true;
  EXPECT_EQ(socket_of(pool_->open_path(at_ms(0), dest(8), 99).value()), socket_of(first));
  EXPECT_EQ(pool_->open_path(at_ms(0), dest(7), 2).errc(), Errc::no_memory);
}

TEST_F(PathPoolTest, RemembersLocalAddressesUpToALimit) {
  const Address local = parse_address("127.0.0.2:0").value();
  const std::uint32_t index = pool_->intern_local(local);
  EXPECT_NE(index, 0U);
  EXPECT_EQ(pool_->intern_local(local), index);
  Address other = local;
  for (std::uint32_t i = 0; i < PathPool::kLocalsMax; ++i) {
    other.bytes[2] = static_cast<std::uint8_t>(i);
    other.bytes[3] = 9;
    pool_->intern_local(other);
  }
  other.bytes[1] = 1;
  EXPECT_EQ(pool_->intern_local(other), 0U) << "full: the kernel chooses";
  EXPECT_EQ(pool_->intern_local(local), index);
}

TEST_F(PathPoolTest, RefusesDestinationsOfAnotherFamilyOrWithoutPort) {
  EXPECT_EQ(pool_->add_dest(parse_address("[::1]:7").value()).errc(), Errc::no_route);
  EXPECT_EQ(pool_->add_dest(parse_address("127.0.0.1:0").value()).errc(), Errc::no_route);
}

}  // namespace

}  // namespace srd::sock
