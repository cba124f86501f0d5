// SPDX-License-Identifier: Apache-2.0
// A user's program in C++: one message between two endpoints of this process, over loopback. Built
// against the installed library in every way that is offered.
#include <array>
#include <cstdio>
#include <string_view>

#include <srd/srd.hpp>

int main() {
  constexpr std::string_view text = "installed";
  // value() throws with the text of the error, which then ends the process.
  srd::Context context = srd::Context::open("udp:127.0.0.1:0").value();
  srd::Poller poller = context.make_poller().value();
  srd::Endpoint receiver = poller.make_endpoint().value();
  srd::Endpoint sender = poller.make_endpoint().value();
  const srd::Peer peer = sender.resolve(receiver.address()).value();
  if (const std::error_code error = sender.send(peer, srd::as_bytes(text))) {
    std::fprintf(stderr, "send: %s\n", srd::last_error());
    return 1;
  }

  bool sent = false;
  bool received = false;
  std::array<srd::Completion, 8> completions;
  for (int waits = 0; waits < 100 && !(sent && received); ++waits) {
    std::error_code error;
    for (const srd::Completion& done :
         poller.wait(completions, std::chrono::milliseconds(100), error)) {
      if (done.op == SRD_OP_SEND) sent = done.status == 0;
      if (done.op == SRD_OP_RECEIVE) received = srd::Message(done).text() == text;
    }
    if (error) {
      std::fprintf(stderr, "wait: %s\n", srd::last_error());
      return 1;
    }
  }
  if (!(sent && received)) {
    std::fprintf(stderr, "no message within 10 s\n");
    return 1;
  }
  std::puts("received");
  return 0;
}
