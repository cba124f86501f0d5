// SPDX-License-Identifier: Apache-2.0
// The driver loop alone, over loopback and without the protocol: what one core moves in bursts of
// equal datagrams, sender and receiver taking turns on one thread, and what one round trip costs
// when both ends are polled. No claim by itself; a peer in the same run is needed for that
// (perf/compare.py).
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/error_text.hpp"
#include "udp/udp_driver.hpp"

namespace {

using namespace srd;

/// Two queues of the UDP driver that know each other.
struct Pair {
  Pair() {
    udp::Options options;
    options.bind = parse_address("127.0.0.1:0").value();
    auto made = udp::make_driver(options);
    if (!made) fail_setup();
    driver = std::move(*made);
    server = open();
    client = open();
    const auto dest = client->resolve(server->local_address().value());
    if (!dest) fail_setup();
    datagram_bytes = client->datagram_bytes(*dest);
    path = client->open_path(*dest, 1).value();
  }

  std::unique_ptr<PacketIo> open() {
    auto queue = driver->open_queue({});
    if (!queue) fail_setup();
    return std::move(*queue);
  }

  [[noreturn]] static void fail_setup() {
    std::fprintf(stderr, "bench_driver: %s\n", error_text());
    std::exit(1);
  }

  std::unique_ptr<Driver> driver;
  std::unique_ptr<PacketIo> server, client;
  PathId path = kNoPath;
  std::uint32_t datagram_bytes = 0;
};

std::vector<TxDatagram> make_burst(PathId path, std::size_t count, std::uint32_t bytes,
                                   const std::vector<std::byte>& payload) {
  constexpr std::uint8_t kHeaderBytes = 40;
  std::vector<TxDatagram> burst(count);
  for (TxDatagram& d : burst) {
    d.path = path;
    d.ecn = Ecn::ect0;
    d.header_bytes = kHeaderBytes;
    d.payload_count = 1;
    d.payload[0] = {payload.data(), bytes - kHeaderBytes, kNoRegion};
  }
  return burst;
}

std::size_t receive(PacketIo& io, std::span<RxDatagram> out, std::span<BufferId> buffers) {
  const std::size_t n = io.rx_burst(out);
  for (std::size_t i = 0; i < n; ++i) buffers[i] = out[i].buffer;
  io.rx_release(buffers.first(n));
  return n;
}

void BM_DriverBulk(benchmark::State& state) {
  Pair pair;
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto bytes =
      state.range(1) == 0 ? pair.datagram_bytes : static_cast<std::uint32_t>(state.range(1));
  const std::vector<std::byte> payload(bytes);
  const auto burst = make_burst(pair.path, count, bytes, payload);
  std::array<RxDatagram, 128> in;
  std::array<BufferId, 128> buffers;
  for (auto _ : state) {
    pair.client->tx_burst(burst);
    for (std::size_t got = 0; got < count;) got += receive(*pair.server, in, buffers);
  }
  const auto datagrams = static_cast<std::int64_t>(count) * state.iterations();
  state.SetItemsProcessed(datagrams);
  state.SetBytesProcessed(datagrams * static_cast<std::int64_t>(bytes));
  const IoCounters tx = pair.client->counters();
  const IoCounters rx = pair.server->counters();
  state.counters["tx_calls_per_burst"] =
      static_cast<double>(tx.tx_calls) / static_cast<double>(state.iterations());
  state.counters["rx_calls_per_burst"] =
      static_cast<double>(rx.rx_calls) / static_cast<double>(state.iterations());
}

// There and back on one thread: four driver calls and the kernel's work in between.
void BM_DriverPingPong(benchmark::State& state) {
  Pair pair;
  const auto bytes = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::byte> payload(bytes);
  const auto ping = make_burst(pair.path, 1, bytes, payload);
  std::array<RxDatagram, 32> in;
  std::array<BufferId, 32> buffers;
  pair.client->tx_burst(ping);
  while (pair.server->rx_burst(std::span(in).first(1)) == 0) {
  }
  const PathId back = pair.server->open_return_path(in[0]).value();
  pair.server->rx_release({&in[0].buffer, 1});
  const auto pong = make_burst(back, 1, bytes, payload);
  for (auto _ : state) {
    pair.client->tx_burst(ping);
    while (receive(*pair.server, in, buffers) == 0) {
    }
    pair.server->tx_burst(pong);
    while (receive(*pair.client, in, buffers) == 0) {
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["rx_calls_per_datagram"] =
      static_cast<double>(pair.server->counters().rx_calls + pair.client->counters().rx_calls) /
      static_cast<double>(2 * state.iterations());
}

void BM_DriverEmptyPoll(benchmark::State& state) {
  Pair pair;
  std::array<RxDatagram, 32> in;
  for (auto _ : state) benchmark::DoNotOptimize(pair.server->rx_burst(in));
}

BENCHMARK(BM_DriverBulk)
    ->ArgNames({"datagrams", "bytes"})
    ->Args({1, 1408})
    ->Args({8, 1408})
    ->Args({32, 1408})
    ->Args({45, 1408})
    ->Args({1, 0});  // the largest datagram that loopback carries
BENCHMARK(BM_DriverPingPong)->ArgName("bytes")->Arg(64);
BENCHMARK(BM_DriverEmptyPoll);

}  // namespace
