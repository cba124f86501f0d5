// SPDX-License-Identifier: Apache-2.0
// Error codes: values, texts, and how they compare with std::errc; error texts per thread.
#include "srd/error.hpp"

#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "srd/result.hpp"
#include "srd/srd.h"

#include "base/error_text.hpp"

namespace srd {
namespace {

constexpr Errc kAll[] = {Errc::ok,
                         Errc::not_permitted,
                         Errc::would_block,
                         Errc::busy,
                         Errc::invalid_argument,
                         Errc::no_device,
                         Errc::no_memory,
                         Errc::not_found,
                         Errc::address_in_use,
                         Errc::address_unavailable,
                         Errc::message_too_long,
                         Errc::not_supported,
                         Errc::no_route,
                         Errc::too_many_files,
                         Errc::canceled,
                         Errc::timed_out,
                         Errc::peer_unreachable,
                         Errc::peer_restarted,
                         Errc::peer_closed,
                         Errc::context_lost,
                         Errc::no_such_port,
                         Errc::version_mismatch,
                         Errc::peer_refused,
                         Errc::internal};

static_assert(static_cast<int>(Errc::peer_unreachable) == SRD_ERR_PEER_UNREACHABLE);
static_assert(static_cast<int>(Errc::peer_restarted) == SRD_ERR_PEER_RESTARTED);
static_assert(static_cast<int>(Errc::peer_closed) == SRD_ERR_PEER_CLOSED);
static_assert(static_cast<int>(Errc::context_lost) == SRD_ERR_CONTEXT_LOST);
static_assert(static_cast<int>(Errc::no_such_port) == SRD_ERR_NO_SUCH_PORT);
static_assert(static_cast<int>(Errc::version_mismatch) == SRD_ERR_VERSION_MISMATCH);
static_assert(static_cast<int>(Errc::peer_refused) == SRD_ERR_PEER_REFUSED);
static_assert(static_cast<int>(Errc::internal) == SRD_ERR_INTERNAL);

TEST(ErrorTest, EveryCodeHasItsOwnText) {
  std::set<std::string> texts;
  for (const Errc code : kAll) {
    texts.insert(to_string(code));
    EXPECT_STRNE(to_string(code), to_string(static_cast<Errc>(9999)));
    EXPECT_EQ(make_error_code(code).message(), to_string(code));
  }
  EXPECT_EQ(texts.size(), std::size(kAll));
}

TEST(ErrorTest, CodesOfErrnoEqualTheirConditions) {
  EXPECT_EQ(make_error_code(Errc::would_block), std::errc::resource_unavailable_try_again);
  EXPECT_EQ(make_error_code(Errc::invalid_argument), std::errc::invalid_argument);
  EXPECT_EQ(make_error_code(Errc::message_too_long), std::errc::message_size);
  EXPECT_EQ(make_error_code(Errc::timed_out), std::errc::timed_out);
  EXPECT_EQ(make_error_code(Errc::canceled), std::errc::operation_canceled);
}

TEST(ErrorTest, OwnCodesEqualTheNearestCondition) {
  EXPECT_EQ(make_error_code(Errc::peer_unreachable), std::errc::host_unreachable);
  EXPECT_EQ(make_error_code(Errc::peer_restarted), std::errc::connection_reset);
  EXPECT_EQ(make_error_code(Errc::context_lost), std::errc::connection_reset);
  EXPECT_EQ(make_error_code(Errc::peer_closed), std::errc::connection_aborted);
  EXPECT_EQ(make_error_code(Errc::no_such_port), std::errc::connection_refused);
  EXPECT_EQ(make_error_code(Errc::peer_refused), std::errc::connection_refused);
  EXPECT_EQ(make_error_code(Errc::version_mismatch), std::errc::protocol_not_supported);
}

TEST(ErrorTest, ConvertsToErrorCode) {
  const std::error_code none = Errc::ok;
  EXPECT_FALSE(none);
  const std::error_code code = Errc::busy;
  EXPECT_TRUE(code);
  EXPECT_STREQ(code.category().name(), "srd");
  EXPECT_EQ(code, Errc::busy);
}

TEST(ResultTest, HoldsAValueOrAnError) {
  const Result<int> value = 7;
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 7);
  EXPECT_EQ(value.errc(), Errc::ok);
  const Result<int> error = Errc::no_memory;
  EXPECT_FALSE(error);
  EXPECT_EQ(error.errc(), Errc::no_memory);
  EXPECT_EQ(error.error(), std::errc::not_enough_memory);
}

TEST(ErrorTextTest, FailReturnsTheNegatedCodeAndKeepsTheText) {
  EXPECT_EQ(fail(Errc::no_route, "no way to %s", "there"), -EHOSTUNREACH);
  EXPECT_STREQ(error_text(), "no way to there");
  EXPECT_EQ(fail_with(Errc::busy, "busy"), -EBUSY);
  EXPECT_STREQ(error_text(), "busy");
}

TEST(ErrorTextTest, MayBePassedOn) {
  fail(Errc::busy, "first");
  fail_with(Errc::busy, error_text());
  EXPECT_STREQ(error_text(), "first");
}

TEST(ErrorTextTest, IsCutAtItsLimit) {
  const std::string longer(2 * kErrorTextBytes, 'x');
  fail(Errc::internal, "%s", longer.c_str());
  EXPECT_EQ(std::string(error_text()).size(), kErrorTextBytes - 1U);
  fail_with(Errc::internal, longer.c_str());
  EXPECT_EQ(std::string(error_text()).size(), kErrorTextBytes - 1U);
}

TEST(ErrorTextTest, EachThreadHasItsOwn) {
  fail(Errc::busy, "of the main thread");
  std::thread([] {
    EXPECT_STREQ(error_text(), "");
    fail(Errc::busy, "of the other thread");
  }).join();
  EXPECT_STREQ(error_text(), "of the main thread");
}

}  // namespace
}  // namespace srd
