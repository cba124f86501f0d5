// SPDX-License-Identifier: Apache-2.0
#include "base/seqno.hpp"

#include <gtest/gtest.h>

namespace srd {
namespace {

TEST(SeqnoTest, ComparesAcrossTheWrap) {
  EXPECT_TRUE(seq_less(0xfffffff0U, 5U));
  EXPECT_FALSE(seq_less(5U, 0xfffffff0U));
  EXPECT_EQ(seq_diff(5U, 0xfffffff0U), 21);
  EXPECT_TRUE(seq_less_equal(7U, 7U));
  EXPECT_EQ(seq_diff16(3, 0xfffe), 5);
  EXPECT_EQ(seq_diff16(0xfffe, 3), -5);
}

}  // namespace
}  // namespace srd
