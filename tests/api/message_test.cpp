// SPDX-License-Identifier: Apache-2.0
// What the contract says about messages and peers, through the veneer: delivery, ownership, a full
// queue, failures of one peer, counters.
#include <algorithm>
#include <thread>

#include "api/harness.hpp"

namespace srd::test {

namespace {

using MessageTest = PairTest;

TEST_F(MessageTest, ArrivesOnceWithItsChannelAndItsSender) {
  TwoEndpoints net;
  ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("question"), {.user_data = 5, .channel = 9}));
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty() && !net.sends.empty(); }));
  const Message& message = net.messages.front();
  EXPECT_EQ(message.text(), "question");
  EXPECT_EQ(message.channel(), 9);
  EXPECT_EQ(net.sends.front().user_data, 5U);
  EXPECT_EQ(net.sends.front().status, 0);
  EXPECT_EQ(net.sends.front().bytes, 8U);
  ASSERT_FALSE(net.bob.send(message.peer(), as_bytes("answer")));
  ASSERT_TRUE(net.run_until([&] { return net.messages.size() == 2; }));
  EXPECT_EQ(net.messages.back().text(), "answer");
  EXPECT_EQ(net.messages.back().peer(), net.to_bob);
}

TEST_F(MessageTest, EmptyMessageIsAMessage) {
  TwoEndpoints net;
  ASSERT_FALSE(net.alice.send(net.to_bob, ByteView()));
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty() && !net.sends.empty(); }));
  EXPECT_EQ(net.messages.front().bytes(), 0U);
  EXPECT_TRUE(net.messages.front());
}

TEST_F(MessageTest, LongMessageComesInPiecesWithEqualBytes) {
  TwoEndpoints net;
  const auto payload = pattern(1'000'003);
  const std::array<Iov, 3> pieces = {Iov{payload.data(), 1}, Iov{payload.data() + 1, 500'000},
                                     Iov{payload.data() + 500'001, payload.size() - 500'001}};
  pair_faults().drop_one_in = 50;
  ASSERT_FALSE(net.alice.send(net.to_bob, pieces));
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty() && !net.sends.empty(); }));
  const Message& message = net.messages.front();
  ASSERT_GT(message.segment_count(), 1U);
  EXPECT_EQ(contents(message), payload);
  std::vector<Iov> found(message.segment_count());
  std::vector<std::byte> joined;
  for (const Iov& piece : message.segments(found)) {
    const auto* data = static_cast<const std::byte*>(piece.data);
    joined.insert(joined.end(), data, data + piece.bytes);
  }
  EXPECT_EQ(joined, payload);
  EXPECT_EQ(message.data().data(), found.front().data);
  EXPECT_EQ(message.data().size(), found.front().bytes);
  std::array<std::byte, 7> part{};
  EXPECT_EQ(message.copy_to(part, 999'999), 4U);
  EXPECT_TRUE(std::equal(part.begin(), part.begin() + 4, payload.begin() + 999'999));
}

TEST_F(MessageTest, CopiedPayloadMayChangeAtOnce) {
  TwoEndpoints net;
  const auto original = pattern(20'000);
  auto payload = original;
  ASSERT_FALSE(net.alice.send(net.to_bob, payload, {.copy = true}));
  std::fill(payload.begin(), payload.end(), std::byte{0});
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty(); }));
  EXPECT_EQ(contents(net.messages.front()), original);
}

TEST_F(MessageTest, UnsignaledSendsReportOnlyFailures) {
  TwoEndpoints net({.connect_timeout_ms = 200});
  ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("a"), {.unsignaled = true}));
  ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("b"), {.user_data = 2}));
  const Peer nobody = net.alice.resolve("127.0.0.1:9").value();
  ASSERT_FALSE(net.alice.send(nobody, as_bytes("c"), {.user_data = 3, .unsignaled = true}));
  ASSERT_TRUE(net.run_until([&] { return net.messages.size() == 2 && net.sends.size() == 2; }));
  for (const Completion& send : net.sends) {
    ASSERT_TRUE(send.user_data == 2 || send.user_data == 3);
    EXPECT_EQ(to_error(send.status),
              send.user_data == 2 ? std::error_code() : make_error_code(Errc::timed_out));
  }
}

TEST_F(MessageTest, FullQueueSaysSoAndQueuesNothing) {
  TwoEndpoints net({.max_sends = 4});
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("x"), {.user_data = i}));
  }
  EXPECT_EQ(net.alice.send(net.to_bob, as_bytes("y"), {.user_data = 99}), Errc::would_block);
  EXPECT_TRUE(error_says("max_sends 4"));
  EXPECT_TRUE(error_says("srd_poller_poll"));
  EXPECT_EQ(net.alice.stats().sends_active, 4U);
  ASSERT_TRUE(net.run_until([&] { return net.sends.size() == 4 && net.messages.size() == 4; }));
  ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("y"), {.user_data = 99}));
  ASSERT_TRUE(net.run_until([&] { return net.sends.size() == 5 && net.messages.size() == 5; }));
  EXPECT_EQ(net.sends.back().user_data, 99U);
  EXPECT_EQ(net.alice.stats().sends_active, 0U);
}

TEST_F(MessageTest, CountsForEachPeerApart) {
  TwoEndpoints net;
  Endpoint carol = net.poller.make_endpoint().value();
  const Peer to_carol = net.alice.resolve(carol.address()).value();
  pair_faults().drop_one_in = 50;
  constexpr std::size_t kToBob = 30, kToCarol = 20, kBytes = 20'000;
  const auto payload = pattern(kBytes);
  for (std::size_t i = 0; i < kToBob; ++i) ASSERT_FALSE(net.alice.send(net.to_bob, payload));
  for (std::size_t i = 0; i < kToCarol; ++i) ASSERT_FALSE(net.alice.send(to_carol, payload));
  ASSERT_TRUE(net.run_until([&] {
    return net.sends.size() == kToBob + kToCarol && net.messages.size() == kToBob + kToCarol;
  }));
  heal();
  const PeerInfo bob = net.alice.peer_info(net.to_bob).value();
  const PeerInfo other = net.alice.peer_info(to_carol).value();
  EXPECT_EQ(bob.tx_messages, kToBob);
  EXPECT_EQ(bob.tx_message_bytes, kToBob * kBytes);
  EXPECT_EQ(other.tx_messages, kToCarol);
  EXPECT_EQ(other.tx_message_bytes, kToCarol * kBytes);
  const Stats all = net.alice.stats();
  EXPECT_EQ(bob.tx_datagrams + other.tx_datagrams, all.tx_datagrams);
  EXPECT_EQ(bob.tx_bytes + other.tx_bytes, all.tx_bytes);
  EXPECT_EQ(bob.rx_acks + other.rx_acks, all.rx_acks);
  EXPECT_GT(bob.tx_retransmits, 0U);
  EXPECT_EQ(bob.tx_retransmits + other.tx_retransmits, all.tx_retransmits);
  EXPECT_EQ(bob.losses_fifo + bob.losses_rack + other.losses_fifo + other.losses_rack,
            all.losses_fifo + all.losses_rack);
  EXPECT_EQ(bob.tail_probes + other.tail_probes, all.tail_probes);

  const Peer alice_at_bob = [&] {
    for (const Message& message : net.messages) {
      if (net.bob.peer_info(message.peer()) &&
          net.bob.peer_info(message.peer())->rx_messages == kToBob) {
        return message.peer();
      }
    }
    return kInvalidPeer;
  }();
  ASSERT_NE(alice_at_bob, kInvalidPeer);
  const PeerInfo alice = net.bob.peer_info(alice_at_bob).value();
  EXPECT_EQ(alice.rx_message_bytes, kToBob * kBytes);
  EXPECT_EQ(alice.rx_duplicates, net.bob.stats().rx_duplicates);
  EXPECT_EQ(alice.tx_acks, net.bob.stats().tx_acks);
  EXPECT_GT(alice.rx_datagrams, kToBob * kBytes / 1500);
  net.messages.clear();  // carol goes first
}

TEST_F(MessageTest, CountsOfAPeerOutliveItsContext) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  const std::uint64_t before = net.alice.peer_info(net.to_bob)->tx_datagrams;
  ASSERT_GT(before, 0U);
  net.bob = Endpoint();  // closes: alice's context ends
  ASSERT_TRUE(net.run_until([&] { return net.alice.stats().peers_active == 0; }));
  const PeerInfo info = net.alice.peer_info(net.to_bob).value();
  EXPECT_EQ(info.tx_messages, 1U);
  EXPECT_GE(info.tx_datagrams, before);
  EXPECT_GT(info.rx_datagrams, 0U);
}

TEST_F(MessageTest, OneDeadPeerLeavesTheOthersAlone) {
  TwoEndpoints net({.peer_timeout_ms = 1000, .connect_timeout_ms = 1000});
  Endpoint carol = net.poller.make_endpoint().value();
  const Peer to_carol = net.alice.resolve(carol.address()).value();
  ASSERT_FALSE(net.alice.send(to_carol, as_bytes("hi")));
  ASSERT_TRUE(net.run_until([&] { return net.messages.size() == 1 && net.sends.size() == 1; }));
  ASSERT_TRUE(net.connect());
  net.peers.clear();

  pair_faults().dead_port = carol.address().port;
  ASSERT_FALSE(net.alice.send(to_carol, as_bytes("lost"), {.user_data = UINT64_MAX}));
  const auto carol_is_lost = [&] {
    return std::any_of(net.sends.begin(), net.sends.end(),
                       [](const Completion& c) { return c.user_data == UINT64_MAX; });
  };
  std::uint64_t sent = 0;
  ASSERT_TRUE(net.run_until([&] {            // traffic to bob goes on meanwhile
    constexpr std::uint64_t kEnough = 1000;  // the test keeps all it receives
    if (net.messages.size() == sent && sent < kEnough && !carol_is_lost()) {
      EXPECT_FALSE(net.alice.send(net.to_bob, as_bytes("fine"), {.user_data = ++sent}));
    }
    return carol_is_lost() && net.messages.size() == sent && net.sends.size() == sent + 1;
  })) << sent
      << " sent to bob, " << net.messages.size() << " arrived, " << net.sends.size()
      << " ended; carol " << (carol_is_lost() ? "lost" : "not lost");
  EXPECT_GT(sent, 1U);
  for (const Completion& send : net.sends) {
    EXPECT_EQ(to_error(send.status), send.user_data == UINT64_MAX
                                         ? make_error_code(Errc::peer_unreachable)
                                         : std::error_code());
  }
  ASSERT_FALSE(net.peers.empty());
  EXPECT_EQ(net.peers.back().peer, to_carol);
  EXPECT_EQ(to_error(net.peers.back().status), Errc::peer_unreachable);
  EXPECT_EQ(net.alice.peer_info(net.to_bob).value().state, std::uint32_t{SRD_PEER_UP});
}

TEST_F(MessageTest, ForgottenPeerEndsItsSends) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  pair_faults().dead_port = net.bob.address().port;
  const auto payload = pattern(100'000);
  ASSERT_FALSE(net.alice.send(net.to_bob, payload, {.user_data = 8}));
  ASSERT_FALSE(net.alice.forget(net.to_bob));
  ASSERT_TRUE(net.run_until([&] { return !net.sends.empty(); }));
  EXPECT_EQ(net.sends.front().user_data, 8U);
  EXPECT_EQ(to_error(net.sends.front().status), Errc::canceled);
  EXPECT_EQ(net.alice.send(net.to_bob, ByteView()), Errc::not_found);
}

TEST_F(MessageTest, DestroyedEndpointTellsItsPeers) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  net.bob = {};
  const auto is_lost = [](const Completion& peer) { return peer.status < 0; };
  ASSERT_TRUE(
      net.run_until([&] { return std::any_of(net.peers.begin(), net.peers.end(), is_lost); }));
  EXPECT_EQ(to_error(net.peers.back().status), Errc::peer_closed);
}

TEST_F(MessageTest, SmallCapacityLosesNothingAndServesEachEndpoint) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  constexpr std::size_t kCount = 500;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_FALSE(net.alice.send(net.to_bob, as_bytes("x"), {.copy = true}));
  }
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::array<Completion, 1> one;
  while ((net.messages.size() < kCount || net.sends.size() < kCount) &&
         std::chrono::steady_clock::now() < give_up) {
    for (const Completion& c : harvest(net.poller, one)) net.take(c);
  }
  EXPECT_EQ(net.messages.size(), kCount);
  EXPECT_EQ(net.sends.size(), kCount);
}

TEST_F(MessageTest, CountersCanBeReadFromAnotherThread) {
  TwoEndpoints net;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!stop.load()) {
      const Stats stats = net.alice.stats();
      EXPECT_GE(stats.tx_datagrams, last);
      last = stats.tx_datagrams;
      EXPECT_NE(net.alice.address().port, 0);
      EXPECT_EQ(net.alice.limits().max_sends, 8192U);
    }
  });
  const auto payload = pattern(10'000);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(net.alice.send(net.to_bob, payload));
  EXPECT_TRUE(net.run_until([&] { return net.sends.size() == 50 && net.messages.size() == 50; }));
  stop = true;
  reader.join();
  const Stats stats = net.alice.stats();
  EXPECT_EQ(stats.tx_messages, 50U);
  EXPECT_EQ(stats.tx_message_bytes, 500'000U);
  EXPECT_EQ(stats.tx_failed_messages, 0U);
  EXPECT_EQ(net.bob.stats().rx_messages, 50U);
  EXPECT_EQ(net.bob.stats().rx_message_bytes, 500'000U);
}

TEST_F(MessageTest, ReleaseGivesTheMemoryBack) {
  TwoEndpoints net;
  ASSERT_TRUE(net.connect());
  const auto payload = pattern(100'000);
  ASSERT_FALSE(net.alice.send(net.to_bob, payload));
  ASSERT_TRUE(net.run_until([&] { return !net.messages.empty(); }));
  EXPECT_GE(net.bob.stats().receive_pool_used_bytes, payload.size());
  net.messages.front().release();
  EXPECT_FALSE(net.messages.front());
  EXPECT_EQ(net.bob.stats().receive_pool_used_bytes, 0U);
}

}  // namespace

}  // namespace srd::test
