// SPDX-License-Identifier: Apache-2.0
// What srd-perf client and server say to each other: control messages are JSON on channel 0, test
// messages have channels of their own that carry session and stream, so that even a message of one
// byte needs no header. Messages are not ordered, and every control message says all that its
// receiver needs.
//
//   client                         server
//   open {parameters}       -->
//                           <--    accept {session} | refuse {text}
//   start                   -->                        both run the test
//                           <--    sent                the server has sent its -n bytes
//   stop                    -->                        both end the measurement, and drain
//   totals {results}        -->                        all the client sent is acknowledged
//                           <--    results {results}   the same, and all the client sent has come
//   alive                  <-->                        once a second: a lost peer is noticed
//   failed {text}          <-->                        the test cannot go on
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "srd_perf/parameters.hpp"
#include "srd_perf/results.hpp"

namespace perf {

/// Raised with any change that an older program would misread.
inline constexpr unsigned kProtocolVersion = 1;

inline constexpr std::uint16_t kControlChannel = 0;

/// Channel of a stream's messages: session tag in the upper byte (1..255), stream in the lower one.
/// Streams of the client come first (0..streams-1), then those of the server.
struct Channel {
  std::uint8_t tag = 0;
  std::uint8_t stream = 0;
};

constexpr std::uint16_t to_channel(Channel channel) noexcept {
  return static_cast<std::uint16_t>(channel.tag << 8 | channel.stream);
}

constexpr Channel from_channel(std::uint16_t number) noexcept {
  return {static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number & 0xff)};
}

enum class ControlType : std::uint8_t {
  open,
  accept,
  refuse,
  start,
  sent,
  stop,
  totals,
  results,
  alive,
  failed
};

struct ControlMessage {
  ControlType type = ControlType::alive;
  unsigned version = kProtocolVersion;  ///< open
  Parameters parameters;                ///< open
  std::uint8_t tag = 0;                 ///< all but open and refuse
  std::string cookie;                   ///< accept, refuse: of the open they answer
  std::string text;                     ///< refuse, failed
  SideResults results;                  ///< totals, results
  std::string server_output;            ///< results, if the client wants it
};

std::string encode_control(const ControlMessage& message);

/// Nothing if `text` is not a control message of any version known; never throws.
std::optional<ControlMessage> decode_control(std::string_view text) noexcept;

}  // namespace perf
