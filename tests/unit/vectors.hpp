// SPDX-License-Identifier: Apache-2.0
// The golden packets: what they contain, and their form as commented hex files in vectors/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "srd/wire/packet.hpp"

namespace srd::test {

struct Vector {
  std::string name;              ///< file vectors/NAME.hex
  std::string title;             ///< its first line
  std::uint32_t seed = 0;        ///< of the check
  std::vector<std::byte> bytes;  ///< the packet, sealed
};

/// Every golden packet, made by the encoders.
std::vector<Vector> make_vectors();

/// Seeds of the context that hello.hex and hello_ack.hex open: initiator to responder, and back.
std::uint32_t forward_seed();
std::uint32_t reverse_seed();

/// One field of a packet in the order of the wire.
struct Field {
  const char* name;
  std::size_t bytes;
};

/// Fields of the common header, of the body of `type` (from offset 20 on), of a SMALL record, of
/// the value of a TLV. Written down independently of the encoders; PROTOCOL.md is compared with it.
const std::vector<Field>& common_fields();
const std::vector<Field>& body_fields(wire::PacketType type);
const std::vector<Field>& record_fields();
const std::vector<Field>& tlv_fields(wire::TlvType type);

/// The text of vectors/NAME.hex: one line per field, "bytes  # offset name value".
std::string to_hex_file(const Vector& vector);

/// The bytes in such a text: hex digits up to a '#' in each line.
std::vector<std::byte> parse_hex_file(std::string_view text);

}  // namespace srd::test
