// SPDX-License-Identifier: Apache-2.0
// The contract of a driver (include/srd/driver.hpp, docs/DRIVERS.md) in executable form: one suite,
// run over every entry of driver_beds(). What a driver or this host lacks is skipped with the
// reason.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "driver/driver_beds.hpp"
#include "driver/queue_pair.hpp"
#include "support/allocation_count.hpp"

namespace srd::test {

namespace {

class DriverConformance : public testing::TestWithParam<DriverBedEntry> {
 protected:
  void SetUp() override {
    std::string why_not;
    bed_ = GetParam().make(why_not);
    if (bed_ == nullptr) GTEST_SKIP() << GetParam().name << ": " << why_not;
    can_ = bed_->driver().capabilities();
    server_ = open({});
    client_ = open({});
    ASSERT_NE(server_, nullptr) << bed_->driver().last_error();
    ASSERT_NE(client_, nullptr) << bed_->driver().last_error();
    dest_ = client_->resolve(bed_->reach(*server_)).value();
    path_ = client_->open_path(dest_, 1).value();
  }

  std::unique_ptr<PacketIo> open(QueueConfig config) {
    if (config.bind.family == 0) config.bind = bed_->bind_address();
    auto queue = bed_->driver().open_queue(config);
    return queue ? std::move(*queue) : nullptr;
  }

  std::unique_ptr<DriverBed> bed_;
  Capabilities can_;
  std::unique_ptr<PacketIo> server_, client_;
  DestId dest_ = kNoDest;
  PathId path_ = kNoPath;
};

TEST_P(DriverConformance, DeliversBurstsOfEverySize) {
  for (std::uint32_t n = 1; n <= 128; ++n) {
    Outbox out;
    for (std::uint32_t i = 0; i < n; ++i) out.add(path_, i, 200);
    out.send(*client_);
    const auto in = collect(*bed_, *server_, n, 1 + n % 67);
    ASSERT_EQ(in.size(), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(id_of(in[i]), i) << "order within a path, burst of " << n;
      ASSERT_EQ(in[i].bytes, 200U);
      ASSERT_TRUE(is_intact(in[i]));
    }
    release(*server_, in);
  }
  EXPECT_TRUE(collect_done(*client_).empty());
}

TEST_P(DriverConformance, KeepsSizesAndOrderOfMixedBurstsOnSeveralPaths) {
  const PathId other = client_->open_path(dest_, 2).value();
  const std::uint32_t sizes[] = {64, 1408, 1408, 1408, 300, 1, 1200, 1200, 1200, 1201, 5, 5, 5};
  Outbox out;
  std::vector<std::uint32_t> size_of;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::uint32_t size = std::max<std::uint32_t>(4, sizes[i % std::size(sizes)]);
    size_of.push_back(size);
    out.add(i / 3 % 2 == 0 ? path_ : other, i, size);
  }
  out.send(*client_);
  const auto in = collect(*bed_, *server_, 400);
  ASSERT_EQ(in.size(), 400U);
  std::map<std::uint64_t, std::uint32_t> newest;
  std::set<std::uint32_t> seen;
  for (const RxDatagram& d : in) {
    const std::uint32_t id = id_of(d);
    ASSERT_LT(id, 400U);
    EXPECT_TRUE(seen.insert(id).second) << "datagram " << id << " came twice";
    EXPECT_EQ(d.bytes, size_of[id]);
    EXPECT_TRUE(is_intact(d));
    if (newest.count(d.flow) != 0) {
      EXPECT_GT(id, newest[d.flow]) << "reordered within a path";
    }
    newest[d.flow] = id;
  }
  EXPECT_EQ(newest.size(), 2U) << "flow must tell the two paths apart, and nothing else";
  release(*server_, in);
}

TEST_P(DriverConformance, LeavesBuffersUntouchedUntilReleased) {
  std::vector<RxDatagram> held;
  for (std::uint32_t round = 0; round < 50; ++round) {
    Outbox out;
    for (std::uint32_t i = 0; i < 10; ++i) out.add(path_, round * 10 + i, 700);
    out.send(*client_);
    const auto in = collect(*bed_, *server_, 10);
    ASSERT_EQ(in.size(), 10U);
    // Keep one of each buffer's datagrams, release its neighbours.
    held.push_back(in[3]);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (i != 3) server_->rx_release({&in[i].buffer, 1});
    }
  }
  for (std::uint32_t round = 0; round < 50; ++round) {
    EXPECT_EQ(id_of(held[round]), round * 10 + 3);
    EXPECT_TRUE(is_intact(held[round]));
    ASSERT_NE(held[round].source, nullptr);
    EXPECT_EQ(held[round].source->family, bed_->reach(*client_).family);
  }
  release(*server_, held);
}

TEST_P(DriverConformance, StopsWithoutFreeBuffersAndGoesOnAfterRelease) {
  constexpr std::uint32_t kBuffers = 16;
  QueueConfig config;
  config.rx_buffers = kBuffers;
  auto small = open(config);
  ASSERT_NE(small, nullptr);
  const PathId path = client_->open_path(client_->resolve(bed_->reach(*small)).value(), 1).value();
  // Rising sizes: no two are joined into one buffer.
  Outbox out;
  for (std::uint32_t i = 0; i < 2 * kBuffers; ++i) out.add(path, i, 100 + i);
  out.send(*client_);
  const auto first = collect(*bed_, *small, kBuffers);
  ASSERT_EQ(first.size(), kBuffers);
  EXPECT_FALSE(first.front().scarce);
  EXPECT_TRUE(first.back().scarce) << "less than a quarter of the buffers was free";
  RxDatagram none[4];
  EXPECT_EQ(small->rx_burst(none), 0U);
  EXPECT_GT(small->counters().rx_starved, 0U);
  if (can_.can_sleep) {
    EXPECT_EQ(small->arm(), Arm::armed) << "a sleeper that cannot read must not spin";
    pollfd p{small->event_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&p, 1, 10), 0);
  }
  release(*small, first);
  const auto second = collect(*bed_, *small, kBuffers);
  ASSERT_EQ(second.size(), kBuffers);
  for (std::uint32_t i = 0; i < kBuffers; ++i) EXPECT_EQ(id_of(second[i]), kBuffers + i);
  release(*small, second);
}

TEST_P(DriverConformance, MarksTheFirstDatagramOfEachBuffer) {
  Outbox out;
  for (std::uint32_t i = 0; i < 40; ++i) out.add(path_, i, 500);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, 40, 7);
  ASSERT_EQ(in.size(), 40U);
  std::set<BufferId> buffers;
  for (const RxDatagram& d : in) {
    EXPECT_EQ(d.burst_start, buffers.insert(d.buffer).second);
  }
  release(*server_, in);
}

TEST_P(DriverConformance, TakesEverySizeUpToTheRoutesAndRefusesLonger) {
  const std::uint32_t most = client_->datagram_bytes(dest_);
  ASSERT_GE(most, 1232U);
  ASSERT_LE(most, can_.datagram_bytes_max);
  Outbox out;
  const std::uint32_t sizes[] = {0, 1, 96, most - 1, most};
  for (const std::uint32_t size : sizes) out.add(path_, 0, size);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, std::size(sizes));
  ASSERT_EQ(in.size(), std::size(sizes));
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(in[i].bytes, sizes[i]);
    EXPECT_TRUE(is_intact(in[i]));
  }
  release(*server_, in);
  EXPECT_TRUE(collect_done(*client_).empty());

  out.clear();
  out.add(path_, 7, most + 1);
  out.add(path_, 8, 100);
  out.send(*client_);
  const auto done = collect_done(*client_);
  ASSERT_EQ(done.size(), 2U) << "later datagrams of the path come back as well, in order";
  EXPECT_EQ(done[0].cookie, 8U);
  EXPECT_EQ(done[0].status, Errc::message_too_long);
  EXPECT_EQ(done[1].cookie, 9U);
  EXPECT_EQ(done[1].status, Errc::would_block);
  EXPECT_EQ(discard(*bed_, *server_), 0U);
}

TEST_P(DriverConformance, KeepsHealthyPeersFreeOfTheErrorsOfOthers) {
  const auto refusing = bed_->refusing_address();
  if (!refusing) GTEST_SKIP() << GetParam().name << " has no address that refuses";
  const PathId dead = client_->open_path(client_->resolve(*refusing).value(), 1).value();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Outbox out;
    if (i % 3 == 0) out.add(path_, 2 * i, 100);  // both in one call, both orders, and apart
    out.add(dead, 2 * i, 100);
    if (i % 3 == 1) out.add(path_, 2 * i, 100);
    out.send(*client_);
    if (i % 3 == 2) {
      Outbox later;
      later.add(path_, 2 * i, 100);
      later.send(*client_);
    }
    const auto in = collect(*bed_, *server_, 1);
    ASSERT_EQ(in.size(), 1U) << "round " << i;
    release(*server_, in);
  }
  EXPECT_TRUE(collect_done(*client_).empty()) << "nothing was refused by this host";
}

TEST_P(DriverConformance, ReportsRefusalsAsEventsOfTheirPath) {
  const auto refusing = bed_->refusing_address();
  if (!refusing) GTEST_SKIP() << GetParam().name << " has no address that refuses";
  const DestId dest = client_->resolve(*refusing).value();
  const PathId dead = client_->open_path(dest, 1).value();
  Outbox out;
  out.add(dead, 77, 100);
  out.send(*client_);
  PathEvent event;
  std::size_t events = 0;
  for (int i = 0; i < 1000 && events == 0; ++i) {
    bed_->wait();
    RxDatagram none[1];
    EXPECT_EQ(client_->rx_burst(none), 0U);
    events = client_->poll_path_events({&event, 1});
  }
  ASSERT_EQ(events, 1U);
  EXPECT_EQ(event.kind, PathEvent::Kind::refused);
  EXPECT_EQ(event.path, dead);
  EXPECT_EQ(event.dest, dest);
  ASSERT_GE(event.quoted_bytes, 4U);
  std::uint32_t quoted = 0;
  std::memcpy(&quoted, event.quoted.data(), sizeof quoted);
  EXPECT_EQ(quoted, 77U);
  EXPECT_GT(client_->counters().icmp_errors, 0U);
}

TEST_P(DriverConformance, RefusesUnknownAndClosedPaths) {
  const PathId closed = client_->open_path(dest_, 9).value();
  client_->close_path(closed);
  Outbox out;
  out.add(kNoPath, 1, 50);
  out.add(closed, 2, 50);
  out.add(PathId{12345}, 3, 50).cookie = 0;
  out.add(path_, 4, 50);
  out.send(*client_);
  const auto done = collect_done(*client_);
  ASSERT_EQ(done.size(), 2U) << "without a cookie nothing comes back";
  EXPECT_EQ(done[0].cookie, 2U);
  EXPECT_EQ(done[0].status, Errc::no_route);
  EXPECT_EQ(done[1].cookie, 3U);
  EXPECT_EQ(client_->counters().tx_refused, 3U);
  const auto in = collect(*bed_, *server_, 1);
  ASSERT_EQ(in.size(), 1U);
  EXPECT_EQ(id_of(in[0]), 4U);
  release(*server_, in);
  client_->close_path(closed);  // harmless
  client_->close_path(kNoPath);
}

TEST_P(DriverConformance, ResolvesAnAddressToOneDestination) {
  EXPECT_EQ(client_->resolve(bed_->reach(*server_)).value(), dest_);
  const DestId other = client_->resolve(bed_->reach(*client_)).value();
  EXPECT_NE(other, dest_);
  EXPECT_EQ(client_->resolve(Address{}).errc(), Errc::no_route);
  client_->forget(other);
  EXPECT_EQ(client_->open_path(other, 1).errc(), Errc::not_found);
  EXPECT_EQ(client_->open_path(DestId{54321}, 1).errc(), Errc::not_found);
  EXPECT_EQ(client_->datagram_bytes(DestId{54321}), 0U);
  // Paths that are open outlive the name.
  client_->forget(dest_);
  Outbox out;
  out.add(path_, 5, 50);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, 1);
  EXPECT_EQ(in.size(), 1U);
  release(*server_, in);
}

// Ports (or whatever makes a flow) as the receiver sees them.
TEST_P(DriverConformance, GivesEachPathItsOwnFlowAndANewOneOnReroll) {
  if (can_.paths_max < 2) GTEST_SKIP() << GetParam().name << " has one path per destination";
  const std::size_t paths = std::min<std::size_t>(can_.paths_max, 32);
  std::vector<PathId> open{path_};
  for (std::uint32_t i = 1; i < paths; ++i) {
    open.push_back(client_->open_path(dest_, i * 7919).value());
  }
  std::set<std::uint64_t> flows;
  const auto flow_of = [&](PathId path) {
    Outbox out;
    out.add(path, 1, 64);
    out.send(*client_);
    const auto in = collect(*bed_, *server_, 1);
    EXPECT_EQ(in.size(), 1U);
    if (in.empty()) return std::uint64_t{0};
    release(*server_, in);
    return in[0].flow;
  };
  for (const PathId path : open) {
    EXPECT_TRUE(flows.insert(flow_of(path)).second) << "two paths share a flow";
    Address local{}, remote{};
    ASSERT_TRUE(client_->describe_path(path, local, remote));
    EXPECT_TRUE(same_address(remote, bed_->reach(*server_)));
    EXPECT_EQ(local.family, remote.family);
  }
  for (std::uint32_t round = 0; round < 40; ++round) {
    PathId& path = open[round % open.size()];
    client_->close_path(path);
    path = client_->open_path(dest_, 1000 + round).value();
    EXPECT_TRUE(flows.insert(flow_of(path)).second) << "re-roll " << round << " gave an old flow";
  }
}

TEST_P(DriverConformance, StillReceivesOnAPathJustClosed) {
  Outbox out;
  out.add(path_, 1, 64);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, 1);
  ASSERT_EQ(in.size(), 1U);
  const PathId back = server_->open_return_path(in[0]).value();
  release(*server_, in);
  client_->close_path(path_);
  out.clear();
  out.add(back, 2, 64);
  out.send(*server_);
  const auto answer = collect(*bed_, *client_, 1);
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(id_of(answer[0]), 2U);
  release(*client_, answer);
}

TEST_P(DriverConformance, AnswersOnTheReversedPath) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    const PathId path = client_->open_path(dest_, 100 + i).value();
    Outbox out;
    out.add(path, i, 64);
    out.send(*client_);
    const auto in = collect(*bed_, *server_, 1);
    ASSERT_EQ(in.size(), 1U);
    const PathId back = server_->open_return_path(in[0]).value();
    release(*server_, in);
    out.clear();
    out.add(back, 50 + i, 64);
    out.send(*server_);
    const auto answer = collect(*bed_, *client_, 1);
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_TRUE(same_address(*answer[0].source, bed_->reach(*server_)));
    // Whoever answers the answer ends at the service address again.
    const PathId forth = client_->open_return_path(answer[0]).value();
    release(*client_, answer);
    Address local_a{}, remote_a{}, local_b{}, remote_b{};
    ASSERT_TRUE(client_->describe_path(path, local_a, remote_a));
    ASSERT_TRUE(client_->describe_path(forth, local_b, remote_b));
    EXPECT_EQ(local_a.port, local_b.port) << "same 5-tuple as the path it began with";
    EXPECT_TRUE(same_address(remote_a, remote_b));
  }
}

TEST_P(DriverConformance, AnswersFromTheAddressTheDatagramCameTo) {
  const auto second = bed_->second_address(0);
  if (!second) GTEST_SKIP() << GetParam().name << " has no second address on this host";
  QueueConfig config;
  config.bind = second->bind;
  auto wildcard = open(config);
  ASSERT_NE(wildcard, nullptr) << bed_->driver().last_error();
  const Address to = bed_->second_address(wildcard->local_address().value().port)->reach;
  const PathId path = client_->open_path(client_->resolve(to).value(), 1).value();
  Outbox out;
  out.add(path, 1, 64);
  out.send(*client_);
  const auto in = collect(*bed_, *wildcard, 1);
  ASSERT_EQ(in.size(), 1U);
  const PathId back = wildcard->open_return_path(in[0]).value();
  release(*wildcard, in);
  Address local{}, remote{};
  ASSERT_TRUE(wildcard->describe_path(back, local, remote));
  EXPECT_TRUE(same_address(local, to));
  out.clear();
  out.add(back, 2, 64);
  out.send(*wildcard);
  const auto answer = collect(*bed_, *client_, 1);
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_TRUE(same_address(*answer[0].source, to)) << to_string(*answer[0].source);
  release(*client_, answer);
}

TEST_P(DriverConformance, CarriesEcnBitsPerDatagram) {
  if (!can_.ecn) GTEST_SKIP() << GetParam().name << " does not read or set ECN bits here";
  const Ecn marks[] = {Ecn::ect0, Ecn::not_ect, Ecn::ce, Ecn::ce, Ecn::ect0, Ecn::ect1};
  Outbox out;
  for (std::uint32_t i = 0; i < std::size(marks); ++i) out.add(path_, i, 300, marks[i]);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, std::size(marks));
  ASSERT_EQ(in.size(), std::size(marks));
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i].ecn, marks[i]) << "datagram " << i;
  release(*server_, in);
}

TEST_P(DriverConformance, TellsWhenDatagramsArrived) {
  const Instant before = bed_->now();
  Outbox out;
  out.add(path_, 1, 64);
  out.send(*client_);
  const Instant sent = bed_->now();
  while (bed_->now().ns < sent.ns + 5'000'000) bed_->wait();
  const auto in = collect(*bed_, *server_, 1);
  ASSERT_EQ(in.size(), 1U);
  release(*server_, in);
  if (in[0].arrived.ns == 0) GTEST_SKIP() << GetParam().name << " does not know arrival times";
  // Wall clock and monotonic clock are read one after the other, and a preemption may come between.
  EXPECT_GE(in[0].arrived.ns + 100'000, before.ns);
  // The time it then waited to be read is not part of the way.
  EXPECT_LE(in[0].arrived.ns, sent.ns + 1'000'000);
}

TEST_P(DriverConformance, CountsWhatItMoved) {
  Outbox out;
  for (std::uint32_t i = 0; i < 64; ++i) out.add(path_, i, 1000);
  out.send(*client_);
  const auto in = collect(*bed_, *server_, 64);
  ASSERT_EQ(in.size(), 64U);
  release(*server_, in);
  const IoCounters tx = client_->counters();
  const IoCounters rx = server_->counters();
  EXPECT_EQ(tx.tx_datagrams, 64U);
  EXPECT_EQ(tx.tx_bytes, 64000U);
  EXPECT_EQ(tx.tx_refused, 0U);
  EXPECT_EQ(rx.rx_datagrams, 64U);
  EXPECT_EQ(rx.rx_bytes, 64000U);
  EXPECT_EQ(rx.rx_host_drops + rx.rx_truncated + rx.rx_starved, 0U);
  if (can_.tx_burst_segments_max > 1) {
    EXPECT_LE(tx.tx_calls, 2U) << "64 datagrams are one burst";
  }
}

// A receiver that sleeps whenever arm() allows it, against a sender that waits for each answer and
// then sends at once: every round has the race between "nothing there" and "sleep".
TEST_P(DriverConformance, LosesNoWakeUp) {
  if (!can_.can_sleep) GTEST_SKIP() << GetParam().name << " cannot sleep";
  constexpr std::uint32_t kRounds = 3000;
  std::atomic<std::uint32_t> lost_at{UINT32_MAX};
  const auto wait_for_one = [&](PacketIo& io, RxDatagram& out) {
    for (;;) {
      if (io.rx_burst({&out, 1}) == 1) return true;
      if (io.arm() != Arm::armed) continue;
      pollfd p{io.event_fd(), POLLIN, 0};
      if (::poll(&p, 1, 2000) == 0) return false;
    }
  };
  std::thread responder([&] {
    PathId back = kNoPath;
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      RxDatagram in;
      if (!wait_for_one(*server_, in)) {
        lost_at = i;
        return;
      }
      if (back == kNoPath) back = server_->open_return_path(in).value();
      server_->rx_release({&in.buffer, 1});
      Outbox out;
      out.add(back, i, 64);
      out.send(*server_);
    }
  });
  for (std::uint32_t i = 0; i < kRounds && lost_at == UINT32_MAX; ++i) {
    Outbox out;
    out.add(path_, i, 64);
    out.send(*client_);
    RxDatagram in;
    if (!wait_for_one(*client_, in)) {
      lost_at = i;
      break;
    }
    client_->rx_release({&in.buffer, 1});
  }
  responder.join();
  EXPECT_EQ(lost_at, UINT32_MAX) << "slept through a datagram";
}

TEST_P(DriverConformance, ArmsOnlyWhenNothingIsLeft) {
  if (!can_.can_sleep) GTEST_SKIP() << GetParam().name << " cannot sleep";
  EXPECT_EQ(server_->arm(), Arm::armed);
  Outbox out;
  for (std::uint32_t i = 0; i < 8; ++i) out.add(path_, i, 200);
  out.send(*client_);
  pollfd p{server_->event_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&p, 1, 2000), 1);
  std::vector<RxDatagram> in;
  while (in.size() < 8) {
    ASSERT_EQ(server_->arm(), Arm::work_pending) << "after " << in.size() << " of 8";
    RxDatagram one;
    ASSERT_EQ(server_->rx_burst({&one, 1}), 1U);
    in.push_back(one);
  }
  EXPECT_EQ(server_->arm(), Arm::armed);
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  release(*server_, in);
}

TEST_P(DriverConformance, ClosesWithDatagramsInFlight) {
  Outbox out;
  for (std::uint32_t i = 0; i < 128; ++i) out.add(path_, i, 1000);
  out.send(*client_);
  RxDatagram in[5];
  server_->rx_burst(in);  // some on loan, some handed over in part, the rest unread
  server_.reset();
  out.send(*client_);
  client_.reset();
  // The device is unharmed.
  server_ = open({});
  client_ = open({});
  const PathId path =
      client_->open_path(client_->resolve(bed_->reach(*server_)).value(), 1).value();
  out.clear();
  out.add(path, 3, 10);
  out.send(*client_);
  const auto again = collect(*bed_, *server_, 1);
  EXPECT_EQ(again.size(), 1U);
  release(*server_, again);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(DriverConformance, OpensAndClosesWithoutLeaks) {
  const std::size_t before = open_descriptors();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    auto queue = open({});
    ASSERT_NE(queue, nullptr) << "round " << i << ": " << bed_->driver().last_error();
    const DestId dest = queue->resolve(bed_->reach(*server_)).value();
    const PathId path = queue->open_path(dest, i).value();
    if (i % 2 == 0) queue->close_path(path);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(DriverConformance, ClosesItsDescriptorsInExecutedPrograms) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    const std::string target = std::filesystem::is_symlink(entry.path())
                                   ? std::filesystem::read_symlink(entry.path()).string()
                                   : "";
    if (target.rfind("socket:", 0) != 0 && target != "anon_inode:[eventpoll]") continue;
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << target << " is inherited by exec";
  }
}

TEST_P(DriverConformance, AllocatesNothingInBursts) {
  const PathId other = client_->open_path(dest_, 2).value();
  Outbox out;
  for (std::uint32_t i = 0; i < 128; ++i) out.add(i % 16 < 8 ? path_ : other, i, 1000);
  out.send(*client_);
  std::vector<RxDatagram> in(128);
  std::vector<TxDone> done(16);
  std::vector<PathEvent> events(4);
  std::size_t received = 0;
  const std::uint64_t before = allocation_count();
  for (int round = 0; round < 200; ++round) {
    out.send(*client_);
    client_->tx_done(done);
    client_->poll_path_events(events);
    const std::size_t n = server_->rx_burst(in);
    for (std::size_t i = 0; i < n; ++i) server_->rx_release({&in[i].buffer, 1});
    server_->arm();
    received += n;
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_GT(received, 0U);
}

INSTANTIATE_TEST_SUITE_P(Drivers, DriverConformance, testing::ValuesIn(driver_beds()),
                         [](const auto& bed) { return std::string(bed.param.name); });

}  // namespace

}  // namespace srd::test
