// SPDX-License-Identifier: Apache-2.0
// A driver for API tests, "pair:": endpoints of one process exchange datagrams through memory,
// under the test's control. Addresses are 127.0.0.1 with a port of their own name space. Real time;
// for virtual time see the simulator.
#pragma once

#include <atomic>
#include <cstdint>

namespace srd::test {

/// Faults of the network between all pair: endpoints. Any thread.
struct PairFaults {
  std::atomic<unsigned> drop_one_in{0};        ///< 0: no loss
  std::atomic<std::uint16_t> dead_port{0};     ///< datagrams to and from it vanish; 0: none
  std::atomic<std::uint64_t> host_drops{0};    ///< what every endpoint says this host dropped
  std::atomic<std::uint64_t> tx_datagrams{0};  ///< counts; never reset by the driver
};

PairFaults& pair_faults();

/// Makes "pair:" known to srd_context_open(). Options: sleep=on|off, paths=1..64, and what the
/// device claims: datagram_bytes=1..1472, reliable=on|off, regions=on|off. Once per process.
void register_pair_driver();

}  // namespace srd::test
