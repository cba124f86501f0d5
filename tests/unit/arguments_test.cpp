// SPDX-License-Identifier: Apache-2.0
// Structs of callers with other headers: a made-up configuration and a made-up result that have
// grown since version 0, as the library reads and fills them.
#include "srd/runtime/arguments.hpp"

#include <array>

#include <gtest/gtest.h>

namespace srd::runtime {
namespace {

struct Config {
  std::size_t struct_bytes;
  std::uint64_t first;
  std::uint64_t added_later;
};

struct Result {
  std::size_t struct_bytes;
  std::uint64_t first;
  std::uint64_t added_later;
};

constexpr std::size_t kOldBytes = offsetof(Config, added_later);

}  // namespace

template <>
inline constexpr std::size_t kBytesMin<Config> = kOldBytes;
template <>
inline constexpr std::size_t kBytesMin<Result> = kOldBytes;

namespace {

TEST(ArgumentsTest, OlderConfigurationKeepsTheDefaultsOfWhatItLacks) {
  const Config old{kOldBytes, 7, 99};  // what lies behind its end must not be read
  Config out{sizeof(Config), 1, 2};
  ASSERT_EQ(read_config("f", &old, out), 0);
  EXPECT_EQ(out.first, 7U);
  EXPECT_EQ(out.added_later, 2U);
}

TEST(ArgumentsTest, CurrentConfigurationIsCopiedWhole) {
  const Config in{sizeof(Config), 7, 9};
  Config out{sizeof(Config), 1, 2};
  ASSERT_EQ(read_config("f", &in, out), 0);
  EXPECT_EQ(out.first, 7U);
  EXPECT_EQ(out.added_later, 9U);
}

TEST(ArgumentsTest, ConfigurationShorterThanVersionZeroIsRefused) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kOldBytes - 1}) {
    const std::array<Config, 2> in{{{bytes, 7, 9}, {}}};
    Config out{sizeof(Config), 1, 2};
    EXPECT_EQ(read_config("f", in.data(), out), -EINVAL);
    EXPECT_EQ(out.first, 1U);
  }
}

TEST(ArgumentsTest, OlderResultIsFilledUpToItsEnd) {
  Result out{kOldBytes, 0, 99};
  ASSERT_EQ(check_struct("f", &out), 0);
  fill_struct(&out, Result{0, 7, 9});
  EXPECT_EQ(out.struct_bytes, kOldBytes);
  EXPECT_EQ(out.first, 7U);
  EXPECT_EQ(out.added_later, 99U);
}

TEST(ArgumentsTest, SizesNobodyHasAreRefused) {
  for (const std::size_t bytes : {std::size_t{0}, kOldBytes - 1, kStructBytesMax + 1, SIZE_MAX}) {
    EXPECT_EQ(check_size<Result>("f", "entry_bytes", bytes), -EINVAL) << bytes;
  }
  EXPECT_EQ(check_size<Result>("f", "entry_bytes", kOldBytes), 0);
  EXPECT_EQ(check_size<Result>("f", "entry_bytes", kStructBytesMax), 0);
}

TEST(ArgumentsTest, ArrayOfAnOlderCallerIsFilledAtItsDistances) {
  const std::array<Result, 2> values{Result{0, 1, 2}, Result{0, 3, 4}};
  std::array<std::uint64_t, 5> room{9, 9, 9, 9, 9};
  static_assert(kOldBytes == 2 * sizeof(std::uint64_t));
  fill_array(reinterpret_cast<Result*>(room.data()), kOldBytes, std::span<const Result>(values));
  EXPECT_EQ(room, (std::array<std::uint64_t, 5>{0, 1, 0, 3, 9}));
}

}  // namespace
}  // namespace srd::runtime
