// SPDX-License-Identifier: Apache-2.0
// Every argument of every C function used wrongly: an error return with a text that names the
// argument, its value, the limit and what to do; never an abort.
#include <cerrno>
#include <climits>
#include <vector>

#include "srd/srd.h"

#include "api/harness.hpp"

namespace srd::test {

namespace {

class MisuseTest : public PairTest {
 protected:
  MisuseTest() {
    EXPECT_EQ(srd_context_open("pair:", nullptr, &context_), 0);
    EXPECT_EQ(srd_poller_create(context_, nullptr, &poller_), 0);
    EXPECT_EQ(srd_endpoint_create(poller_, nullptr, &endpoint_), 0);
    EXPECT_EQ(srd_endpoint_create(poller_, nullptr, &other_), 0);
    srd_address address{};
    EXPECT_EQ(srd_endpoint_address(other_, &address), 0);
    EXPECT_EQ(srd_peer_resolve(endpoint_, &address, &peer_), 0);
  }

  ~MisuseTest() override {
    srd_endpoint_destroy(endpoint_);
    srd_endpoint_destroy(other_);
    EXPECT_EQ(srd_poller_destroy(poller_), 0);
    EXPECT_EQ(srd_context_close(context_), 0);
  }

  // The endpoint configuration with one field set.
  template <class Field>
  int create_with(Field srd_endpoint_config::*field, Field value) {
    srd_endpoint_config config = SRD_ENDPOINT_CONFIG_INIT;
    config.*field = value;
    srd_endpoint* made = nullptr;
    const int status = srd_endpoint_create(poller_, &config, &made);
    EXPECT_EQ(made, nullptr);
    return status;
  }

  int send_with(const srd_send_options& options) {
    const srd_iov piece = {"x", 1};
    return srd_send(endpoint_, peer_, &piece, 1, &options);
  }

  srd_context* context_ = nullptr;
  srd_poller* poller_ = nullptr;
  srd_endpoint* endpoint_ = nullptr;
  srd_endpoint* other_ = nullptr;
  srd_peer peer_ = SRD_NO_PEER;
};

#define EXPECT_FAILS(call, error, ...)                               \
  do {                                                               \
    EXPECT_EQ(call, -(error)) << #call;                              \
    for (const char* part : std::vector<const char*>{__VA_ARGS__}) { \
      EXPECT_TRUE(error_says(part)) << #call;                        \
    }                                                                \
  } while (0)

TEST_F(MisuseTest, ContextOpenNamesTheNullArgument) {
  srd_context* out = nullptr;
  EXPECT_FAILS(srd_context_open(nullptr, nullptr, &out), EINVAL, "srd_context_open",
               "device is NULL");
  EXPECT_FAILS(srd_context_open("pair:", nullptr, nullptr), EINVAL, "out is NULL");
}

TEST_F(MisuseTest, ContextOpenQuotesAWrongDeviceAndListsTheRightOnes) {
  srd_context* out = nullptr;
  EXPECT_FAILS(srd_context_open("", nullptr, &out), EINVAL, "no driver name", "udp:");
  EXPECT_FAILS(srd_context_open("udp", nullptr, &out), EINVAL, "\"udp\"", "before a colon");
  EXPECT_FAILS(srd_context_open("tcp:", nullptr, &out), ENODEV, "\"tcp:\"", "known are: udp, pair");
  EXPECT_FAILS(srd_context_open("udp:localhost:7000", nullptr, &out), EINVAL, "localhost",
               "not resolved");
  EXPECT_FAILS(srd_context_open("udp:1.2.3.4:70000", nullptr, &out), EINVAL, "70000", "65535");
  EXPECT_EQ(out, nullptr);
}

TEST_F(MisuseTest, ContextOpenQuotesAWrongOptionWithItsRange) {
  srd_context* out = nullptr;
  EXPECT_FAILS(srd_context_open("udp:?path=3", nullptr, &out), EINVAL, "unknown option path",
               "options are: paths=1..64", "gso=on|off");
  EXPECT_FAILS(srd_context_open("udp:?paths=65", nullptr, &out), EINVAL, "paths=65", "1..64");
  EXPECT_FAILS(srd_context_open("udp:?paths=x", nullptr, &out), EINVAL, "paths=x", "1..64");
  EXPECT_FAILS(srd_context_open("udp:?gso=maybe", nullptr, &out), EINVAL, "gso=maybe", "on or off");
  EXPECT_FAILS(srd_context_open("udp:?gso=on&gso=off", nullptr, &out), EINVAL, "gso", "twice");
  EXPECT_FAILS(srd_context_open("udp:?gso", nullptr, &out), EINVAL, "gso", "name=value");
  EXPECT_EQ(out, nullptr);
}

TEST_F(MisuseTest, ContextOpenRefusesUnknownFlagsAndRawConfigurations) {
  srd_context* out = nullptr;
  srd_context_config config = SRD_CONTEXT_CONFIG_INIT;
  config.flags = 4;
  EXPECT_FAILS(srd_context_open("pair:", &config, &out), EINVAL, "unknown flags 0x4");
  config = {};
  EXPECT_FAILS(srd_context_open("pair:", &config, &out), EINVAL, "struct_bytes", "_INIT");
  EXPECT_EQ(out, nullptr);
}

TEST_F(MisuseTest, ContextOpenRefusesDevicesThatTheCoreCannotServe) {
  srd_context* out = nullptr;
  EXPECT_FAILS(srd_context_open("pair:?reliable=on", nullptr, &out), ENOTSUP, "pair:?reliable=on",
               "retransmits by itself", "srd-info");
  EXPECT_FAILS(srd_context_open("pair:?regions=on", nullptr, &out), ENOTSUP, "pair:?regions=on",
               "registered memory only");
  EXPECT_EQ(out, nullptr);
}

TEST_F(MisuseTest, ContextCloseNamesTheFunctionThatComesFirst) {
  EXPECT_EQ(srd_context_close(nullptr), 0);
  EXPECT_FAILS(srd_context_close(context_), EBUSY, "1 of its pollers", "srd_poller_destroy");
}

TEST_F(MisuseTest, PollerCreateRefusesNullsFlagsAndReservedFields) {
  srd_poller* out = nullptr;
  EXPECT_FAILS(srd_poller_create(nullptr, nullptr, &out), EINVAL, "context is NULL");
  EXPECT_FAILS(srd_poller_create(context_, nullptr, nullptr), EINVAL, "out is NULL");
  srd_poller_config config = SRD_POLLER_CONFIG_INIT;
  config.flags = 2;
  EXPECT_FAILS(srd_poller_create(context_, &config, &out), EINVAL, "unknown flags 0x2");
  config = SRD_POLLER_CONFIG_INIT;
  config.reserved = 3;
  EXPECT_FAILS(srd_poller_create(context_, &config, &out), EINVAL, "reserved is 3", "_INIT");
  EXPECT_EQ(out, nullptr);
}

TEST_F(MisuseTest, PollerDestroyNamesTheFunctionThatComesFirst) {
  EXPECT_EQ(srd_poller_destroy(nullptr), 0);
  EXPECT_FAILS(srd_poller_destroy(poller_), EBUSY, "2 of its endpoints", "srd_endpoint_destroy");
}

TEST_F(MisuseTest, PollerCallsNameTheNullArgument) {
  srd_completion done;
  EXPECT_FAILS(srd_poller_poll(nullptr, &done, 1), EINVAL, "srd_poller_poll", "poller is NULL");
  EXPECT_FAILS(srd_poller_poll(poller_, nullptr, 3), EINVAL, "out is NULL", "3");
  EXPECT_EQ(srd_poller_poll(poller_, nullptr, 0), 0);
  EXPECT_FAILS(srd_poller_flush(nullptr), EINVAL, "poller is NULL");
  EXPECT_FAILS(srd_poller_wait(nullptr, &done, 1, 0), EINVAL, "poller is NULL");
  EXPECT_FAILS(srd_poller_wait(poller_, nullptr, 1, 0), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_poller_arm(nullptr), EINVAL, "poller is NULL");
  EXPECT_FAILS(srd_poller_fd(nullptr), EINVAL, "poller is NULL");
  EXPECT_FAILS(srd_poller_wake(nullptr), EINVAL, "poller is NULL");
}

TEST_F(MisuseTest, PollerWaitRefusesToWaitForNothing) {
  srd_completion done;
  EXPECT_FAILS(srd_poller_wait(poller_, &done, 0, 0), EINVAL, "capacity is 0", "at least 1");
}

TEST_F(MisuseTest, DeviceThatCannotSleepSaysSoAndStillPolls) {
  srd_context* context = nullptr;
  srd_poller* poller = nullptr;
  srd_completion done;
  ASSERT_EQ(srd_context_open("pair:?sleep=off", nullptr, &context), 0);
  ASSERT_EQ(srd_poller_create(context, nullptr, &poller), 0);
  EXPECT_FAILS(srd_poller_wait(poller, &done, 1, 0), ENOTSUP, "cannot sleep", "srd_poller_poll");
  EXPECT_FAILS(srd_poller_arm(poller), ENOTSUP, "\"pair:?sleep=off\"");
  EXPECT_FAILS(srd_poller_fd(poller), ENOTSUP, "cannot sleep");
  EXPECT_FAILS(srd_poller_wake(poller), ENOTSUP, "cannot sleep");
  EXPECT_EQ(srd_poller_poll(poller, &done, 1), 0);
  EXPECT_EQ(srd_poller_destroy(poller), 0);
  EXPECT_EQ(srd_context_close(context), 0);
}

TEST_F(MisuseTest, EndpointCreateNamesTheNullArgument) {
  srd_endpoint* out = nullptr;
  EXPECT_FAILS(srd_endpoint_create(nullptr, nullptr, &out), EINVAL, "poller is NULL");
  EXPECT_FAILS(srd_endpoint_create(poller_, nullptr, nullptr), EINVAL, "out is NULL");
}

TEST_F(MisuseTest, EndpointCreateQuotesEachFieldWithItsRange) {
  using Config = srd_endpoint_config;
  EXPECT_FAILS(create_with(&Config::struct_bytes, std::size_t{3}), EINVAL, "struct_bytes", "3");
  EXPECT_FAILS(create_with(&Config::flags, std::uint64_t{1}), EINVAL, "unknown flags 0x1");
  EXPECT_FAILS(create_with(&Config::paths, std::uint16_t{65}), EINVAL, "config->paths is 65",
               "1 to 64");
  EXPECT_FAILS(create_with(&Config::max_ack_delay_us, std::uint16_t{10001}), EINVAL,
               "max_ack_delay_us is 10001", "10000");
  EXPECT_FAILS(create_with(&Config::max_message_bytes, (1U << 30) + 1), EINVAL,
               "max_message_bytes is 1073741825");
  EXPECT_FAILS(create_with(&Config::receive_pool_bytes, std::uint64_t{4096}), EINVAL,
               "receive_pool_bytes is 4096", "1048576");
  EXPECT_FAILS(create_with(&Config::receive_pool_bytes, std::uint64_t{1} << 20), EINVAL,
               "max_message_bytes (16777216)", "(1048576)", "wait for each other");
  EXPECT_FAILS(create_with(&Config::max_peers, 65537U), EINVAL, "max_peers is 65537");
  EXPECT_FAILS(create_with(&Config::max_sends, (1U << 20) + 1), EINVAL, "max_sends is 1048577");
  EXPECT_FAILS(create_with(&Config::peer_timeout_ms, 1U), EINVAL, "peer_timeout_ms is 1", "100 to");
  EXPECT_FAILS(create_with(&Config::connect_timeout_ms, 3'600'001U), EINVAL, "connect_timeout_ms");
}

TEST_F(MisuseTest, EndpointCreateQuotesAWrongBindAddress) {
  using Config = srd_endpoint_config;
  srd_address bind{};
  bind.family = 9;
  EXPECT_FAILS(create_with(&Config::bind, static_cast<const srd_address*>(&bind)), EINVAL,
               "bind->family is 9");
  ASSERT_EQ(srd_endpoint_address(endpoint_, &bind), 0);
  EXPECT_FAILS(create_with(&Config::bind, static_cast<const srd_address*>(&bind)), EADDRINUSE,
               "srd_endpoint_create: pair: port");
}

TEST_F(MisuseTest, EndpointCreateRefusesADeviceWithTooShortDatagrams) {
  srd_context* context = nullptr;
  srd_poller* poller = nullptr;
  srd_endpoint* out = nullptr;
  ASSERT_EQ(srd_context_open("pair:?datagram_bytes=500", nullptr, &context), 0);
  ASSERT_EQ(srd_poller_create(context, nullptr, &poller), 0);
  EXPECT_FAILS(srd_endpoint_create(poller, nullptr, &out), EINVAL, "pair:?datagram_bytes=500",
               "500 bytes", "at least 1232");
  EXPECT_EQ(srd_poller_destroy(poller), 0);
  EXPECT_EQ(srd_context_close(context), 0);
}

TEST_F(MisuseTest, ReadingAnEndpointNamesTheNullArgument) {
  srd_address address;
  srd_limits limits = SRD_LIMITS_INIT;
  srd_stats stats{};
  char text[8];
  srd_endpoint_destroy(nullptr);
  EXPECT_FAILS(srd_endpoint_address(nullptr, &address), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_endpoint_address(endpoint_, nullptr), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_endpoint_limits(nullptr, &limits), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_endpoint_limits(endpoint_, nullptr), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_endpoint_stats(nullptr, &stats), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_endpoint_stats(endpoint_, nullptr), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_endpoint_advice(nullptr, text, sizeof text), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_endpoint_advice(endpoint_, nullptr, 1), EINVAL, "out is NULL");
}

TEST_F(MisuseTest, ReadingAnEndpointNeedsTheSizeOfTheStruct) {
  srd_limits limits = SRD_LIMITS_INIT;
  limits.struct_bytes = 4;
  EXPECT_FAILS(srd_endpoint_limits(endpoint_, &limits), EINVAL, "struct_bytes is 4", "sizeof");
  srd_stats stats{};
  EXPECT_FAILS(srd_endpoint_stats(endpoint_, &stats), EINVAL, "struct_bytes is 0");
  stats.struct_bytes = SIZE_MAX;  // never initialised: must not be written to
  EXPECT_FAILS(srd_endpoint_stats(endpoint_, &stats), EINVAL, "out->struct_bytes");
}

TEST_F(MisuseTest, ResolveNamesTheNullArgument) {
  srd_peer out = SRD_NO_PEER;
  srd_address address{};
  ASSERT_EQ(srd_endpoint_address(other_, &address), 0);
  EXPECT_FAILS(srd_peer_resolve(nullptr, &address, &out), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_peer_resolve(endpoint_, nullptr, &out), EINVAL, "address is NULL");
  EXPECT_FAILS(srd_peer_resolve(endpoint_, &address, nullptr), EINVAL, "out is NULL");
}

TEST_F(MisuseTest, ResolveSaysWhyAnAddressIsNoDestination) {
  srd_peer out = SRD_NO_PEER;
  srd_address address{};
  ASSERT_EQ(srd_endpoint_address(other_, &address), 0);
  srd_address wrong = address;
  wrong.family = 0;
  EXPECT_FAILS(srd_peer_resolve(endpoint_, &wrong, &out), EINVAL, "family is 0", "4 or 6");
  wrong = address;
  wrong.port = 0;
  EXPECT_FAILS(srd_peer_resolve(endpoint_, &wrong, &out), EINVAL, "port is 0");
  wrong = address;
  std::memset(wrong.bytes, 0, sizeof wrong.bytes);
  EXPECT_FAILS(srd_peer_resolve(endpoint_, &wrong, &out), EINVAL, "wildcard");
  wrong.family = 6;
  wrong.bytes[15] = 1;
  EXPECT_FAILS(srd_peer_resolve(endpoint_, &wrong, &out), EHOSTUNREACH, "no route from",
               "one family");
  EXPECT_EQ(out, SRD_NO_PEER);
}

TEST_F(MisuseTest, PeerCallsNameTheNullArgument) {
  srd_peer_info info{};
  info.struct_bytes = sizeof info;
  srd_path_info paths[1];
  EXPECT_FAILS(srd_peer_forget(nullptr, peer_), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_peer_query(nullptr, peer_, &info), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_peer_query(endpoint_, peer_, nullptr), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_peer_paths(nullptr, peer_, paths, 1, sizeof paths[0]), EINVAL,
               "endpoint is NULL");
  EXPECT_FAILS(srd_peer_paths(endpoint_, peer_, nullptr, 1, sizeof paths[0]), EINVAL,
               "out is NULL");
}

TEST_F(MisuseTest, PeerCallsQuoteAHandleThatIsNone) {
  srd_peer_info info{};
  info.struct_bytes = sizeof info;
  srd_path_info paths[1];
  EXPECT_FAILS(srd_peer_forget(endpoint_, SRD_NO_PEER), ENOENT, "peer 4294967295");
  EXPECT_FAILS(srd_peer_query(endpoint_, 77, &info), ENOENT, "peer 77", "srd_peer_resolve");
  EXPECT_FAILS(srd_peer_paths(endpoint_, 77, paths, 1, sizeof paths[0]), ENOENT, "peer 77");
}

TEST_F(MisuseTest, ReadingAPeerNeedsTheSizeOfTheStruct) {
  srd_peer_info info{};
  info.struct_bytes = 1;
  EXPECT_FAILS(srd_peer_query(endpoint_, peer_, &info), EINVAL, "struct_bytes is 1");
  srd_path_info paths[1];
  EXPECT_FAILS(srd_peer_paths(endpoint_, peer_, paths, 1, 8), EINVAL, "entry_bytes is 8", "sizeof");
}

TEST_F(MisuseTest, ResolveNamesTheLimitOfPeersAndForgetMakesRoom) {
  srd_endpoint_config config = SRD_ENDPOINT_CONFIG_INIT;
  config.max_peers = 2;
  srd_endpoint* small = nullptr;
  ASSERT_EQ(srd_endpoint_create(poller_, &config, &small), 0);
  srd_address address{};
  ASSERT_EQ(srd_address_parse("127.0.0.1:1", &address), 0);
  srd_peer peer = SRD_NO_PEER;
  EXPECT_EQ(srd_peer_resolve(small, &address, &peer), 0);
  address.port = 2;
  EXPECT_EQ(srd_peer_resolve(small, &address, &peer), 0);
  address.port = 3;
  EXPECT_FAILS(srd_peer_resolve(small, &address, &peer), ENOMEM, "127.0.0.1:3", "max_peers 2");
  EXPECT_EQ(srd_peer_forget(small, peer), 0);
  EXPECT_EQ(srd_peer_resolve(small, &address, &peer), 0);
  srd_endpoint_destroy(small);
}

TEST_F(MisuseTest, SendNamesTheWrongArgument) {
  std::vector<srd_iov> iov(9, srd_iov{"x", 1});
  EXPECT_FAILS(srd_send(nullptr, peer_, iov.data(), 1, nullptr), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_send(endpoint_, SRD_NO_PEER, iov.data(), 1, nullptr), ENOENT, "peer 4294967295");
  EXPECT_FAILS(srd_send(endpoint_, peer_, nullptr, 1, nullptr), EINVAL, "iov is NULL");
  iov[1].data = nullptr;
  EXPECT_FAILS(srd_send(endpoint_, peer_, iov.data(), 2, nullptr), EINVAL, "iov[1].data is NULL");
}

TEST_F(MisuseTest, SendNamesTheLimitOfPiecesAndOfLength) {
  std::vector<srd_iov> iov(9, srd_iov{"x", 1});
  EXPECT_FAILS(srd_send(endpoint_, peer_, iov.data(), 9, nullptr), EINVAL, "iov_count 9",
               "iov_max 8");
  iov[1] = {"x", (16U << 20)};
  EXPECT_FAILS(srd_send(endpoint_, peer_, iov.data(), 2, nullptr), EMSGSIZE,
               "max_message_bytes 16777216", "split it");
  iov[0].bytes = SIZE_MAX;  // a sum that would wrap
  iov[1].bytes = SIZE_MAX;
  EXPECT_FAILS(srd_send(endpoint_, peer_, iov.data(), 2, nullptr), EMSGSIZE, "max_message_bytes");
}

TEST_F(MisuseTest, SendNamesTheLimitOfCopies) {
  srd_send_options options = SRD_SEND_OPTIONS_INIT;
  options.flags = SRD_SEND_COPY;
  srd_limits limits = SRD_LIMITS_INIT;
  ASSERT_EQ(srd_endpoint_limits(endpoint_, &limits), 0);
  const std::vector<std::byte> payload(limits.copy_bytes_max + 1);
  const srd_iov piece = {payload.data(), payload.size()};
  EXPECT_FAILS(srd_send(endpoint_, peer_, &piece, 1, &options), EMSGSIZE, "copy_bytes_max",
               "without SRD_SEND_COPY");
}

TEST_F(MisuseTest, SendRefusesUnknownFlagsAndRawOptions) {
  srd_send_options options = SRD_SEND_OPTIONS_INIT;
  options.flags = 0x80;
  EXPECT_FAILS(send_with(options), EINVAL, "unknown flags 0x80");
  options.struct_bytes = 0;
  EXPECT_FAILS(send_with(options), EINVAL, "struct_bytes", "_INIT");
  options = SRD_SEND_OPTIONS_INIT;
  options.reserved = 5;
  EXPECT_FAILS(send_with(options), EINVAL, "reserved is 5");
}

TEST_F(MisuseTest, RefusedSendQueuesNothing) {
  srd_send_options options = SRD_SEND_OPTIONS_INIT;
  options.flags = 0x80;
  EXPECT_EQ(send_with(options), -EINVAL);
  EXPECT_EQ(srd_send(endpoint_, SRD_NO_PEER, nullptr, 0, nullptr), -ENOENT);
  EXPECT_EQ(srd_poller_poll(poller_, nullptr, 0), 0);
  srd_stats stats{};
  stats.struct_bytes = sizeof stats;
  ASSERT_EQ(srd_endpoint_stats(endpoint_, &stats), 0);
  EXPECT_EQ(stats.sends_active, 0U);
}

TEST_F(MisuseTest, BufferCallsRefuseWhatIsNotOnLoan) {
  srd_iov piece;
  char byte = 0;
  for (const srd_buffer buffer : {srd_buffer{0}, srd_buffer{1}, UINT64_MAX, srd_buffer{1} << 32}) {
    EXPECT_FAILS(srd_buffer_segments(endpoint_, buffer, &piece, 1), EINVAL, "not on loan");
    EXPECT_FAILS(static_cast<int>(srd_buffer_copy(endpoint_, buffer, 0, &byte, 1)), EINVAL,
                 "not on loan");
    EXPECT_FAILS(srd_buffer_release(endpoint_, buffer), EINVAL, "not on loan", "released once");
  }
}

TEST_F(MisuseTest, BufferCallsNameTheNullArgument) {
  srd_iov piece;
  char byte = 0;
  EXPECT_FAILS(srd_buffer_segments(nullptr, 1, &piece, 1), EINVAL, "endpoint is NULL");
  EXPECT_FAILS(srd_buffer_segments(endpoint_, 1, nullptr, 1), EINVAL, "out is NULL");
  EXPECT_FAILS(static_cast<int>(srd_buffer_copy(nullptr, 1, 0, &byte, 1)), EINVAL,
               "endpoint is NULL");
  EXPECT_FAILS(static_cast<int>(srd_buffer_copy(endpoint_, 1, 0, nullptr, 1)), EINVAL,
               "out is NULL");
  EXPECT_FAILS(srd_buffer_release(nullptr, 1), EINVAL, "endpoint is NULL");
}

TEST_F(MisuseTest, AddressCallsNameTheNullArgument) {
  srd_address address{};
  char text[64];
  EXPECT_FAILS(srd_address_parse(nullptr, &address), EINVAL, "text is NULL");
  EXPECT_FAILS(srd_address_parse("1.2.3.4:1", nullptr), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_address_format(nullptr, text, sizeof text), EINVAL, "address is NULL");
  EXPECT_FAILS(srd_address_format(&address, nullptr, 1), EINVAL, "out is NULL");
}

TEST_F(MisuseTest, AddressParseRefusesWhatIsNoAddress) {
  srd_address address{};
  for (const char* wrong : {"", ":", "1.2.3.4:", "1.2.3:7", "[::1:7", "[::1]7", "[::1%nosuchif]:7",
                            "1.2.3.4%1:7", "1.2.3.4:-1", "1.2.3.4:65536", "host:1"}) {
    EXPECT_FAILS(srd_address_parse(wrong, &address), EINVAL, "srd_address_parse");
  }
  const std::string longest(63, '1');
  EXPECT_FAILS(srd_address_parse((longest + "1").c_str(), &address), EINVAL, longest.c_str(),
               "longer than the 63 characters");
}

TEST_F(MisuseTest, AddressFormatNamesTheSizeThatIsNeeded) {
  srd_address address{};
  char text[64];
  ASSERT_EQ(srd_address_parse("1.2.3.4:5", &address), 0);
  EXPECT_FAILS(srd_address_format(&address, text, 9), ENOMEM, "capacity 9", "10 bytes");
  address.family = 5;
  EXPECT_FAILS(srd_address_format(&address, text, sizeof text), EINVAL, "family 5");
}

TEST_F(MisuseTest, DevicesNeedsRoomAndTheSizeOfAnEntry) {
  EXPECT_FAILS(srd_devices(nullptr, 1, sizeof(srd_device_info)), EINVAL, "out is NULL");
  EXPECT_FAILS(srd_devices(nullptr, 0, 0), EINVAL, "entry_bytes is 0", "sizeof");
}

TEST_F(MisuseTest, ErrorStringTakesAnyNumber) {
  EXPECT_STREQ(srd_error_string(INT_MIN), "unknown error");
}

}  // namespace

}  // namespace srd::test
