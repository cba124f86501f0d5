// SPDX-License-Identifier: Apache-2.0
// Addresses as text and as sockaddr.
#include "srd/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <string>

#include <gtest/gtest.h>

#include "base/error_text.hpp"

namespace srd {
namespace {

std::string again(std::string_view text) {
  const Result<Address> address = parse_address(text);
  return address ? to_string(*address) : "refused: " + std::string(error_text());
}

TEST(AddressTest, ReadsAndWritesEveryForm) {
  EXPECT_EQ(again("192.0.2.1:7000"), "192.0.2.1:7000");
  EXPECT_EQ(again("192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(again("0.0.0.0:65535"), "0.0.0.0:65535");
  EXPECT_EQ(again("[2001:db8::1]:7000"), "[2001:db8::1]:7000");
  EXPECT_EQ(again("[2001:db8::1]"), "[2001:db8::1]:0");
  EXPECT_EQ(again("2001:db8::1"), "[2001:db8::1]:0");
  EXPECT_EQ(again("[::]:1"), "[::]:1");
  EXPECT_EQ(again("[2001:0DB8:0::0001]:1"), "[2001:db8::1]:1");
}

TEST(AddressTest, KeepsTheScopeOfALinkLocalAddress) {
  if (if_nametoindex("lo") == 0) GTEST_SKIP() << "this host has no interface lo";
  const Result<Address> address = parse_address("[fe80::1%lo]:7000");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->scope, if_nametoindex("lo"));
  EXPECT_EQ(to_string(*address), "[fe80::1%lo]:7000");
}

TEST(AddressTest, WritesTheNumberOfAScopeWithoutAnInterface) {
  EXPECT_EQ(again("[fe80::1%4294967295]:7000"), "[fe80::1%4294967295]:7000");
}

TEST(AddressTest, QuotesTheBeginningOfATextThatIsTooLong) {
  const std::string text = "192.0.2.1:7000" + std::string(500, '7');
  const std::string refused = again(text);
  EXPECT_NE(refused.find(text.substr(0, 60)), std::string::npos) << refused;
  EXPECT_NE(refused.find("63 characters"), std::string::npos) << refused;
}

TEST(AddressTest, DoesNotEndATextAtANulInside) {
  EXPECT_NE(again(std::string_view("192.0.2.1:7000\0x", 16)).find("\"192.0.2.1:7000?x\""),
            std::string::npos);
}

TEST(AddressTest, RefusesEverythingElse) {
  for (const char* text : {"",
                           ":",
                           ":7000",
                           "localhost:7000",
                           "192.0.2.1:",
                           "192.0.2.1:65536",
                           "192.0.2.1:-1",
                           "192.0.2.1:+1",
                           "192.0.2.1: 1",
                           "192.0.2.1:7000 ",
                           " 192.0.2.1",
                           "192.0.2",
                           "192.0.2.256",
                           "192.0.2.1:1:2",
                           "192.0.2.1%lo:1",
                           "[",
                           "[]",
                           "[]:1",
                           "[::1",
                           "[::1]1",
                           "[::1]:",
                           "[::1]:x",
                           "[192.0.2.1]:1",
                           "[fe80::1%]:1",
                           "[fe80::1%0]:1",
                           "[fe80::1%no-such-if]:1",
                           "[::1]]:1",
                           "1.2.3.4:99999999999999999999"}) {
    const Result<Address> address = parse_address(text);
    EXPECT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.errc(), Errc::invalid_argument) << text;
  }
  EXPECT_FALSE(parse_address(std::string(1000, '1')).has_value());
}

TEST(AddressTest, SaysWhatIsWrong) {
  EXPECT_NE(again("192.0.2.1:70000").find("0 to 65535"), std::string::npos);
  EXPECT_NE(again("example.org:1").find("names are not resolved"), std::string::npos);
  EXPECT_NE(again("[fe80::1%no-such-if]:1").find("no interface"), std::string::npos);
  EXPECT_NE(again("[::1").find("[2001:db8::1]:7000"), std::string::npos) << "shows the forms";
}

TEST(AddressTest, Ipv4MappedIsIpv4) {
  EXPECT_EQ(again("[::ffff:192.0.2.1]:7000"), "192.0.2.1:7000");
  sockaddr_storage storage{};
  auto& in = reinterpret_cast<sockaddr_in6&>(storage);
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(7000);
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:192.0.2.1", &in.sin6_addr), 1);
  EXPECT_EQ(to_string(from_sockaddr(storage)), "192.0.2.1:7000");
}

TEST(AddressTest, SockaddrKeepsEverything) {
  for (const char* text : {"192.0.2.1:7000", "[2001:db8::1]:65535", "[fe80::1%4294967295]:1"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_TRUE(address) << text;
    sockaddr_storage storage;
    const socklen_t bytes = to_sockaddr(*address, storage);
    EXPECT_EQ(bytes, address->family == 4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    EXPECT_TRUE(same_address(from_sockaddr(storage), *address)) << text;
  }
}

TEST(AddressTest, OtherFamiliesAreTheEmptyAddress) {
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  EXPECT_EQ(from_sockaddr(storage).family, 0);
  EXPECT_EQ(to_sockaddr(Address{}, storage), 0U);
  EXPECT_EQ(to_string(Address{}), "none");
}

TEST(AddressTest, EveryPartCountsWhenCompared) {
  const Address base = *parse_address("[2001:db8::1]:7000");
  EXPECT_TRUE(same_address(base, base));
  Address other = base;
  other.port = 7001;
  EXPECT_FALSE(same_address(base, other));
  other = base;
  other.bytes[15] = 2;
  EXPECT_FALSE(same_address(base, other));
  other = base;
  other.scope = 1;
  EXPECT_FALSE(same_address(base, other));
  other = base;
  other.aux = 1;
  EXPECT_FALSE(same_address(base, other));
}

TEST(AddressTest, FormatRefusesWhatItCannotWrite) {
  const Address address = *parse_address("192.0.2.1:7000");
  char text[15] = "";
  EXPECT_EQ(srd_address_format(&address, text, sizeof text), 14);
  EXPECT_STREQ(text, "192.0.2.1:7000");
  EXPECT_EQ(srd_address_format(&address, text, sizeof text - 1), -ENOMEM);
  Address strange = address;
  strange.family = 5;
  EXPECT_EQ(srd_address_format(&strange, text, sizeof text), -EINVAL);
  EXPECT_EQ(srd_address_format(nullptr, text, sizeof text), -EINVAL);
  EXPECT_EQ(srd_address_parse(nullptr, &strange), -EINVAL);
}

}  // namespace
}  // namespace srd
