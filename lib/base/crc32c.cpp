// SPDX-License-Identifier: Apache-2.0
// Polynomials are bit-reflected throughout: bit 0 of a register holds the highest power of x.
#include "base/crc32c.hpp"

#include <array>
#include <atomic>

#include "base/bytes.hpp"
#include "base/check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define SRD_CRC32C_X86 1
#endif

namespace srd {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;

constexpr std::uint32_t times_x(std::uint32_t value) noexcept {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

using Kernel = std::uint32_t (*)(std::uint32_t, const std::byte*, std::size_t) noexcept;

// kTables[k][b]: remainder of byte b followed by k zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

// All kernels take and return the inverted register, as crc32c() passes it.
std::uint32_t run_table(std::uint32_t state, const std::byte* data, std::size_t bytes) noexcept {
  for (; bytes >= 8; data += 8, bytes -= 8) {
    const std::uint64_t word = load_le<std::uint64_t>(data) ^ state;
    state = 0;
    for (unsigned k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; bytes > 0; ++data, --bytes) {
    state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<std::uint32_t>(*data)) & 0xff];
  }
  return state;
}

#if defined(SRD_CRC32C_X86)

// x^power modulo the polynomial.
constexpr std::uint32_t x_to_the(unsigned power) noexcept {
  std::uint32_t value = 0x80000000;
  for (unsigned i = 0; i < power; ++i) value = times_x(value);
  return value;
}

#define SRD_TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))
#define SRD_TARGET_AVX512 __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))

constexpr std::size_t kStreamBytesMax = 2048;

// kSkip[k] moves a state over k * 8 bytes of zeros: carry-less product with it, then one crc32 step
// of 64 bits. The product of two reflected numbers is short of one x, the step adds 32: hence 33.
constexpr auto kSkip = [] {
  std::array<std::uint32_t, 2 * kStreamBytesMax / 8 + 1> skip{};
  std::uint32_t value = x_to_the(64 - 33);
  for (std::size_t k = 1; k < skip.size(); ++k) {
    skip[k] = value;
    for (int bit = 0; bit < 64; ++bit) value = times_x(value);
  }
  return skip;
}();

SRD_TARGET_SSE42 inline std::uint32_t skip_zeros(std::uint64_t state, std::size_t words) noexcept {
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(state)),
                           _mm_cvtsi32_si128(static_cast<int>(kSkip[words])), 0);
  return static_cast<std::uint32_t>(
      _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}

SRD_TARGET_SSE42 inline std::uint32_t run_single(std::uint32_t state, const std::byte* data,
                                                 std::size_t bytes) noexcept {
  std::uint64_t wide = state;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    wide = _mm_crc32_u64(wide, load_le<std::uint64_t>(data));
  }
  state = static_cast<std::uint32_t>(wide);
  if (bytes >= 4) {
    state = _mm_crc32_u32(state, load_le<std::uint32_t>(data));
    data += 4;
    bytes -= 4;
  }
  for (; bytes > 0; ++data, --bytes) {
    state = _mm_crc32_u8(state, std::to_integer<std::uint8_t>(*data));
  }
  return state;
}

// The crc32 instruction takes 3 cycles, but one can start in each: three thirds of the data at a
// time.
SRD_TARGET_SSE42 std::uint32_t run_sse42(std::uint32_t state, const std::byte* data,
                                         std::size_t bytes) noexcept {
  while (bytes >= 192) {
    const std::size_t words = (bytes < 3 * kStreamBytesMax ? bytes : 3 * kStreamBytesMax) / 24;
    const std::byte* const second = data + 8 * words;
    const std::byte* const third = second + 8 * words;
    std::uint64_t a = state, b = 0, c = 0;
    for (std::size_t i = 0; i < words; ++i) {
      a = _mm_crc32_u64(a, load_le<std::uint64_t>(data + 8 * i));
      b = _mm_crc32_u64(b, load_le<std::uint64_t>(second + 8 * i));
      c = _mm_crc32_u64(c, load_le<std::uint64_t>(third + 8 * i));
    }
    state = skip_zeros(a, 2 * words) ^ skip_zeros(b, words) ^ static_cast<std::uint32_t>(c);
    data = third + 8 * words;
    bytes -= 24 * words;
  }
  return run_single(state, data, bytes);
}

// Multipliers that move a 128-bit lane over `bits` of zeros: for its first and its second half.
struct Fold {
  std::uint32_t first, second;
};

constexpr Fold fold_over(unsigned bits) noexcept {
  return {x_to_the(bits + 64 - 33), x_to_the(bits - 33)};
}

SRD_TARGET_AVX512 inline __m512i multipliers(Fold fold) noexcept {
  return _mm512_set4_epi64(fold.second, fold.first, fold.second, fold.first);
}

SRD_TARGET_AVX512 inline __m512i fold_into(__m512i value, __m512i by, __m512i next) noexcept {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, by, 0x00),
                                   _mm512_clmulepi64_epi128(value, by, 0x11), next, 0x96);
}

SRD_TARGET_AVX512 std::uint32_t run_avx512(std::uint32_t state, const std::byte* data,
                                           std::size_t bytes) noexcept {
  if (bytes < 256) return run_sse42(state, data, bytes);
  static constexpr Fold kOver64 = fold_over(8 * 64);
  static constexpr Fold kOver128 = fold_over(8 * 128);
  static constexpr Fold kOver192 = fold_over(8 * 192);
  static constexpr Fold kOver256 = fold_over(8 * 256);

  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data),
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  __m512i b = _mm512_loadu_si512(data + 64);
  __m512i c = _mm512_loadu_si512(data + 128);
  __m512i d = _mm512_loadu_si512(data + 192);
  data += 256;
  bytes -= 256;
  const __m512i over_256 = multipliers(kOver256);
  for (; bytes >= 256; data += 256, bytes -= 256) {
    a = fold_into(a, over_256, _mm512_loadu_si512(data));
    b = fold_into(b, over_256, _mm512_loadu_si512(data + 64));
    c = fold_into(c, over_256, _mm512_loadu_si512(data + 128));
    d = fold_into(d, over_256, _mm512_loadu_si512(data + 192));
  }
  const __m512i over_64 = multipliers(kOver64);
  d = fold_into(c, over_64, d);
  d = fold_into(b, multipliers(kOver128), d);
  d = fold_into(a, multipliers(kOver192), d);
  for (; bytes >= 64; data += 64, bytes -= 64) {
    d = fold_into(d, over_64, _mm512_loadu_si512(data));
  }

  // The four lanes to one: each moves to the place of the last, which stays.
  static constexpr Fold kLane0 = fold_over(384), kLane1 = fold_over(256), kLane2 = fold_over(128);
  const __m512i lanes = _mm512_set_epi64(0, 0, kLane2.second, kLane2.first, kLane1.second,
                                         kLane1.first, kLane0.second, kLane0.first);
  const __m512i moved = _mm512_xor_si512(_mm512_clmulepi64_epi128(d, lanes, 0x00),
                                         _mm512_clmulepi64_epi128(d, lanes, 0x11));
  // The masked forms, with nothing masked: g++ 12 warns of the plain ones in its own headers.
  const __m256i half = _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(0xff, moved, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xff, moved, 1));
  const __m128i lane = _mm_xor_si128(_mm_xor_si128(_mm256_maskz_extracti32x4_epi32(0xff, half, 0),
                                                   _mm256_maskz_extracti32x4_epi32(0xff, half, 1)),
                                     _mm512_maskz_extracti32x4_epi32(0xff, d, 3));
  std::uint64_t wide = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(lane)));
  wide = _mm_crc32_u64(wide, static_cast<std::uint64_t>(_mm_extract_epi64(lane, 1)));
  return run_single(static_cast<std::uint32_t>(wide), data, bytes);
}

#endif  // SRD_CRC32C_X86

Kernel kernel_of(Crc32cMethod method) noexcept {
  switch (method) {
    case Crc32cMethod::table:
      return run_table;
#if defined(SRD_CRC32C_X86)
    case Crc32cMethod::sse42:
      return run_sse42;
    case Crc32cMethod::avx512:
      return run_avx512;
#else
    case Crc32cMethod::sse42:
    case Crc32cMethod::avx512:
      break;
#endif
  }
  return nullptr;
}

std::uint32_t choose_and_run(std::uint32_t state, const std::byte* data,
                             std::size_t bytes) noexcept;

// Not a function-local static: its guard would be tested on each call.
constinit std::atomic<Kernel> chosen{choose_and_run};

std::uint32_t choose_and_run(std::uint32_t state, const std::byte* data,
                             std::size_t bytes) noexcept {
  Kernel best = run_table;
  for (const Crc32cMethod method : kCrc32cMethods) {
    if (crc32c_has(method)) best = kernel_of(method);
  }
  chosen.store(best, std::memory_order_relaxed);
  return best(state, data, bytes);
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> data) noexcept {
  return ~chosen.load(std::memory_order_relaxed)(~crc, data.data(), data.size());
}

bool crc32c_has(Crc32cMethod method) noexcept {
  if (method == Crc32cMethod::table) return true;
#if defined(SRD_CRC32C_X86)
  __builtin_cpu_init();
  const bool sse42 = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  if (method == Crc32cMethod::sse42) return sse42;
  return sse42 && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
#else
  return false;
#endif
}

std::uint32_t crc32c_by(Crc32cMethod method, std::uint32_t crc,
                        std::span<const std::byte> data) noexcept {
  SRD_CHECK(crc32c_has(method));
  return ~kernel_of(method)(~crc, data.data(), data.size());
}

const char* to_string(Crc32cMethod method) noexcept {
  switch (method) {
    case Crc32cMethod::table:
      return "table";
    case Crc32cMethod::sse42:
      return "sse42";
    case Crc32cMethod::avx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace srd
