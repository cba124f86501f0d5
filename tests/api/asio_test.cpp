// SPDX-License-Identifier: Apache-2.0
// The Boost.Asio adapter: completion tokens, executors, allocators, cancellation, life times.
#include "srd/asio.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "api/harness.hpp"

namespace srd::test {

namespace {

namespace net = boost::asio;
using boost::system::error_code;

class AsioTest : public PairTest {
 protected:
  explicit AsioTest(const EndpointConfig& config = {.connect_timeout_ms = 300})
      : context_(Context::open("pair:").value()),
        poller_(context_.make_poller({.shared = true}).value()),
        service_(io_.get_executor(), poller_),
        alice_(service_, poller_.make_endpoint(config).value()),
        bob_(service_, poller_.make_endpoint(config).value()),
        to_bob_(alice_.resolve(bob_.address()).value()) {}

  // Runs handlers until `done()`.
  template <class Done>
  ::testing::AssertionResult run_until(Done done) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > give_up) {
        return ::testing::AssertionFailure() << "did not happen within the time limit";
      }
      io_.run_one_for(std::chrono::milliseconds(10));
    }
    return ::testing::AssertionSuccess();
  }

  net::io_context io_;
  Context context_;
  Poller poller_;
  asio::Service service_;
  asio::AsyncEndpoint alice_, bob_;
  Peer to_bob_;
};

TEST_F(AsioTest, Callbacks) {
  std::string text;
  Peer from = kInvalidPeer;
  std::size_t sent = 0;
  bool inside_call = true;
  bob_.async_receive([&](error_code error, Message message) {
    EXPECT_FALSE(error) << error.message();
    EXPECT_FALSE(inside_call);
    text = message.text();
    from = message.peer();
  });
  const std::string payload = "hello";
  alice_.async_send(to_bob_, net::buffer(payload), [&](error_code error, std::size_t bytes) {
    EXPECT_FALSE(error) << error.message();
    EXPECT_FALSE(inside_call);
    sent = bytes;
  });
  inside_call = false;
  ASSERT_TRUE(run_until([&] { return !text.empty() && sent != 0; }));
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(sent, 5U);
  EXPECT_NE(from, kInvalidPeer);
}

TEST_F(AsioTest, MessageThatCameFirstIsKeptForTheReceive) {
  bool sent = false;
  alice_.async_send(to_bob_, net::buffer("abc", 3), [&](error_code, std::size_t) { sent = true; });
  ASSERT_TRUE(run_until([&] { return sent; }));
  std::string text;
  bool inside_call = true;
  bob_.async_receive([&](error_code, Message message) {
    EXPECT_FALSE(inside_call);
    text = message.text();
  });
  inside_call = false;
  ASSERT_TRUE(run_until([&] { return !text.empty(); }));
  EXPECT_EQ(text, "abc");
}

TEST_F(AsioTest, GathersBuffersAndPassesOptions) {
  const std::string one = "on";
  const std::string two = "e message";
  const std::array<net::const_buffer, 2> buffers = {net::buffer(one), net::buffer(two)};
  std::string text;
  int channel = -1;
  bob_.async_receive([&](error_code, Message message) {
    text = message.text();
    channel = message.channel();
  });
  alice_.async_send(to_bob_, buffers, SendOptions{.channel = 3}, [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return !text.empty(); }));
  EXPECT_EQ(text, "one message");
  EXPECT_EQ(channel, 3);
}

TEST_F(AsioTest, TooManyBuffersAreRefused) {
  const std::array<net::const_buffer, 9> buffers{};
  error_code got;
  alice_.async_send(to_bob_, buffers, [&](error_code error, std::size_t) { got = error; });
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::invalid_argument);
}

TEST_F(AsioTest, ShortBufferTellsTheNeedAndKeepsTheMessage) {
  std::array<char, 8> small{};
  std::array<char, 64> large{};
  error_code first;
  std::size_t needed = 0;
  std::string text;
  bob_.async_receive_from(net::buffer(small), [&](error_code error, std::size_t bytes, Peer) {
    first = error;
    needed = bytes;
  });
  bob_.async_receive_from(net::buffer(large), [&](error_code error, std::size_t bytes, Peer) {
    EXPECT_FALSE(error);
    text.assign(large.data(), bytes);
  });
  alice_.async_send(to_bob_, net::buffer("twelve bytes", 12), [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return !text.empty(); }));
  EXPECT_EQ(first, net::error::message_size);
  EXPECT_EQ(needed, 12U);
  EXPECT_EQ(text, "twelve bytes");
}

TEST_F(AsioTest, FuturesFromAnotherThread) {
  auto work = net::make_work_guard(io_);
  std::thread thread([&] { io_.run(); });
  const auto payload = pattern(200'000);
  for (int i = 0; i < 20; ++i) {
    std::future<Message> received = bob_.async_receive(net::use_future);
    std::future<std::size_t> sent =
        alice_.async_send(to_bob_, net::buffer(payload), net::use_future);
    const bool in_time = received.wait_for(kPatience) == std::future_status::ready &&
                         sent.wait_for(kPatience) == std::future_status::ready;
    EXPECT_TRUE(in_time);
    if (!in_time) break;
    EXPECT_EQ(contents(received.get()), payload);
    EXPECT_EQ(sent.get(), payload.size());
  }
  auto silent = bob_.async_receive(net::use_future);
  service_.close();
  EXPECT_EQ(silent.wait_for(kPatience), std::future_status::ready);
  try {
    (void)silent.get();
    ADD_FAILURE() << "a receive on a closed endpoint succeeded";
  } catch (const boost::system::system_error& error) {
    EXPECT_EQ(error.code(), net::error::operation_aborted);
  }
  work.reset();
  thread.join();  // nothing keeps run() after close()
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT)

net::awaitable<void> echo(asio::AsyncEndpoint& endpoint, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const Message message = co_await endpoint.async_receive(net::use_awaitable);
    const auto copy = contents(message);
    co_await endpoint.async_send(message.peer(), net::buffer(copy), net::use_awaitable);
  }
}

net::awaitable<void> ask(asio::AsyncEndpoint& endpoint, Peer peer, int rounds, int& right) {
  std::vector<char> answer(50'000);
  for (int i = 0; i < rounds; ++i) {
    const auto question = pattern(static_cast<std::size_t>(i) * 1'000, static_cast<unsigned>(i));
    co_await endpoint.async_send(peer, net::buffer(question), net::use_awaitable);
    const auto [bytes, from] =
        co_await endpoint.async_receive_from(net::buffer(answer), net::use_awaitable);
    const auto got = std::as_bytes(std::span(answer)).first(bytes);
    const bool is_equal = from == peer && std::ranges::equal(got, question);
    right += is_equal ? 1 : 0;
  }
}

TEST_F(AsioTest, Coroutines) {
  constexpr int kRounds = 30;
  int right = 0;
  int ended = 0;
  const auto count = [&](const std::exception_ptr& error) {
    EXPECT_FALSE(error);
    ++ended;
  };
  net::co_spawn(io_, echo(bob_, kRounds), count);
  net::co_spawn(io_, ask(alice_, to_bob_, kRounds, right), count);
  ASSERT_TRUE(run_until([&] { return ended == 2; }));
  EXPECT_EQ(right, kRounds);
}

TEST_F(AsioTest, CoroutineSeesErrorsAsExceptions) {
  const Peer nobody = alice_.resolve("127.0.0.1:9").value();
  error_code got;
  net::co_spawn(
      io_,
      [&]() -> net::awaitable<void> {
        try {
          co_await alice_.async_send(nobody, net::buffer("x", 1), net::use_awaitable);
        } catch (const boost::system::system_error& error) {
          got = error.code();
        }
      },
      net::detached);
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::timed_out);
}

#endif

TEST_F(AsioTest, ErrorsAreBoostErrors) {
  const Peer nobody = alice_.resolve("127.0.0.1:9").value();
  error_code got;
  alice_.async_send(nobody, net::buffer("x", 1),
                    [&](error_code error, std::size_t) { got = error; });
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::timed_out);
  EXPECT_EQ(asio::to_boost(-SRD_ERR_PEER_UNREACHABLE), boost::system::errc::host_unreachable);
  EXPECT_STREQ(asio::to_boost(-SRD_ERR_PEER_UNREACHABLE).category().name(), "srd");
}

TEST_F(AsioTest, PeerEventsReachTheirHandler) {
  std::vector<error_code> events;
  alice_.on_peer([&](Peer peer, error_code error) {
    EXPECT_EQ(peer, to_bob_);
    events.push_back(error);
  });
  alice_.async_send(to_bob_, net::buffer("x", 1), [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return events.size() == 1; }));
  EXPECT_FALSE(events.front());
  bob_.close();
  ASSERT_TRUE(run_until([&] { return events.size() == 2; }));
  EXPECT_EQ(events.back(), boost::system::errc::connection_aborted);
}

TEST_F(AsioTest, ForgottenPeerEndsItsSends) {
  pair_faults().dead_port = bob_.address().port;
  error_code got;
  const auto payload = pattern(100'000);
  alice_.async_send(to_bob_, net::buffer(payload),
                    [&](error_code error, std::size_t) { got = error; });
  EXPECT_FALSE(alice_.forget(to_bob_));
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::operation_aborted);
  EXPECT_EQ(alice_.forget(to_bob_), Errc::not_found);
}

TEST_F(AsioTest, CancelAbortsReceivesAndLeavesTheEndpointUsable) {
  error_code got;
  bob_.async_receive([&](error_code error, Message) { got = error; });
  bob_.cancel();
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::operation_aborted);
  std::string text;
  bob_.async_receive([&](error_code, Message message) { text = message.text(); });
  alice_.async_send(to_bob_, net::buffer("still", 5), [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return text == "still"; }));
}

TEST_F(AsioTest, CloseAbortsEverythingPendingAndLaterCallsFail) {
  pair_faults().dead_port = bob_.address().port;
  std::vector<error_code> got;
  const auto payload = pattern(100'000);
  alice_.async_send(to_bob_, net::buffer(payload),
                    [&](error_code error, std::size_t) { got.push_back(error); });
  alice_.async_receive([&](error_code error, Message) { got.push_back(error); });
  alice_.close();
  ASSERT_TRUE(run_until([&] { return got.size() == 2; }));
  EXPECT_EQ(got[0], net::error::operation_aborted);
  EXPECT_EQ(got[1], net::error::operation_aborted);
  alice_.async_receive([&](error_code error, Message) { got.push_back(error); });
  ASSERT_TRUE(run_until([&] { return got.size() == 3; }));
  EXPECT_EQ(got[2], net::error::bad_descriptor);
}

TEST_F(AsioTest, CountersAndAddressMayBeReadWhileAnotherThreadCloses) {
  std::atomic<bool> reading{false}, closed{false};
  std::thread reader([&] {
    while (!closed.load()) {
      static_cast<void>(alice_.stats());
      static_cast<void>(alice_.address());
      reading.store(true);
    }
  });
  while (!reading.load()) std::this_thread::yield();
  alice_.close();
  closed.store(true);
  reader.join();
  EXPECT_EQ(alice_.address().family, 0);
}

TEST_F(AsioTest, CloseTakesBackMessagesThatNoHandlerHasSeen) {
  bool sent = false;
  error_code got;
  bool had_message = true;
  alice_.async_send(to_bob_, net::buffer("x", 1), [&](error_code, std::size_t) { sent = true; });
  ASSERT_TRUE(run_until([&] { return sent; }));
  bob_.async_receive([&](error_code error, Message message) {
    got = error;
    had_message = static_cast<bool>(message);
  });
  bob_.close();  // the handler is posted with a message that goes away now
  ASSERT_TRUE(run_until([&] { return !!got; }));
  EXPECT_EQ(got, net::error::operation_aborted);
  EXPECT_FALSE(had_message);
}

TEST_F(AsioTest, HandlersThatNeverRunAreFreed) {
  auto alive = std::make_shared<int>(0);
  {
    net::io_context io;
    Poller poller = context_.make_poller().value();
    asio::Service service(io.get_executor(), poller);
    asio::AsyncEndpoint endpoint(service, poller.make_endpoint().value());
    endpoint.async_receive([alive](error_code, Message) {});
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

// Counts what it allocates.
template <class T>
struct CountingAllocator {
  using value_type = T;

  explicit CountingAllocator(int& count_in) : count(&count_in) {}

  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : count(other.count) {}  // NOLINT

  T* allocate(std::size_t n) {
    ++*count;
    return std::allocator<T>().allocate(n);
  }

  void deallocate(T* memory, std::size_t n) {
    --*count;
    std::allocator<T>().deallocate(memory, n);
  }

  bool operator==(const CountingAllocator&) const = default;
  int* count;
};

struct AllocatingHandler {
  using allocator_type = CountingAllocator<void>;

  [[nodiscard]] allocator_type get_allocator() const { return allocator_type(*count); }

  void operator()(error_code, Message) const {
    ++*called;
    *left = *count;
  }

  int* count;
  int* called;
  int* left;
};

TEST_F(AsioTest, UsesTheAssociatedAllocatorAndFreesBeforeTheHandler) {
  int count = 0;
  int called = 0;
  int left = -1;
  bob_.async_receive(AllocatingHandler{&count, &called, &left});
  EXPECT_GE(count, 1);
  alice_.async_send(to_bob_, net::buffer("x", 1), [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return called == 1; }));
  EXPECT_EQ(left, 0);
  EXPECT_EQ(count, 0);
}

TEST_F(AsioTest, RunsOnTheAssociatedExecutor) {
  net::strand<net::io_context::executor_type> strand(io_.get_executor());
  bool on_strand = false;
  bool called = false;
  bob_.async_receive(net::bind_executor(strand, [&](error_code, Message) {
    on_strand = strand.running_in_this_thread();
    called = true;
  }));
  alice_.async_send(to_bob_, net::buffer("x", 1), [](error_code, std::size_t) {});
  ASSERT_TRUE(run_until([&] { return called; }));
  EXPECT_TRUE(on_strand);
}

class AsioSmallQueueTest : public AsioTest {
 protected:
  AsioSmallQueueTest() : AsioTest(EndpointConfig{.max_sends = 4}) {}
};

TEST_F(AsioSmallQueueTest, FullQueueIsWaitedFor) {
  constexpr int kCount = 200;
  int sent = 0;
  int received = 0;
  std::function<void()> receive = [&] {
    bob_.async_receive([&](error_code error, const Message&) {
      if (error) return;
      ++received;
      receive();
    });
  };
  receive();
  for (int i = 0; i < kCount; ++i) {
    alice_.async_send(to_bob_, net::buffer("x", 1), [&](error_code error, std::size_t) {
      EXPECT_FALSE(error) << error.message();
      ++sent;
    });
  }
  ASSERT_TRUE(run_until([&] { return sent == kCount && received == kCount; }));
}

}  // namespace

}  // namespace srd::test
