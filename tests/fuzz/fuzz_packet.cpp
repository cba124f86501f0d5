// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packet: no decoder may read outside of them, and what is accepted means the same
// after it is written and read again.
#include <cstdint>
#include <span>

#include "srd/wire/check.hpp"
#include "srd/wire/packet.hpp"

#include "base/check.hpp"
#include "support/packet_roundtrip.hpp"

namespace {

using namespace srd;
using namespace srd::wire;

void check_extensions_anywhere(std::span<const std::byte> bytes) {
  Extensions extensions;
  std::size_t length = 0;
  if (!decode_extensions(bytes, extensions, length)) return;
  SRD_CHECK(length <= bytes.size());
  SRD_CHECK(extension_bytes(extensions) <= length);
}

void check_seal(std::vector<std::byte> packet, std::uint32_t seed) {
  CommonHeader common;
  SRD_CHECK(decode(packet, common));
  const std::size_t header_bytes = fixed_bytes(common.type);
  const Segment payload{packet.data() + header_bytes,
                        static_cast<std::uint32_t>(packet.size() - header_bytes)};
  seal(std::span(packet).first(header_bytes), std::span(&payload, 1), seed);
  SRD_CHECK(verify(packet, header_bytes, seed));
  SRD_CHECK(!verify(packet, header_bytes, seed + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  SRD_CHECK(!to_string(bytes).empty());
  check_extensions_anywhere(bytes);
  verify(bytes, kCommonBytes, kUnseeded);

  const auto once = srd::test::reencode(bytes);
  if (!once) return 0;
  const auto twice = srd::test::reencode(*once);
  SRD_CHECK(twice.has_value());
  SRD_CHECK(*twice == *once);
  check_seal(*once, kUnseeded);
  return 0;
}
