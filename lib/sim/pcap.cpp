// SPDX-License-Identifier: Apache-2.0
#include "sim/pcap.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace srd::sim {
namespace {

constexpr std::uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr std::uint32_t kLinkTypeRaw = 101;
constexpr std::size_t kIpv4Bytes = 20, kIpv6Bytes = 40, kUdpBytes = 8;
constexpr std::uint8_t kUdpProtocol = 17;

void put16(std::vector<std::uint8_t>& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

std::uint32_t sum16(std::span<const std::uint8_t> bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const unsigned low = i + 1 < bytes.size() ? bytes[i + 1] : 0;
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | static_cast<int>(low));
  }
  return sum;
}

std::uint16_t fold(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put_ip(std::vector<std::uint8_t>& out, const Address& source, const Address& destination,
            Ecn ecn, std::size_t udp_bytes) {
  const auto tos = static_cast<std::uint8_t>(ecn);
  if (source.family == 6) {
    out.push_back(0x60);
    out.push_back(static_cast<std::uint8_t>(tos << 4));
    put16(out, 0);
    put16(out, udp_bytes);
    out.push_back(kUdpProtocol);
    out.push_back(64);
    out.insert(out.end(), source.bytes, source.bytes + 16);
    out.insert(out.end(), destination.bytes, destination.bytes + 16);
    return;
  }
  out.push_back(0x45);
  out.push_back(tos);
  put16(out, kIpv4Bytes + udp_bytes);
  put16(out, 0);
  put16(out, 0x4000);  // do not fragment
  out.push_back(64);
  out.push_back(kUdpProtocol);
  put16(out, 0);
  out.insert(out.end(), source.bytes, source.bytes + 4);
  out.insert(out.end(), destination.bytes, destination.bytes + 4);
  const std::uint16_t check = fold(sum16(out, 0));
  out[10] = static_cast<std::uint8_t>(check >> 8);
  out[11] = static_cast<std::uint8_t>(check);
}

std::uint16_t udp_check(const Address& source, const Address& destination,
                        std::span<const std::uint8_t> udp) {
  const std::size_t address_bytes = source.family == 6 ? 16 : 4;
  std::uint32_t sum = kUdpProtocol + static_cast<std::uint32_t>(udp.size());
  sum = sum16(std::span(source.bytes).first(address_bytes), sum);
  sum = sum16(std::span(destination.bytes).first(address_bytes), sum);
  const std::uint16_t check = fold(sum16(udp, sum));
  return check == 0 ? 0xffff : check;
}

}  // namespace

PcapWriter::~PcapWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

bool PcapWriter::open(const std::string& file) {
  file_ = std::fopen(file.c_str(), "wb");
  if (file_ == nullptr) return false;
  const std::array<std::uint32_t, 6> head{kMagicNanoseconds, 2 | 4U << 16, 0, 0, 65'535,
                                          kLinkTypeRaw};
  return std::fwrite(head.data(), sizeof head, 1, file_) == 1;
}

void PcapWriter::write(TimeNs at, const Address& source, const Address& destination, Ecn ecn,
                       std::span<const std::byte> payload) {
  std::vector<std::uint8_t> udp;
  put16(udp, source.port);
  put16(udp, destination.port);
  put16(udp, kUdpBytes + payload.size());
  put16(udp, 0);
  const auto* first = reinterpret_cast<const std::uint8_t*>(payload.data());
  udp.insert(udp.end(), first, first + payload.size());
  const std::uint16_t check = udp_check(source, destination, udp);
  udp[6] = static_cast<std::uint8_t>(check >> 8);
  udp[7] = static_cast<std::uint8_t>(check);

  std::vector<std::uint8_t> packet;
  packet.reserve(kIpv6Bytes + udp.size());
  put_ip(packet, source, destination, ecn, udp.size());
  packet.insert(packet.end(), udp.begin(), udp.end());
  const auto bytes = static_cast<std::uint32_t>(packet.size());
  const std::array<std::uint32_t, 4> record{static_cast<std::uint32_t>(at / kSecond),
                                            static_cast<std::uint32_t>(at % kSecond), bytes, bytes};
  std::fwrite(record.data(), sizeof record, 1, file_);
  std::fwrite(packet.data(), packet.size(), 1, file_);
}

}  // namespace srd::sim
