// SPDX-License-Identifier: Apache-2.0
// CRC32C by implementation and size, writers and readers of the packets, the check of a datagram.
// All data is in the cache.
#include <array>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "srd/wire/check.hpp"
#include "srd/wire/packet.hpp"

#include "base/crc32c.hpp"

namespace {

using namespace srd;
using namespace srd::wire;

using Words = std::array<std::uint64_t, kAckWordsMax>;

void crc32c_of(benchmark::State& state, Crc32cMethod method) {
  if (!crc32c_has(method)) {
    state.SkipWithError("this CPU cannot run it");
    return;
  }
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  std::uint32_t crc = 0;
  for (auto _ : state) {
    crc = crc32c_by(method, crc, data);
    benchmark::DoNotOptimize(crc);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

[[maybe_unused]] const bool registered = [] {
  for (const Crc32cMethod method : kCrc32cMethods) {
    const std::string name = std::string("crc32c/") + to_string(method);
    benchmark::RegisterBenchmark(name.c_str(), crc32c_of, method)
        ->Arg(20)
        ->Arg(40)
        ->Arg(64)
        ->Arg(256)
        ->Arg(512)
        ->Arg(1408)
        ->Arg(4096)
        ->Arg(8192)
        ->Arg(65536);
  }
  return true;
}();

// ---- codec ------------------------------------------------------------------------------------

template <class Header>
Header valid() {
  Header header;
  if constexpr (std::is_same_v<Header, CommonHeader>) header.type = PacketType::data;
  if constexpr (std::is_same_v<Header, SmallHeader>) header.count = 1;
  if constexpr (std::is_same_v<Header, NackHeader>) header.code = NackCode::no_port;
  if constexpr (std::is_same_v<Header, VoidHeader>) header.count = 1;
  if constexpr (std::is_same_v<Header, HelloHeader>) {
    header.incarnation = 1;
    header.paths = 32;
    header.window_log2 = 13;
  }
  return header;
}

template <class Header>
void encode_one(benchmark::State& state) {
  Header header = valid<Header>();
  std::array<std::byte, 256> bytes{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(header);
    benchmark::DoNotOptimize(encode(bytes, header));
    benchmark::ClobberMemory();
  }
}

template <class Header>
void decode_one(benchmark::State& state) {
  std::array<std::byte, 256> bytes{};
  encode(bytes, valid<Header>());
  const std::span<const std::byte> packet = bytes;
  for (auto _ : state) {
    benchmark::ClobberMemory();
    Header header;
    if (!decode(packet, header)) state.SkipWithError("refused");
    benchmark::DoNotOptimize(header);
  }
}

#define SRD_BENCH_CODEC(Header)  \
  BENCHMARK(encode_one<Header>); \
  BENCHMARK(decode_one<Header>)

SRD_BENCH_CODEC(CommonHeader);
SRD_BENCH_CODEC(DataHeader);
SRD_BENCH_CODEC(SmallHeader);
SRD_BENCH_CODEC(SmallRecord);
SRD_BENCH_CODEC(NackHeader);
SRD_BENCH_CODEC(ProbeHeader);
SRD_BENCH_CODEC(ProbeAckHeader);
SRD_BENCH_CODEC(HelloHeader);
SRD_BENCH_CODEC(RetryHeader);
SRD_BENCH_CODEC(ResetHeader);
SRD_BENCH_CODEC(CloseHeader);
SRD_BENCH_CODEC(VoidHeader);
SRD_BENCH_CODEC(AbortHeader);

void encode_ack(benchmark::State& state) {
  const Words words{};
  const auto used = std::span(words).first(static_cast<std::size_t>(state.range(0)));
  AckHeader header;
  std::array<std::byte, 512> bytes{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(header);
    benchmark::DoNotOptimize(encode(bytes, header, used, used));
    benchmark::ClobberMemory();
  }
}

void decode_ack(benchmark::State& state) {
  const Words words{};
  const auto used = std::span(words).first(static_cast<std::size_t>(state.range(0)));
  std::array<std::byte, 512> bytes{};
  encode(bytes, AckHeader{}, used, used);
  const std::span<const std::byte> packet = bytes;
  for (auto _ : state) {
    benchmark::ClobberMemory();
    AckHeader header;
    Words received, ce;
    if (!decode(packet, header, received, ce)) state.SkipWithError("refused");
    benchmark::DoNotOptimize(header);
    benchmark::DoNotOptimize(received);
    benchmark::DoNotOptimize(ce);
  }
}

BENCHMARK(encode_ack)->Arg(0)->Arg(1)->Arg(16);
BENCHMARK(decode_ack)->Arg(0)->Arg(1)->Arg(16);

Extensions all_extensions() {
  Extensions all;
  all.piggy.emplace();
  all.rev_path.emplace();
  all.re_path.emplace();
  return all;
}

void encode_all_extensions(benchmark::State& state) {
  const Extensions all = all_extensions();
  std::array<std::byte, 64> bytes{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode_extensions(bytes, all));
    benchmark::ClobberMemory();
  }
}

void decode_all_extensions(benchmark::State& state) {
  std::array<std::byte, 64> bytes{};
  encode_extensions(bytes, all_extensions());
  for (auto _ : state) {
    benchmark::ClobberMemory();
    Extensions extensions;
    std::size_t length = 0;
    if (!decode_extensions(bytes, extensions, length)) state.SkipWithError("refused");
    benchmark::DoNotOptimize(extensions);
  }
}

BENCHMARK(encode_all_extensions);
BENCHMARK(decode_all_extensions);

// ---- check of a DATA packet with state.range(0) bytes of payload ------------------------------

std::vector<std::byte> data_packet(std::size_t payload_bytes, bool full) {
  std::vector<std::byte> packet(kDataBytes + payload_bytes);
  CommonHeader common = valid<CommonHeader>();
  common.flags = full ? kFlagFullCheck : 0;
  encode(packet, common);
  return packet;
}

void seal_data(benchmark::State& state, bool full) {
  std::vector<std::byte> packet = data_packet(static_cast<std::size_t>(state.range(0)), full);
  const Segment payload{packet.data() + kDataBytes, static_cast<std::uint32_t>(state.range(0))};
  for (auto _ : state) {
    seal(std::span(packet).first(kDataBytes), std::span(&payload, 1), 1);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void verify_data(benchmark::State& state, bool full) {
  std::vector<std::byte> packet = data_packet(static_cast<std::size_t>(state.range(0)), full);
  const Segment payload{packet.data() + kDataBytes, static_cast<std::uint32_t>(state.range(0))};
  seal(std::span(packet).first(kDataBytes), std::span(&payload, 1), 1);
  for (auto _ : state) {
    if (!verify(packet, kDataBytes, 1)) state.SkipWithError("refused");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK_CAPTURE(seal_data, full, true)->Arg(64)->Arg(1408)->Arg(8192);
BENCHMARK_CAPTURE(seal_data, header_only, false)->Arg(1408);
BENCHMARK_CAPTURE(verify_data, full, true)->Arg(64)->Arg(1408)->Arg(8192);
BENCHMARK_CAPTURE(verify_data, header_only, false)->Arg(1408);

}  // namespace
