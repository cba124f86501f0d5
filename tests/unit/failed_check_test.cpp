// SPDX-License-Identifier: Apache-2.0
// base/check.hpp: a failed check says where it is and ends the process.
#include <gtest/gtest.h>

#include "base/check.hpp"

namespace srd {
namespace {

TEST(FailedCheckDeathTest, NamesFileLineAndExpression) {
  const int value = 3;
  EXPECT_DEATH(SRD_CHECK(value == 4), "failed_check_test.cpp:[0-9]+: check failed: value == 4");
}

TEST(FailedCheckTest, EvaluatesItsExpressionOnce) {
  int calls = 0;
  SRD_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

#if defined(NDEBUG)
TEST(FailedCheckTest, DebugChecksAreNotEvaluatedInReleaseBuilds) {
  int calls = 0;
  SRD_DCHECK(++calls == 7);
  EXPECT_EQ(calls, 0);
}
#else
TEST(FailedCheckDeathTest, DebugChecksFailInDebugBuilds) {
  EXPECT_DEATH(SRD_DCHECK(1 > 2), "check failed: 1 > 2");
}
#endif

}  // namespace
}  // namespace srd
