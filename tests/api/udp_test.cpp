// SPDX-License-Identifier: Apache-2.0
// The veneer over real UDP sockets: what the driver has to say reaches the application.
#include <utility>

#include "api/harness.hpp"

namespace srd::test {

namespace {

class UdpTest : public ::testing::TestWithParam<const char*> {};

TEST_P(UdpTest, MessagesBothWays) {
  TwoEndpoints net({}, {}, GetParam());
  const auto payload = pattern(300'000);
  ASSERT_FALSE(net.alice.send(net.to_bob, payload));
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty() && !net.sends.empty(); }));
  EXPECT_EQ(contents(net.messages.front()), payload);
  ASSERT_FALSE(net.bob.send(net.messages.front().peer(), as_bytes("thanks")));
  ASSERT_TRUE(net.run_until([&] { return net.messages.size() == 2; }));
  EXPECT_EQ(net.messages.back().text(), "thanks");
  std::array<PathInfo, 64> room;
  const auto paths = net.alice.paths(net.to_bob, room);
  ASSERT_FALSE(paths.empty());
  EXPECT_LE(paths.size(), 4U);
  EXPECT_EQ(to_string(paths.front().remote), to_string(net.bob.address()));
}

INSTANTIATE_TEST_SUITE_P(Families, UdpTest,
                         ::testing::Values("udp:127.0.0.1?paths=4", "udp:[::1]:0?paths=4",
                                           "udp:127.0.0.1?paths=4&gso=off&gro=off&ecn=off"));

TEST(UdpErrorsTest, TakenPortNamesTheOwnerSearch) {
  Context context = Context::open("udp:127.0.0.1").value();
  Poller poller = context.make_poller().value();
  const Endpoint first = poller.make_endpoint().value();
  const auto second = poller.make_endpoint({.bind = first.address()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.errc(), Errc::address_in_use);
  EXPECT_TRUE(error_says("srd_endpoint_create: "));
  EXPECT_TRUE(error_says(to_string(first.address())));
  EXPECT_TRUE(error_says("ss -"));
}

TEST(UdpErrorsTest, ForeignAddressNamesTheInterfaceList) {
  Context context = Context::open("udp:").value();
  Poller poller = context.make_poller().value();
  const auto endpoint = poller.make_endpoint({.bind = parse_address("192.0.2.1:0").value()});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.errc(), Errc::address_unavailable);
  EXPECT_TRUE(error_says("192.0.2.1"));
  EXPECT_TRUE(error_says("ip address"));
}

TEST(UdpErrorsTest, ThrownErrorCarriesTheText) {
  try {
    (void)Context::open("udp:?speed=11").value();
    FAIL() << "was opened";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_NE(std::strstr(error.what(), "unknown option speed"), nullptr) << error.what();
  }
}

TEST(UdpErrorsTest, DevicesListTheDriver) {
  bool found = false;
  for (const DeviceInfo& device : devices()) {
    if (std::strcmp(device.driver, "udp") != 0) continue;
    found = true;
    EXPECT_EQ(device.usable, 1U) << device.advice;
    EXPECT_STREQ(device.device, "udp:");
    EXPECT_GE(device.paths_max, 1U);
    EXPECT_GE(device.datagram_bytes_max, 1232U);
    EXPECT_STREQ(device.description, "UDP sockets");
    for (const char* word : {"gso", "gro", "ecn", "timestamps", "pktinfo", "error-queue", "ipv6"}) {
      EXPECT_NE(std::strstr(device.capabilities, word), nullptr) << device.capabilities;
    }
  }
  EXPECT_TRUE(found);
}

TEST(VeneerTest, MovedFromAndEmptyObjectsAnswerWithErrors) {
  Context context = Context::open("udp:127.0.0.1").value();
  Poller poller = context.make_poller().value();
  Endpoint endpoint = poller.make_endpoint().value();
  const Endpoint moved = std::move(endpoint);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(endpoint);  // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_EQ(endpoint.send(0, ByteView()), Errc::invalid_argument);
  EXPECT_EQ(endpoint.resolve("127.0.0.1:1").errc(), Errc::invalid_argument);
  EXPECT_EQ(endpoint.address().family, 0);
  Poller none;
  std::array<Completion, 1> completions;
  std::error_code error;
  EXPECT_TRUE(none.poll(completions, error).empty());
  EXPECT_EQ(error, Errc::invalid_argument);
  EXPECT_LT(none.fd(), 0);
  EXPECT_FALSE(none.arm(error));
  EXPECT_EQ(error, Errc::invalid_argument);
  Message message;
  EXPECT_FALSE(message);
  EXPECT_EQ(message.bytes(), 0U);
  message.release();
}

TEST(VeneerTest, ErrorsCompareToStandardConditions) {
  EXPECT_EQ(make_error_code(Errc::would_block), std::errc::resource_unavailable_try_again);
  EXPECT_EQ(make_error_code(Errc::peer_unreachable), std::errc::host_unreachable);
  EXPECT_EQ(make_error_code(Errc::timed_out), std::errc::timed_out);
  EXPECT_EQ(to_error(-SRD_ERR_PEER_RESTARTED), Errc::peer_restarted);
  EXPECT_FALSE(to_error(3));
}

}  // namespace

}  // namespace srd::test
