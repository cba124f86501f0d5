// SPDX-License-Identifier: Apache-2.0
// Writes what crosses a simulated fabric as a pcap file (nanoseconds, raw IP) with made-up IP and
// UDP headers, for Wireshark and tcpdump.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "srd/address.hpp"
#include "srd/datagram.hpp"

#include "sim/event_queue.hpp"

namespace srd::sim {

class PcapWriter {
 public:
  PcapWriter() = default;
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// False: the file cannot be written; errno says why.
  bool open(const std::string& file);

  [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }

  void write(TimeNs at, const Address& source, const Address& destination, Ecn ecn,
             std::span<const std::byte> payload);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace srd::sim
