// SPDX-License-Identifier: Apache-2.0
// An echo server on Boost.Asio with callbacks.
// Usage: asio_echo_server [ADDRESS:PORT], default 127.0.0.1:0.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "srd/asio.hpp"

namespace {

class EchoServer {
 public:
  EchoServer(srd::asio::Service& service, srd::Endpoint endpoint)
      : endpoint_(service, std::move(endpoint)) {}

  void start() {
    endpoint_.async_receive([this](boost::system::error_code error, srd::Message message) {
      if (error) return;  // closed
      answer(std::move(message));
      start();
    });
  }

  void stop() { endpoint_.close(); }

 private:
  void answer(srd::Message message) {
    const srd::Peer peer = message.peer();
    auto payload = std::make_shared<std::vector<std::byte>>(message.bytes());
    message.copy_to(*payload);
    message.release();
    endpoint_.async_send(peer, boost::asio::buffer(*payload),
                         [payload](boost::system::error_code error, std::size_t) {
                           if (error && error != boost::asio::error::operation_aborted) {
                             std::fprintf(stderr, "answer lost: %s\n", error.message().c_str());
                           }
                         });
  }

  srd::asio::AsyncEndpoint endpoint_;
};

void run(const char* address) {
  boost::asio::io_context io;
  auto context = srd::Context::open("udp:").value();
  auto poller = context.make_poller().value();
  srd::EndpointConfig config;
  config.bind = srd::parse_address(address).value();
  auto endpoint = poller.make_endpoint(config).value();
  std::printf("listening on %s\n", srd::to_string(endpoint.address()).c_str());
  std::fflush(stdout);

  srd::asio::Service service(io.get_executor(), poller);
  EchoServer server(service, std::move(endpoint));
  server.start();
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code, int) {
    server.stop();
    service.close();  // nothing keeps run() any more
  });
  io.run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "127.0.0.1:0");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "asio_echo_server: %s\n", error.what());
    return 1;
  }
}
