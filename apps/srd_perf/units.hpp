// SPDX-License-Identifier: Apache-2.0
// Numbers with K, M, G and T suffixes as iperf3 reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perf {

/// "64", "128K", "1.5M", "2G": K is 1024. Nothing if it is not such a number or does not fit.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// As above with K = 1000, for rates.
std::optional<std::uint64_t> parse_rate(std::string_view text);

/// How rates and amounts are written (-f).
enum class UnitFormat : char {
  adaptive = 'a',
  kbits = 'k',
  mbits = 'm',
  gbits = 'g',
  tbits = 't',
  kbytes = 'K',
  mbytes = 'M',
  gbytes = 'G',
  tbytes = 'T'
};
std::optional<UnitFormat> parse_unit_format(std::string_view text);

/// "1.28 GBytes": K = 1024, four characters of number where possible.
std::string format_bytes(double bytes);

/// "11.0 Gbits" (K = 1000) or, with a byte format, "1.28 GBytes" (K = 1024).
std::string format_rate(double bits_per_second, UnitFormat format);

}  // namespace perf
