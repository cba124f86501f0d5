// SPDX-License-Identifier: Apache-2.0
// Asks an echo server on Boost.Asio, with futures: the code reads like blocking calls while one
// thread runs the io_context. Usage: asio_echo_client ADDRESS:PORT TEXT...
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "srd/asio.hpp"

namespace {

void ask(srd::asio::AsyncEndpoint& endpoint, srd::Peer server, const std::string& text) {
  auto answer = endpoint.async_receive(boost::asio::use_future);
  endpoint.async_send(server, boost::asio::buffer(text), boost::asio::use_future).get();
  const srd::Message message = answer.get();
  std::string echoed(message.bytes(), '\0');
  message.copy_to(std::as_writable_bytes(std::span(echoed)));
  std::printf("%s\n", echoed.c_str());
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: asio_echo_client ADDRESS:PORT TEXT...\n");
    return 2;
  }
  boost::asio::io_context io;
  auto context = srd::Context::open("udp:").value();
  // Futures hand messages to this thread, which gives them back: so two threads use the poller.
  auto poller = context.make_poller({.shared = true}).value();
  srd::asio::Service service(io.get_executor(), poller);
  srd::asio::AsyncEndpoint endpoint(service, poller.make_endpoint().value());
  const srd::Peer server = endpoint.resolve(argv[1]).value();
  std::jthread thread([&] { io.run(); });

  // Even if an error is thrown, or run() would never return.
  const auto close = [](srd::asio::Service* open) { open->close(); };
  const std::unique_ptr<srd::asio::Service, decltype(close)> closes_at_end(&service, close);

  for (int i = 2; i < argc; ++i) ask(endpoint, server, argv[i]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "asio_echo_client: %s\n", error.what());
    return 1;
  }
}
