// SPDX-License-Identifier: Apache-2.0
// The smallest use of srd.hpp: two endpoints, one message. The README shows it.
// clang-format off
#include <cstdio>
#include "srd/srd.hpp"
int main() {
  auto context = srd::Context::open("udp:127.0.0.1").value();
  auto poller = context.make_poller().value();
  auto alice = poller.make_endpoint().value(), bob = poller.make_endpoint().value();
  auto peer = alice.resolve(bob.address()).value();
  if (alice.send(peer, srd::as_bytes("hello"))) return std::puts(srd::last_error());
  std::array<srd::Completion, 16> completions;
  for (std::error_code error; !error;)
    for (const auto& completion : poller.wait(completions, error))
      if (const srd::Message message(completion); message)
        return std::printf("bob got: %s\n", std::string(message.text()).c_str()) < 0;
  return std::puts(srd::last_error());
}
