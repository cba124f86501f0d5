// SPDX-License-Identifier: Apache-2.0
// What only the UDP driver has: fallbacks where kernel or device refuse, refusals of sends by
// cause, options, advice, error texts. The kernel at hand refuses nothing on demand, so a table of
// system calls that fails on purpose stands in front of it.
#include "udp/udp_driver.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "driver/queue_pair.hpp"
#include "sock/net.hpp"

namespace srd::test {

namespace {

/// What the stand-in does; one test at a time uses it.
struct Faults {
  int gso_error = 0;              ///< every message with UDP_SEGMENT fails so
  std::deque<int> first_errors;   ///< the next sendmmsg calls fail so, 0: do not fail
  int errors_for_port_value = 0;  ///< messages to errors_for_port fail so
  std::uint16_t errors_for_port = 0;
  std::set<std::pair<int, int>> refused_options;  ///< level, name
  int recv_error_once = 0;
  std::int64_t wall_step_s = 0;  ///< the wall clock was set by so much since the kernel's stamps
};

Faults g_faults;

bool has_segment_option(const msghdr& message) {
  bool found = false;
  sock::for_each_control(message, [&](int level, int type, const char*, std::size_t) {
    found = found || (level == IPPROTO_UDP && type == UDP_SEGMENT);
  });
  return found;
}

int message_error(const mmsghdr& message) {
  if (g_faults.gso_error != 0 && has_segment_option(message.msg_hdr)) return g_faults.gso_error;
  sockaddr_in to{};
  std::memcpy(&to, message.msg_hdr.msg_name, sizeof to);
  if (g_faults.errors_for_port != 0 && ntohs(to.sin_port) == g_faults.errors_for_port) {
    return g_faults.errors_for_port_value;
  }
  return 0;
}

// As the kernel does it: sends up to the first message that fails, and reports that message's error
// only if it is the first.
int faulty_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!g_faults.first_errors.empty()) {
    const int error = g_faults.first_errors.front();
    g_faults.first_errors.pop_front();
    if (error != 0) {
      errno = error;
      return -1;
    }
  }
  unsigned good = 0;
  while (good < count && message_error(messages[good]) == 0) ++good;
  if (good == 0) {
    errno = message_error(messages[0]);
    return -1;
  }
  return ::sendmmsg(fd, messages, good, flags);
}

ssize_t faulty_sendmsg(int fd, const msghdr* message, int flags) {
  mmsghdr one{};
  one.msg_hdr = *message;
  return faulty_sendmmsg(fd, &one, 1, flags) == 1 ? static_cast<ssize_t>(one.msg_len) : -1;
}

ssize_t faulty_recvmsg(int fd, msghdr* message, int flags) {
  if (const int error = std::exchange(g_faults.recv_error_once, 0)) {
    errno = error;
    return -1;
  }
  return ::recvmsg(fd, message, flags);
}

int faulty_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (const int error = std::exchange(g_faults.recv_error_once, 0)) {
    errno = error;
    return -1;
  }
  return ::recvmmsg(fd, messages, count, flags, timeout);
}

int faulty_setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) {
  if (g_faults.refused_options.count({level, name}) != 0) {
    errno = ENOPROTOOPT;
    return -1;
  }
  return ::setsockopt(fd, level, name, value, bytes);
}

int stepped_clock_gettime(clockid_t clock, timespec* now) {
  const int result = ::clock_gettime(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += g_faults.wall_step_s;
  return result;
}

constexpr sock::Syscalls kFaulty{&faulty_recvmsg, &faulty_recvmmsg,   &faulty_sendmmsg,
                                 &faulty_sendmsg, &faulty_setsockopt, &stepped_clock_gettime};

/// Allows so many descriptors more than are open.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(unsigned more) {
    const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest_free);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest_free) + more;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }

  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// Waits for real time; there is no other for sockets.
class LoopbackBed final : public DriverBed {
 public:
  Driver& driver() override { std::abort(); }

  Address bind_address() override { return Address{}; }

  Address reach(const PacketIo& queue) override { return queue.local_address().value(); }

  Instant now() override { return sock::monotonic_now(); }

  void wait() override { ::usleep(200); }
};

class UdpDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    g_faults = Faults{};
    options_.bind = parse_address("127.0.0.1:0").value();
    options_.syscalls = &kFaulty;
  }

  void TearDown() override { g_faults = Faults{}; }

  void open() {
    auto driver = udp::make_driver(options_);
    ASSERT_TRUE(driver);
    driver_ = std::move(*driver);
    server_ = driver_->open_queue({}).value();
    other_ = driver_->open_queue({}).value();
    client_ = driver_->open_queue({}).value();
    dest_ = client_->resolve(server_->local_address().value()).value();
    path_ = client_->open_path(dest_, 1).value();
    other_path_ =
        client_->open_path(client_->resolve(other_->local_address().value()).value(), 1).value();
  }

  void expect_delivered(PacketIo& io, const std::vector<std::uint32_t>& ids) {
    const auto in = collect(bed_, io, ids.size());
    ASSERT_EQ(in.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(id_of(in[i]), ids[i]);
      EXPECT_TRUE(is_intact(in[i]));
    }
    release(io, in);
  }

  bool advises(const std::string& words) {
    const auto advice = driver_->advice();
    return std::any_of(advice.begin(), advice.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }

  /// False: the feature is listed as missing. Fails if it is not listed at all.
  bool has(const std::string& name) {
    for (const Feature& feature : driver_->features()) {
      if (feature.name == name) return feature.present;
    }
    ADD_FAILURE() << name << " is not listed";
    return false;
  }

  udp::Options options_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<PacketIo> server_, other_, client_;
  DestId dest_ = kNoDest;
  PathId path_ = kNoPath, other_path_ = kNoPath;
  LoopbackBed bed_;
};

TEST_F(UdpDriverTest, SendsSinglyWhereADeviceAcceptsSegmentationAndThenFailsTheSend) {
  for (const int error : {EIO, EINVAL, EOPNOTSUPP}) {
    g_faults = Faults{};
    open();
    g_faults.gso_error = error;
    Outbox out;
    for (std::uint32_t i = 0; i < 10; ++i) out.add(path_, i, 500);
    out.send(*client_);
    expect_delivered(*server_, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_TRUE(collect_done(*client_).empty());
    EXPECT_EQ(client_->counters().gso_fallbacks, 1U);
    const auto advice = driver_->advice(client_->counters());
    ASSERT_EQ(advice.size(), 1U);
    EXPECT_NE(advice[0].find("refused UDP_SEGMENT (1 bursts"), std::string::npos) << advice[0];
    EXPECT_NE(advice[0].find("ethtool -k"), std::string::npos);
    EXPECT_TRUE(has("gso")) << "the kernel can; a device cannot";

    const std::uint64_t calls = client_->counters().tx_calls;
    out.send(*client_);
    expect_delivered(*server_, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_EQ(client_->counters().gso_fallbacks, 1U) << "the destination is remembered";
    EXPECT_EQ(client_->counters().tx_calls, calls + 1) << "singly, but in one system call";
    const PathId rerolled = client_->open_path(dest_, 2).value();
    out.clear();
    for (std::uint32_t i = 0; i < 10; ++i) out.add(rerolled, i, 500);
    out.send(*client_);
    expect_delivered(*server_, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_EQ(client_->counters().gso_fallbacks, 1U) << "and its later paths";
  }
}

TEST_F(UdpDriverTest, DoesNotBlameTheDeviceForSegmentsThatAreTooLong) {
  open();
  g_faults.gso_error = EINVAL;
  g_faults.errors_for_port = server_->local_address().value().port;
  g_faults.errors_for_port_value = EMSGSIZE;
  Outbox out;
  for (std::uint32_t i = 0; i < 4; ++i) out.add(path_, i, 500);
  out.send(*client_);
  EXPECT_EQ(client_->counters().gso_fallbacks, 0U);
  const auto done = collect_done(*client_);
  ASSERT_EQ(done.size(), 4U);
  EXPECT_EQ(done[0].status, Errc::message_too_long);
}

TEST_F(UdpDriverTest, FullSendBufferReturnsTheRestInOrder) {
  options_.gso = false;
  open();
  Outbox out;
  for (std::uint32_t i = 0; i < 6; ++i) out.add(path_, i, 100 + i);
  g_faults.first_errors = {EAGAIN};
  out.send(*client_);
  auto done = collect_done(*client_);
  ASSERT_EQ(done.size(), 6U);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(done[i].cookie, i + 1);
    EXPECT_EQ(done[i].status, Errc::would_block);
  }
  EXPECT_EQ(client_->counters().tx_refused, 6U);
  out.send(*client_);
  expect_delivered(*server_, {0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(collect_done(*client_).empty());
}

TEST_F(UdpDriverTest, FullSendBufferOfOnePathLeavesOthersAlone) {
  open();
  const PathId apart = client_->open_path(dest_, 2).value();  // another socket
  Outbox out;
  out.add(path_, 1, 100);
  out.add(apart, 2, 100);
  out.add(path_, 3, 100);
  g_faults.first_errors = {EAGAIN};
  out.send(*client_);
  expect_delivered(*server_, {2});
  const auto done = collect_done(*client_);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].cookie, 2U);
  EXPECT_EQ(done[1].cookie, 4U);
}

TEST_F(UdpDriverTest, RefusalsOfOnePeerOnTheSameSocketLeaveOthersAlone) {
  struct Case {
    int error;
    Errc status;
  };

  for (const Case c : {Case{ENOBUFS, Errc::would_block}, Case{EPERM, Errc::not_permitted},
                       Case{EHOSTUNREACH, Errc::no_route}, Case{EMSGSIZE, Errc::message_too_long},
                       Case{ENETDOWN, Errc::no_route}}) {
    g_faults = Faults{};
    open();
    // One socket for both: answers leave from the service socket.
    std::vector<PathId> back;
    for (PacketIo* io : {server_.get(), other_.get()}) {
      const PathId to_client =
          io->open_path(io->resolve(client_->local_address().value()).value(), 1).value();
      Outbox hello;
      hello.add(to_client, 1, 50);
      hello.send(*io);
      const auto in = collect(bed_, *client_, 1);
      ASSERT_EQ(in.size(), 1U);
      back.push_back(client_->open_return_path(in[0]).value());
      g_faults.errors_for_port = in[0].source->port;  // in the end: other_'s
      release(*client_, in);
    }
    g_faults.errors_for_port_value = c.error;
    Outbox out;
    out.add(back[0], 1, 100);
    out.add(back[1], 2, 100);
    out.add(back[0], 3, 90);
    out.add(back[1], 4, 90);
    out.add(back[0], 5, 80);
    out.send(*client_);
    expect_delivered(*server_, {1, 3, 5});
    const auto done = collect_done(*client_);
    ASSERT_EQ(done.size(), 2U) << "errno " << c.error;
    EXPECT_EQ(done[0].cookie, 3U);
    EXPECT_EQ(done[0].status, c.status) << "errno " << c.error;
    EXPECT_EQ(done[1].cookie, 5U);
    EXPECT_EQ(done[1].status, Errc::would_block);
  }
}

TEST_F(UdpDriverTest, SendsAgainWhatFailedWithTheErrorOfAnother) {
  open();
  for (const int error : {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EMSGSIZE}) {
    g_faults.first_errors = {error};
    Outbox out;
    out.add(path_, 1, 100);
    out.send(*client_);
    expect_delivered(*server_, {1});
    EXPECT_TRUE(collect_done(*client_).empty()) << "errno " << error;
  }
}

TEST_F(UdpDriverTest, ReadsOnAfterAnErrorOfAnother) {
  open();
  Outbox out;
  out.add(path_, 1, 100);
  out.send(*client_);
  g_faults.recv_error_once = ECONNREFUSED;
  expect_delivered(*server_, {1});
}

TEST_F(UdpDriverTest, WorksWithoutTheOptionsThatAKernelMayRefuse) {
  g_faults.refused_options = {
      {IPPROTO_UDP, UDP_GRO},       {IPPROTO_IP, IP_TOS},         {IPPROTO_IP, IP_RECVTOS},
      {SOL_SOCKET, SO_TIMESTAMPNS}, {SOL_SOCKET, SO_RXQ_OVFL},    {IPPROTO_IP, IP_RECVERR},
      {SOL_SOCKET, SO_RCVBUFFORCE}, {SOL_SOCKET, SO_SNDBUFFORCE}, {IPPROTO_IP, IP_PKTINFO}};
  open();
  for (const char* name : {"gro", "ecn", "timestamps", "error-queue", "drop-counter", "pktinfo"}) {
    EXPECT_FALSE(has(name)) << name;
  }
  EXPECT_TRUE(has("gso"));
  EXPECT_FALSE(driver_->capabilities().ecn);
  EXPECT_TRUE(advises("UDP_GRO"));
  EXPECT_TRUE(advises("ECN"));
  EXPECT_TRUE(advises("SO_TIMESTAMPNS"));
  EXPECT_TRUE(advises("IP_RECVERR"));
  EXPECT_TRUE(advises("IP_PKTINFO"));
  EXPECT_TRUE(advises("SO_RXQ_OVFL"));
  Outbox out;
  for (std::uint32_t i = 0; i < 5; ++i) out.add(path_, i, 300, Ecn::ce);
  out.send(*client_);
  const auto in = collect(bed_, *server_, 5);
  ASSERT_EQ(in.size(), 5U);
  for (const RxDatagram& d : in) {
    EXPECT_TRUE(d.burst_start) << "without GRO each has its own buffer";
    EXPECT_EQ(d.ecn, Ecn::not_ect) << "a device that does not mark must not claim to";
    EXPECT_NE(d.arrived.ns, 0U);
  }
  release(*server_, in);
}

TEST_F(UdpDriverTest, ListsEveryFeatureOfThisKernel) {
  open();
  for (const char* name :
       {"gso", "gro", "ecn", "timestamps", "error-queue", "drop-counter", "pktinfo"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_EQ(driver_->features().size(), 8U);  // and ipv6, which a host may do without
  EXPECT_EQ(driver_->description(), "UDP sockets");
}

// Sandboxes emulate the option and refuse to send with it.
TEST_F(UdpDriverTest, DoesNotUseSegmentationThatTheKernelRefusesOverLoopback) {
  g_faults.gso_error = EINVAL;
  open();
  EXPECT_EQ(driver_->capabilities().tx_burst_segments_max, 1U);
  EXPECT_FALSE(has("gso"));
  EXPECT_TRUE(advises("UDP_SEGMENT"));
  Outbox out;
  for (std::uint32_t i = 0; i < 5; ++i) out.add(path_, i, 300);
  out.send(*client_);
  expect_delivered(*server_, {0, 1, 2, 3, 4});
  EXPECT_EQ(client_->counters().gso_fallbacks, 0U) << "it was not even tried";
}

TEST_F(UdpDriverTest, TakesSixtyFourSegmentsWhereTheKernelRefusesMore) {
  g_faults.first_errors = {EINVAL};  // the first burst of the probe
  open();
  EXPECT_EQ(driver_->capabilities().tx_burst_segments_max, 64U);
  EXPECT_TRUE(has("gso"));
}

TEST_F(UdpDriverTest, DoesNotTakeAFirewallForALackOfSegmentation) {
  g_faults.first_errors = {EPERM};
  open();
  EXPECT_EQ(driver_->capabilities().tx_burst_segments_max, 64U);
  EXPECT_TRUE(has("gso"));
}

TEST_F(UdpDriverTest, NamesTheSysctlWhenALimitedBufferDroppedDatagrams) {
  g_faults.refused_options = {{SOL_SOCKET, SO_RCVBUFFORCE}, {SOL_SOCKET, SO_RCVBUF}};
  options_.rcvbuf_bytes = 512U << 20;
  open();
  IoCounters counted;
  EXPECT_TRUE(driver_->advice(counted).empty()) << "nothing was dropped yet";
  counted.rx_host_drops = 12;
  const auto advice = driver_->advice(counted);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_NE(advice[0].find("12"), std::string::npos);
  EXPECT_NE(advice[0].find("sysctl -w net.core.rmem_max=536870912"), std::string::npos);
}

TEST_F(UdpDriverTest, DropsOfABufferAsLongAsWishedAreNotTheSysctlsFault) {
  g_faults.refused_options = {{SOL_SOCKET, SO_RCVBUFFORCE}};
  options_.rcvbuf_bytes = 16384;
  open();
  IoCounters counted;
  counted.rx_host_drops = 12;
  EXPECT_TRUE(driver_->advice(counted).empty());
}

TEST_F(UdpDriverTest, SteppedWallClockMovesNoArrivalOutOfItsTime) {
  open();
  for (const std::int64_t step_s : {0, 100, -100}) {
    g_faults.wall_step_s = step_s;
    for (int i = 0; i < 25; ++i)
      bed_.wait();  // the driver reads the wall clock once per millisecond
    RxDatagram none;
    ASSERT_EQ(server_->rx_burst({&none, 1}), 0U);  // seen empty: nothing arrived before
    const Instant empty = bed_.now();
    for (int i = 0; i < 25; ++i) bed_.wait();
    Outbox out;
    out.add(path_, 1, 64);
    out.send(*client_);
    const Instant sent = bed_.now();
    for (int i = 0; i < 25; ++i) bed_.wait();
    const auto in = collect(bed_, *server_, 1);
    const Instant read = bed_.now();
    ASSERT_EQ(in.size(), 1U);
    // The tightest reading of two clocks is off by microseconds.
    EXPECT_GE(in[0].arrived.ns + 100'000, empty.ns) << "step " << step_s;
    EXPECT_LE(in[0].arrived.ns, step_s == 0 ? sent.ns + 1'000'000 : read.ns) << "step " << step_s;
    release(*server_, in);
  }
}

TEST_F(UdpDriverTest, SwitchedOffFeaturesAreNotUsed) {
  options_.gso = false;
  options_.gro = false;
  options_.ecn = false;
  options_.datagram_bytes = 1400;
  open();
  const Capabilities can = driver_->capabilities();
  EXPECT_EQ(can.tx_burst_segments_max, 1U);
  EXPECT_EQ(can.datagram_bytes_max, 1400U);
  EXPECT_FALSE(can.ecn);
  EXPECT_EQ(client_->datagram_bytes(dest_), 1400U);
  EXPECT_FALSE(advises("UDP_SEGMENT")) << "what the user switched off is no shortcoming";
  EXPECT_FALSE(advises("UDP_GRO"));
  g_faults.gso_error = EIO;
  Outbox out;
  for (std::uint32_t i = 0; i < 5; ++i) out.add(path_, i, 300, Ecn::ce);
  out.send(*client_);
  const auto in = collect(bed_, *server_, 5);
  ASSERT_EQ(in.size(), 5U);
  for (const RxDatagram& d : in) EXPECT_EQ(d.ecn, Ecn::not_ect);
  release(*server_, in);
  EXPECT_EQ(client_->counters().gso_fallbacks, 0U);
}

TEST_F(UdpDriverTest, NamesTheSysctlThatLimitsSocketBuffers) {
  g_faults.refused_options = {{SOL_SOCKET, SO_RCVBUFFORCE},
                              {SOL_SOCKET, SO_RCVBUF},
                              {SOL_SOCKET, SO_SNDBUFFORCE},
                              {SOL_SOCKET, SO_SNDBUF}};
  options_.rcvbuf_bytes = 512U << 20;  // above any default
  options_.sndbuf_bytes = 512U << 20;
  open();
  EXPECT_LT(driver_->capabilities().rx_buffer_bytes, 4U << 20);
  EXPECT_TRUE(advises("sysctl -w net.core.rmem_max=536870912"));
  EXPECT_TRUE(advises("sysctl -w net.core.wmem_max=536870912"));
}

TEST_F(UdpDriverTest, ExplainsWhyAQueueCannotBeOpened) {
  open();
  QueueConfig config;
  config.bind = server_->local_address().value();
  EXPECT_EQ(driver_->open_queue(config).errc(), Errc::address_in_use);
  EXPECT_NE(driver_->last_error().find("ss -ulpn"), std::string::npos) << driver_->last_error();
  config.bind = parse_address("192.0.2.77:0").value();  // RFC 5737
  EXPECT_EQ(driver_->open_queue(config).errc(), Errc::address_unavailable);
  EXPECT_NE(driver_->last_error().find("192.0.2.77"), std::string::npos);
  config = QueueConfig{};
  config.paths = 65;
  EXPECT_EQ(driver_->open_queue(config).errc(), Errc::invalid_argument);
  EXPECT_NE(driver_->last_error().find("paths=65"), std::string::npos);
}

TEST_F(UdpDriverTest, QueueWithoutDescriptorsNamesTheLimit) {
  open();
  // UBSan looks at memory through a pipe when it meets a type in a place for the first time, and
  // there will be none.
  ASSERT_TRUE(driver_->open_queue({}));
  for (const unsigned left : {0U, 1U}) {
    const DescriptorLimit limit(left);
    EXPECT_EQ(driver_->open_queue({}).errc(), Errc::too_many_files) << left << " left";
    EXPECT_NE(driver_->last_error().find("ulimit -n"), std::string::npos) << driver_->last_error();
  }
  EXPECT_TRUE(driver_->open_queue({}));
}

TEST_F(UdpDriverTest, PathsWithoutDescriptorsAreCountedAndAdvisedOn) {
  open();
  {
    const DescriptorLimit limit(2);
    std::uint32_t opened = 0;
    for (std::uint32_t entropy = 2; entropy < 10; ++entropy) {
      if (client_->open_path(dest_, entropy)) ++opened;
    }
    EXPECT_LE(opened, 3U);  // one by the socket that the other destination uses
    EXPECT_EQ(client_->counters().paths_refused, 8 - opened);
  }
  const auto advice = driver_->advice(client_->counters());
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_NE(advice[0].find("ulimit -n"), std::string::npos) << advice[0];
  EXPECT_TRUE(client_->open_path(dest_, 20));
}

TEST_F(UdpDriverTest, ChecksOptionsAgainstTheirLimits) {
  const auto refused = [&](auto change) {
    udp::Options bad = options_;
    change(bad);
    return udp::make_driver(bad).errc() == Errc::invalid_argument;
  };
  EXPECT_TRUE(refused([](udp::Options& o) { o.paths = 0; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.paths = 65; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.rcvbuf_bytes = 1; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.sndbuf_bytes = 2U << 30; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.datagram_bytes = 100; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.datagram_bytes = 65508; }));
  EXPECT_TRUE(refused([](udp::Options& o) { o.bind.family = 9; }));
  EXPECT_TRUE(udp::make_driver(options_));
}

// 300 KB into a socket that takes far less, nobody reading.
TEST_F(UdpDriverTest, CountsWhatTheSocketBufferDropped) {
  g_faults.refused_options = {{SOL_SOCKET, SO_RCVBUFFORCE}};
  options_.rcvbuf_bytes = 16384;
  options_.gso = false;
  open();
  Outbox out;
  for (std::uint32_t i = 0; i < 300; ++i) out.add(path_, i, 1000);
  out.send(*client_);
  const std::size_t before = discard(bed_, *server_);
  EXPECT_LT(before, 300U);
  out.clear();
  out.add(path_, 1, 10);  // the kernel tells with the next datagram
  out.send(*client_);
  EXPECT_EQ(discard(bed_, *server_), 1U);
  EXPECT_EQ(server_->counters().rx_host_drops, 300 - before);
}

TEST_F(UdpDriverTest, TellsHowFullTheSocketBufferIs) {
  options_.gso = false;
  open();
  EXPECT_EQ(server_->rx_fill(), 0U);
  Outbox out;
  for (std::uint32_t i = 0; i < 120; ++i) out.add(path_, i, 65000);
  out.send(*client_);
  RxDatagram in[1];
  ASSERT_EQ(server_->rx_burst(in), 1U);
  server_->rx_release({&in[0].buffer, 1});
  EXPECT_GT(server_->rx_fill(), 50U);
  discard(bed_, *server_);
  EXPECT_EQ(server_->rx_fill(), 0U);
}

TEST_F(UdpDriverTest, BindsBothFamiliesByDefault) {
  options_.bind = Address{};
  auto driver = udp::make_driver(options_);
  ASSERT_TRUE(driver);
  auto queue = (*driver)->open_queue({});
  ASSERT_TRUE(queue);
  if ((*queue)->local_address().value().family == 4) GTEST_SKIP() << "this host has no IPv6";
  for (const char* text : {"127.0.0.1:9", "[::1]:9"}) {
    const auto dest = (*queue)->resolve(parse_address(text).value());
    ASSERT_TRUE(dest) << text;
    EXPECT_EQ((*queue)->datagram_bytes(*dest), text[0] == '[' ? 65536U - 48 : 65507U);
  }
}

}  // namespace

}  // namespace srd::test
