// SPDX-License-Identifier: Apache-2.0
// Runs two cores against each other for perf/instructions.py, which counts the instructions of
// turn_sender() and turn_receiver() within measure() under callgrind. Prints, as JSON, what was
// done in measure() and which compiler made this program. Deterministic: no clock, no random
// source.
//   instr_core MESSAGE_BYTES MESSAGES
#include <cstdio>
#include <cstdlib>

#include "core_pair.hpp"

namespace {

using srd::perf::CorePair;

struct Done {
  std::uint64_t sent_datagrams = 0;
  std::uint64_t taken_datagrams = 0;
};

}  // namespace

/// callgrind collects while this runs (--toggle-collect). Outside the anonymous namespace for its
/// name.
[[gnu::noinline]] Done measure(CorePair& pair, std::uint64_t messages);

Done measure(CorePair& pair, std::uint64_t messages) {
  Done done;
  const std::uint64_t end = pair.received_messages() + messages;
  while (pair.received_messages() < end) {
    done.sent_datagrams += pair.turn_sender();
    done.taken_datagrams += pair.turn_receiver();
    pair.advance();
  }
  return done;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: instr_core MESSAGE_BYTES MESSAGES\n");
    return 2;
  }
  const auto message_bytes = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const std::uint64_t messages = std::strtoull(argv[2], nullptr, 10);
  CorePair pair(message_bytes);
  pair.run_until_received(messages);  // warm-up: handshake, slow start, all paths open
  const Done done = measure(pair, messages);
#if defined(__clang__)
  const char* const compiler = "clang " __clang_version__;
#else
  const char* const compiler = "gcc " __VERSION__;
#endif
  std::printf("{\"compiler\": \"%s\", \"sent_datagrams\": %llu, \"taken_datagrams\": %llu}\n",
              compiler, static_cast<unsigned long long>(done.sent_datagrams),
              static_cast<unsigned long long>(done.taken_datagrams));
  return 0;
}
