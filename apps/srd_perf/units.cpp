// SPDX-License-Identifier: Apache-2.0
// Suffix arithmetic; see the header.
#include "srd_perf/units.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace perf {
namespace {

constexpr double kBinary = 1024.0;
constexpr double kDecimal = 1000.0;

std::optional<std::uint64_t> parse_scaled(std::string_view text, double base) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  if (rest != end) {
    if (end - rest != 1) return std::nullopt;
    switch (*rest) {
      case 'k':
      case 'K':
        number *= base;
        break;
      case 'm':
      case 'M':
        number *= base * base;
        break;
      case 'g':
      case 'G':
        number *= base * base * base;
        break;
      case 't':
      case 'T':
        number *= base * base * base * base;
        break;
      default:
        return std::nullopt;
    }
  }
  if (number >= 9.2e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(number));
}

std::string format_number(double number, const char* unit) {
  const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return fmt::format("{:4.{}f} {}", number, decimals, unit);
}

constexpr std::array<const char*, 5> kByteUnits{"Bytes", "KBytes", "MBytes", "GBytes", "TBytes"};
constexpr std::array<const char*, 5> kBitUnits{"bits", "Kbits", "Mbits", "Gbits", "Tbits"};

std::string format_adaptive(double number, double base, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (number >= base && unit + 1 < units.size()) {
    number /= base;
    ++unit;
  }
  return format_number(number, units[unit]);
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_scaled(text, kBinary);
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  return parse_scaled(text, kDecimal);
}

std::optional<UnitFormat> parse_unit_format(std::string_view text) {
  constexpr std::string_view kLetters = "akmgtKMGT";
  if (text.size() != 1 || kLetters.find(text.front()) == std::string_view::npos) {
    return std::nullopt;
  }
  return static_cast<UnitFormat>(text.front());
}

std::string format_bytes(double bytes) {
  return format_adaptive(bytes, kBinary, kByteUnits);
}

std::string format_rate(double bits_per_second, UnitFormat format) {
  const double bytes = bits_per_second / 8;
  switch (format) {
    case UnitFormat::adaptive:
      return format_adaptive(bits_per_second, kDecimal, kBitUnits);
    case UnitFormat::kbits:
      return format_number(bits_per_second / 1e3, kBitUnits[1]);
    case UnitFormat::mbits:
      return format_number(bits_per_second / 1e6, kBitUnits[2]);
    case UnitFormat::gbits:
      return format_number(bits_per_second / 1e9, kBitUnits[3]);
    case UnitFormat::tbits:
      return format_number(bits_per_second / 1e12, kBitUnits[4]);
    case UnitFormat::kbytes:
      return format_number(bytes / kBinary, kByteUnits[1]);
    case UnitFormat::mbytes:
      return format_number(bytes / (kBinary * kBinary), kByteUnits[2]);
    case UnitFormat::gbytes:
      return format_number(bytes / (kBinary * kBinary * kBinary), kByteUnits[3]);
    case UnitFormat::tbytes:
      return format_number(bytes / (kBinary * kBinary * kBinary * kBinary), kByteUnits[4]);
  }
  return {};
}

}  // namespace perf
