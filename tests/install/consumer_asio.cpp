// SPDX-License-Identifier: Apache-2.0
// A user's program on Boost.Asio: one message between two endpoints of this process, over loopback.
#include <cstdio>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <srd/asio.hpp>

int main() {
  constexpr std::string_view text = "installed";
  boost::asio::io_context io;
  srd::Context context = srd::Context::open("udp:127.0.0.1:0").value();
  srd::Poller poller = context.make_poller().value();
  srd::asio::Service service(io.get_executor(), poller);
  srd::asio::AsyncEndpoint receiver(service, poller.make_endpoint().value());
  srd::asio::AsyncEndpoint sender(service, poller.make_endpoint().value());
  const srd::Peer peer = sender.resolve(receiver.address()).value();

  boost::asio::steady_timer timer(io, std::chrono::seconds(10));
  bool sent = false;
  bool received = false;
  const auto finish = [&] {
    if (sent && received) timer.cancel();
  };
  timer.async_wait([&](const boost::system::error_code&) { service.close(); });
  receiver.async_receive([&](const boost::system::error_code& error, srd::Message message) {
    received = !error && message.text() == text;
    finish();
  });
  sender.async_send(peer, boost::asio::buffer(text),
                    [&](const boost::system::error_code& error, std::size_t) {
                      sent = !error;
                      finish();
                    });
  io.run();
  if (!(sent && received)) {
    std::fprintf(stderr, "no message within 10 s\n");
    return 1;
  }
  std::puts("received");
  return 0;
}
