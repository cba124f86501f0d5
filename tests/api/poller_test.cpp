// SPDX-License-Identifier: Apache-2.0
// Sleeping, waking, foreign loops, shared pollers, fork.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include <pthread.h>

#include "api/harness.hpp"

namespace srd::test {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

using PollerTest = PairTest;

bool may_sleep(Poller& poller) {
  std::error_code error;
  const bool armed = poller.arm(error);
  EXPECT_FALSE(error) << error.message();
  return armed;
}

TEST_F(PollerTest, WaitEndsAfterItsTimeout) {
  TwoEndpoints net;
  std::array<Completion, 4> completions;
  const auto start = Clock::now();
  EXPECT_TRUE(harvest(net.poller, completions, 30ms).empty());
  EXPECT_GE(Clock::now() - start, 30ms);
  EXPECT_TRUE(harvest(net.poller, completions, 0ms).empty());
}

TEST_F(PollerTest, IdleWaitBarelyRuns) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  (void)net.run_until([give_up = Clock::now() + 500ms] { return Clock::now() > give_up; });
  std::array<Completion, 4> completions;
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_TRUE(harvest(net.poller, completions, 500ms).empty());
  getrusage(RUSAGE_THREAD, &after);
  // One sleep, and a few for timers that still stood from before.
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 5);
}

TEST_F(PollerTest, WakeEndsAWaitFromAnotherThread) {
  TwoEndpoints net;
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(net.poller.wake());
  });
  std::array<Completion, 4> completions;
  const auto start = Clock::now();
  EXPECT_TRUE(harvest(net.poller, completions, kPatience).empty());
  EXPECT_LT(Clock::now() - start, kPatience);
  waker.join();
}

TEST_F(PollerTest, WakeBeforeTheWaitEndsThatOneOnly) {
  TwoEndpoints net;
  std::array<Completion, 4> completions;
  EXPECT_FALSE(net.poller.wake());
  EXPECT_FALSE(net.poller.wake());
  auto start = Clock::now();
  EXPECT_TRUE(harvest(net.poller, completions, kPatience).empty());
  EXPECT_LT(Clock::now() - start, kPatience);
  start = Clock::now();
  EXPECT_TRUE(harvest(net.poller, completions, 20ms).empty());
  EXPECT_GE(Clock::now() - start, 20ms);
}

TEST_F(PollerTest, SignalEndsAWait) {
  TwoEndpoints net;

  struct sigaction action {};

  struct sigaction old {};

  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> done{false};
  std::thread sender([&, waiter = pthread_self()] {
    while (!done.load()) {
      pthread_kill(waiter, SIGUSR1);
      std::this_thread::sleep_for(5ms);
    }
  });
  std::array<Completion, 4> completions;
  const auto start = Clock::now();
  std::error_code error;
  EXPECT_TRUE(net.poller.wait(completions, kPatience, error).empty());
  EXPECT_FALSE(error);
  EXPECT_LT(Clock::now() - start, kPatience);
  done = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
}

// Nothing but the wake itself can end the sleep: a single lost one is a time-out of epoll_wait.
TEST_F(PollerTest, ForeignLoopLosesNoWake) {
  TwoEndpoints net;
  constexpr int kRounds = 5'000;
  std::atomic<int> woken{0};
  std::atomic<int> seen{0};
  std::thread waker([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (seen.load() < i - 1) std::this_thread::yield();
      for (int spin = 0; spin < i % 64; ++spin) (void)Clock::now();
      woken.store(i);
      (void)net.poller.wake();
    }
  });
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, net.poller.fd(), &event), 0);
  std::array<Completion, 4> completions;
  int timeouts = 0;
  while (seen.load() < kRounds && timeouts == 0) {
    (void)harvest(net.poller, completions);
    seen.store(woken.load());
    if (seen.load() == kRounds || !may_sleep(net.poller)) continue;
    if (woken.load() != seen.load()) continue;
    timeouts += epoll_wait(loop, &event, 1, 10'000) == 0 ? 1 : 0;
  }
  EXPECT_EQ(timeouts, 0);
  seen.store(kRounds);
  waker.join();
  close(loop);
}

TEST_F(PollerTest, ForeignLoopSeesTrafficAndTimers) {
  TwoEndpoints net({.connect_timeout_ms = 200});
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, net.poller.fd(), &event), 0);
  const Peer nobody = net.alice.resolve("127.0.0.1:9").value();
  ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("x")));
  ASSERT_FALSE(net.alice.send(nobody, as_bytes("y")));  // ends by a timer only
  std::array<Completion, 4> completions;
  const auto is_done = [&] { return !net.messages.empty() && net.sends.size() == 2; };
  int timeouts = 0;
  while (!is_done() && timeouts == 0) {
    for (const Completion& c : harvest(net.poller, completions)) net.take(c);
    if (is_done() || !may_sleep(net.poller)) continue;
    timeouts += epoll_wait(loop, &event, 1, 10'000) == 0 ? 1 : 0;
  }
  EXPECT_EQ(timeouts, 0) << net.messages.size() << " messages, " << net.sends.size()
                         << " sends ended";
  close(loop);
}

TEST_F(PollerTest, SpinsBeforeItSleeps) {
  TwoEndpoints net({}, {.spin_us = 20'000});
  std::array<Completion, 4> completions;
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  EXPECT_TRUE(harvest(net.poller, completions, 30ms).empty());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const auto cpu_ns =
      (after.tv_sec - before.tv_sec) * 1'000'000'000L + after.tv_nsec - before.tv_nsec;
  EXPECT_GT(cpu_ns, 1'000'000);  // a sleeping wait takes microseconds
}

// ---- shared pollers
// -------------------------------------------------------------------------------

class SharedPollerTest : public PairTest {};

constexpr auto kForEver = std::chrono::nanoseconds::max();

// As harvest(), but another thread may be driving.
std::span<Completion> poll_shared(Poller& poller, std::span<Completion> out) {
  std::error_code error;
  const auto found = poller.poll(out, error);
  EXPECT_TRUE(!error || error == Errc::busy) << last_error();
  return found;
}

TEST_F(SharedPollerTest, FourThreadsSendAndPoll) {
  TwoEndpoints net({}, {.shared = true});
  constexpr int kThreads = 4;
  constexpr int kPerThread = 500;
  std::atomic<int> received{0};
  std::atomic<int> completed{0};
  std::atomic<int> failed{0};
  const auto give_up = Clock::now() + kPatience;
  const auto count = [&](std::span<Completion> found) {
    for (const Completion& c : found) {
      if (c.op == SRD_OP_RECEIVE) {
        const Message message(c);
        received += message.bytes() == 100 ? 1 : 0;
      } else if (c.op == SRD_OP_SEND) {
        ++completed;
        failed += c.status < 0 ? 1 : 0;
      }
    }
  };
  const auto payload = pattern(100);
  const auto all_done = [&] {
    return (received == kThreads * kPerThread && completed == kThreads * kPerThread) ||
           Clock::now() > give_up;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::array<Completion, 16> completions;
      for (int sent = 0; sent < kPerThread && Clock::now() < give_up;) {
        const std::error_code error = net.alice.send(net.to_bob, payload);
        if (!error) ++sent;
        EXPECT_TRUE(!error || error == Errc::would_block);
        std::error_code busy;
        count(net.poller.poll(completions, busy));
        EXPECT_TRUE(!busy || busy == Errc::busy);
      }
      // Two go on polling, two sleep: both must find the rest.
      while (!all_done()) {
        count(t % 2 == 0 ? poll_shared(net.poller, completions)
                         : harvest(net.poller, completions, 5ms));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received, kThreads * kPerThread);
  EXPECT_EQ(completed, kThreads * kPerThread);
  EXPECT_EQ(failed, 0);
}

TEST_F(SharedPollerTest, SendIsCarriedByAThreadThatSleeps) {
  TwoEndpoints net({}, {.shared = true});
  std::atomic<int> received{0};
  std::atomic<bool> stop{false};
  std::thread sleeper([&] {
    std::array<Completion, 16> completions;
    while (!stop.load()) {
      for (const Completion& c : harvest(net.poller, completions, kForEver)) {
        if (c.op != SRD_OP_RECEIVE) continue;
        const Message message(c);
        ++received;
      }
    }
  });
  constexpr int kRounds = 200;
  const auto give_up = Clock::now() + kPatience;
  for (int i = 1; i <= kRounds; ++i) {
    ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("x"), {.copy = true}));
    while (received.load() < i && Clock::now() < give_up) std::this_thread::yield();
    if (i % 20 == 0) std::this_thread::sleep_for(1ms);  // so that it surely sleeps
  }
  EXPECT_EQ(received, kRounds);
  stop = true;
  EXPECT_FALSE(net.poller.wake());
  sleeper.join();
}

TEST_F(SharedPollerTest, WakeReachesASleeperWhileOthersPoll) {
  TwoEndpoints net({}, {.shared = true});
  std::atomic<int> woken{0};
  std::atomic<bool> stop{false};
  std::thread sleeper([&] {
    std::array<Completion, 16> completions;
    while (!stop.load()) {
      (void)harvest(net.poller, completions, kForEver);
      ++woken;
    }
  });
  const auto give_up = Clock::now() + kPatience;
  std::array<Completion, 16> completions;
  for (int i = 1; i <= 200; ++i) {
    (void)net.poller.wake();
    while (woken.load() < i && Clock::now() < give_up) (void)poll_shared(net.poller, completions);
  }
  EXPECT_GE(woken, 200);
  stop = true;
  EXPECT_FALSE(net.poller.wake());
  sleeper.join();
}

// A thread in a foreign loop sleeps on the descriptor; what another one sends is then the sleeper's
// to retransmit, although the other one polled in between.
TEST_F(SharedPollerTest, ForeignLoopLearnsOfDeadlinesThatOthersSet) {
  TwoEndpoints net({}, {.shared = true});
  ASSERT_TRUE(net.connect());
  (void)net.run_until([end = Clock::now() + 300ms] { return Clock::now() > end; });
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, net.poller.fd(), &event), 0);
  std::atomic<bool> armed{false};
  std::atomic<int> done{0};
  std::thread sleeper([&] {
    std::array<Completion, 4> completions;
    const auto give_up = Clock::now() + kPatience;
    while (done.load() < 2 && Clock::now() < give_up) {
      for (const Completion& c : poll_shared(net.poller, completions)) {
        const Message message(c);
        done += c.op == SRD_OP_PEER ? 0 : 1;
      }
      if (done.load() == 2 || !may_sleep(net.poller)) continue;
      armed = true;
      epoll_wait(loop, &event, 1, 5'000);
    }
  });
  while (!armed.load()) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  pair_faults().dead_port = net.bob.address().port;
  (void)poll_shared(net.poller, {});
  EXPECT_FALSE(net.alice.send(net.to_bob, as_bytes("x"), {.copy = true}));
  heal();  // what was sent is lost; only the sleeper's timer can send it again
  const auto start = Clock::now();
  sleeper.join();
  EXPECT_EQ(done, 2);
  EXPECT_LT(Clock::now() - start, 2s);
  close(loop);
}

TEST_F(SharedPollerTest, WakeReachesAForeignLoopWhileOthersPoll) {
  TwoEndpoints net({}, {.shared = true});
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, net.poller.fd(), &event), 0);
  constexpr int kRounds = 200;
  std::atomic<int> asked{0};
  std::atomic<int> seen{0};
  std::atomic<int> timeouts{0};
  std::thread sleeper([&] {
    std::array<Completion, 4> completions;
    while (seen.load() < kRounds && timeouts.load() == 0) {
      (void)poll_shared(net.poller, completions);
      seen = asked.load();
      if (seen.load() == kRounds || !may_sleep(net.poller)) continue;
      timeouts += epoll_wait(loop, &event, 1, 5'000) == 0 ? 1 : 0;
    }
  });
  std::array<Completion, 4> completions;
  for (int i = 1; i <= kRounds && timeouts.load() == 0; ++i) {
    asked = i;
    (void)net.poller.wake();
    while (seen.load() < i && timeouts.load() == 0) (void)poll_shared(net.poller, completions);
  }
  EXPECT_EQ(timeouts, 0);
  sleeper.join();
  close(loop);
}

// ---- reading from other threads
// -------------------------------------------------------------------

class ReadingTest : public ::testing::WithParamInterface<bool>, public PairTest {};

TEST_P(ReadingTest, AnyThreadReadsPeersAndPathsWhileTheOwnerWorks) {
  TwoEndpoints net({}, {.shared = GetParam()});
  ASSERT_TRUE(net.connect());
  std::atomic<bool> stop{false};
  std::atomic<int> backwards{0}, failed{0}, reads{0};
  const auto read = [&] {
    std::array<PathInfo, 64> room;
    std::uint64_t messages = 0, datagrams = 0, on_paths = 0;
    while (!stop.load()) {
      const auto info = net.alice.peer_info(net.to_bob);
      const auto paths = net.alice.paths(net.to_bob, room);
      failed += info && !paths.empty() ? 0 : 1;
      if (!info) continue;
      std::uint64_t sum = 0;
      for (const PathInfo& path : paths) sum += path.tx_datagrams;
      backwards += info->tx_messages < messages || info->tx_datagrams < datagrams || sum < on_paths;
      messages = info->tx_messages;
      datagrams = info->tx_datagrams;
      on_paths = sum;
      ++reads;
    }
  };
  std::thread first(read), second(read);
  int sent = 0;
  for (const auto end = Clock::now() + 300ms; Clock::now() < end; ++sent) {
    ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("x"), {.copy = true}));
    net.messages.clear();
    ASSERT_TRUE(net.run_until([&] { return !net.messages.empty(); }));
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(backwards, 0);
  EXPECT_GT(reads, 0);
  EXPECT_GT(sent, 0);
}

TEST_P(ReadingTest, NobodyWaitsForASleeper) {
  TwoEndpoints net({}, {.shared = GetParam()});
  ASSERT_TRUE(net.connect());
  std::atomic<bool> asleep{false};
  std::thread sleeper([&] {
    std::array<Completion, 4> completions;
    asleep = true;
    (void)harvest(net.poller, completions, kPatience);
  });
  while (!asleep.load()) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  const auto start = Clock::now();
  EXPECT_EQ(net.alice.peer_info(net.to_bob).value().state, std::uint32_t{SRD_PEER_UP});
  std::array<PathInfo, 64> room;
  EXPECT_FALSE(net.alice.paths(net.to_bob, room).empty());
  EXPECT_LT(Clock::now() - start, kPatience / 2);
  EXPECT_FALSE(net.poller.wake());
  sleeper.join();
}

INSTANTIATE_TEST_SUITE_P(Pollers, ReadingTest, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Shared" : "Plain"; });

// ---- fork
// -----------------------------------------------------------------------------------------

// Counts the calls that did not say EPERM with the right text.
int wrong_answers_in_child(TwoEndpoints& net) {
  int wrong = 0;
  const auto check = [&](int status) {
    const bool right =
        status == -EPERM && std::strstr(srd_last_error(), "before fork()") != nullptr;
    wrong += right ? 0 : 1;
  };
  srd_poller* poller = net.poller.handle();
  srd_endpoint* alice = net.alice.handle();
  srd_poller* new_poller = nullptr;
  srd_endpoint* new_endpoint = nullptr;
  srd_completion done{};
  srd_address address{};
  srd_peer peer = 0;
  srd_stats stats{};
  stats.struct_bytes = sizeof stats;
  srd_limits limits = SRD_LIMITS_INIT;
  srd_peer_info info{};
  info.struct_bytes = sizeof info;
  srd_path_info path{};
  srd_iov piece{"x", 1};
  char byte = 0;
  check(srd_poller_create(net.context.handle(), nullptr, &new_poller));
  check(srd_poller_poll(poller, &done, 1));
  check(srd_poller_flush(poller));
  check(srd_poller_wait(poller, &done, 1, 0));
  check(srd_poller_arm(poller));
  check(srd_poller_fd(poller));
  check(srd_poller_wake(poller));
  check(srd_endpoint_create(poller, nullptr, &new_endpoint));
  check(srd_endpoint_address(alice, &address));
  check(srd_endpoint_limits(alice, &limits));
  check(srd_endpoint_stats(alice, &stats));
  check(srd_endpoint_advice(alice, nullptr, 0));
  check(srd_peer_resolve(alice, &address, &peer));
  check(srd_peer_forget(alice, net.to_bob));
  check(srd_peer_query(alice, net.to_bob, &info));
  check(srd_peer_paths(alice, net.to_bob, &path, 1, sizeof path));
  check(srd_send(alice, net.to_bob, &piece, 1, nullptr));
  check(srd_buffer_segments(alice, 1, &piece, 1));
  check(static_cast<int>(srd_buffer_copy(alice, 1, 0, &byte, 1)));
  check(srd_buffer_release(alice, 1));
  srd_endpoint_destroy(alice);  // must not touch what the parent uses
  check(srd_poller_destroy(poller));
  check(srd_context_close(net.context.handle()));
  return wrong;
}

TEST_F(PollerTest, ForkedChildIsRefusedAndMayOpenItsOwn) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int wrong = wrong_answers_in_child(net);
    TwoEndpoints own;
    const bool works = static_cast<bool>(own.connect());
    // The parent's objects are as strange as before.
    const bool still_refused = srd_poller_flush(net.poller.handle()) == -EPERM;
    _exit(wrong == 0 && works && still_refused ? 0 : 1 + wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(net.connect()) << "the parent goes on";
}

}  // namespace

}  // namespace srd::test
