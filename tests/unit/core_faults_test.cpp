// SPDX-License-Identifier: Apache-2.0
// What went wrong once, or would with a peer, a driver or a stranger that does the unexpected: one
// test for each, named after the fault.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "srd/wire/check.hpp"

#include "base/prng.hpp"
#include "base/seqno.hpp"
#include "unit/core_pair.hpp"

namespace srd::core {
namespace {

using wire::PacketType;

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  Prng prng(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(prng.next());
  return out;
}

wire::CommonHeader common_of(const CorePair::Packet& packet) {
  wire::CommonHeader common;
  EXPECT_TRUE(wire::decode(packet.bytes, common));
  return common;
}

template <class Body>
Body body_of(const CorePair::Packet& packet) {
  Body body;
  EXPECT_TRUE(wire::decode(packet.bytes, body));
  return body;
}

/// A pair with an open context of a's making and round-trip times known.
class CoreFaultsTest : public ::testing::Test {
 protected:
  static Config config() { return CorePair::config(); }

  void open(const Config& base = config()) {
    pair_ = std::make_unique<CorePair>(base);
    small_ = pattern(100, 1);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(pair_->send(pair_->a, small_), Errc::ok);
      ASSERT_TRUE(pair_->run(
          20, [&] { return pair_->b.messages.size() == static_cast<std::size_t>(i + 1); }));
      pair_->run(2);
    }
    ASSERT_EQ(pair_->handshakes.size(), 1U);
  }

  CorePair& pair() { return *pair_; }

  CorePair::Handshake& context() { return pair_->handshakes.back(); }

  /// b rejects message `msg_id` of a, says this forged NACK.
  void reject(std::uint32_t msg_id, std::uint16_t seq, wire::NackCode code,
              std::uint32_t retry_after_us) {
    wire::CommonHeader common;
    common.type = PacketType::nack;
    wire::NackHeader nack;
    nack.code = code;
    nack.rej_seq = seq;
    nack.msg_id = msg_id;
    nack.retry_after_us = retry_after_us;
    pair().deliver(pair().a, pair().forge(false, common, nack, wire::kNackBytes));
  }

  std::size_t sends_done(Errc status = Errc::ok) {
    return static_cast<std::size_t>(
        std::count_if(pair().a.events.begin(), pair().a.events.end(), [&](const Event& event) {
          return event.kind == Event::Kind::send_done && event.status == status;
        }));
  }

  std::unique_ptr<CorePair> pair_;
  std::vector<std::byte> small_;
};

TEST_F(CoreFaultsTest, AbortsBeyondThePsnReserveAreSentLater) {
  Config base = config();
  base.limits.window_psns = 256;
  open(base);
  // 95 messages of two segments each fill what the window leaves beside its reserve of 64. No ACK
  // makes room meanwhile.
  constexpr std::uint32_t kMessages = 95;
  const auto payload = pattern(2000, 2);
  std::set<std::uint32_t> sent, aborted;
  bool deaf = false;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::data) {
      sent.insert(body_of<wire::DataHeader>(packet).msg_id);
    }
    if (to_b && packet.type() == PacketType::abort) {
      aborted.insert(body_of<wire::AbortHeader>(packet).msg_id);
    }
    return !deaf || to_b;
  };
  // The window opens first.
  for (int i = 0; i < 200; ++i) ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_TRUE(pair().run(2000, [&] { return pair().b.messages.size() == 203; }));
  pair().run(20);
  sent.clear();
  deaf = true;
  for (std::uint32_t i = 0; i < kMessages; ++i) ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  pair().run(2);
  ASSERT_GT(sent.size(), 70U);
  std::uint16_t seq = 0;
  for (const std::uint32_t id : sent) reject(id, ++seq, wire::NackCode::too_long, 0);
  deaf = false;
  ASSERT_TRUE(pair().run(3000, [&] { return aborted.size() >= sent.size(); }));
  EXPECT_EQ(aborted, sent);
  EXPECT_TRUE(pair().run(100, [&] { return sends_done(Errc::message_too_long) == sent.size(); }));
}

TEST_F(CoreFaultsTest, LaterRetryDoesNotHoldBackAnEarlierOne) {
  open();
  const auto payload = pattern(3000, 2);
  std::vector<std::uint32_t> begun;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::data) {
      const auto data = body_of<wire::DataHeader>(packet);
      if (data.msg_off == 0) begun.push_back(data.msg_id);
      return false;
    }
    return true;
  };
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  pair().run(1);
  ASSERT_GE(begun.size(), 2U);
  const std::uint32_t first = begun[0], second = begun[1];
  reject(first, 1, wire::NackCode::no_resources, 900'000);
  reject(second, 2, wire::NackCode::no_resources, 50'000);
  begun.clear();
  pair().run(70);
  std::set<std::uint32_t> ids(begun.begin(), begun.end());
  ids.erase(first);
  ids.erase(second);
  EXPECT_EQ(ids.size(), 1U);  // the second, under another id
}

TEST_F(CoreFaultsTest, FifoWantsTwoLaterAcknowledgementsOfABurst) {
  for (const bool two_later : {false, true}) {
    Config base_config = config();
    base_config.limits.paths = 1;
    base_config.timing.burst_span = 1'000'000;
    open(base_config);
    const auto payload = pattern(1 << 20, 2);
    // Let the rate grow, so that a burst has some length.
    ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
    ASSERT_TRUE(pair().run(1000, [&] { return pair().b.messages.size() == 4; }));
    pair().run(10);
    ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
    std::array<TxDatagram, 64> out;
    const std::size_t n = pair().a.core->poll_transmit(Instant{pair().now_ns}, out);
    std::vector<wire::CommonHeader> sent;
    for (const TxDatagram& datagram : std::span(out).first(n)) {
      wire::CommonHeader common;
      ASSERT_TRUE(wire::decode(std::span(datagram.header).first(datagram.header_bytes), common));
      if (common.type == PacketType::data) sent.push_back(common);
    }
    ASSERT_GE(sent.size(), 4U);
    // Of the first burst, the first and fourth datagram arrived, or its third and fourth.
    const std::uint32_t base = sent[0].psn, origin = base - base % 64;
    std::array<std::uint64_t, 2> words{};
    for (const std::uint32_t psn : {sent[3].psn, sent[two_later ? 2 : 0].psn}) {
      words[(psn - origin) / 64] |= std::uint64_t{1} << (psn - origin) % 64;
    }
    wire::AckHeader ack;
    ack.ack_seq = 10'000;
    ack.echo_slot = 63;
    ack.echo_gen_attempt = 0xff;
    pair().filter = [](bool, const CorePair::Packet&) { return false; };
    const std::uint64_t before = pair().a.core->counters().losses_fifo.value();
    pair().deliver(pair().a, pair().forge_ack(false, base, ack, words));
    pair().run(1);
    // With two later ones two are lost; with one nothing is proven.
    EXPECT_EQ(pair().a.core->counters().losses_fifo.value() - before, two_later ? 2U : 0U);
  }
}

TEST_F(CoreFaultsTest, SlotThatCouldNotBeOpenedIsTriedAgain) {
  pair_ = std::make_unique<CorePair>();
  small_ = pattern(100, 1);
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  std::array<TxDatagram, 8> out;
  ASSERT_EQ(pair().a.core->poll_transmit(Instant{pair().now_ns}, out), 1U);  // HELLO, lost
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (!to_b && packet.type() == PacketType::hello_ack) pair().a.paths.refused = 3;
    return true;
  };
  ASSERT_TRUE(pair().run(1000, [&] { return !pair().b.messages.empty(); }));
  pair().run(3000);
  std::array<srd_path_info, 32> paths{};
  ASSERT_GT(pair().a.core->path_info(pair().a.peer, paths), 4U);
  const auto good = std::count_if(paths.begin(), paths.end(), [](const srd_path_info& path) {
    return path.state == SRD_PATH_GOOD;
  });
  EXPECT_GE(good, 4);
}

TEST_F(CoreFaultsTest, ContextIdRestsAfterItsContextEnds) {
  CorePair pair;
  std::set<std::uint32_t> ids;
  constexpr std::uint32_t kLives = 300;
  const auto payload = pattern(10, 1);
  for (std::uint32_t i = 0; i < kLives; ++i) {
    ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
    std::array<TxDatagram, 8> out;
    ASSERT_EQ(pair.a.core->poll_transmit(Instant{pair.now_ns}, out), 1U);
    wire::HelloHeader hello;
    ASSERT_TRUE(wire::decode(std::span(out[0].payload[0].data, out[0].payload[0].bytes), hello));
    ids.insert(hello.src_ctx);
    ASSERT_EQ(pair.a.core->remove_peer(Instant{pair.now_ns}, pair.a.peer), Errc::ok);
    Address address{};
    address.family = 4;
    address.port = 2;
    address.bytes[0] = 10;
    pair.a.peer = pair.a.core->add_peer(Instant{pair.now_ns}, address).value();
    std::array<Event, 8> events;
    while (pair.a.core->poll_events(events) > 0) {
    }
    pair.now_ns += 1'000'000;
  }
  EXPECT_EQ(ids.size(), kLives);
}

TEST_F(CoreFaultsTest, ReportOfAnEndedContextNamesNoOther) {
  std::set<std::uint64_t> cookies;
  CorePair pair;
  // Two lives of one entry of the table: the same slot, probed for the first time.
  for (int life = 0; life < 2; ++life) {
    const auto payload = pattern(10, 1);
    ASSERT_EQ(pair.send(pair.a, payload), Errc::ok);
    std::uint64_t cookie = 0;
    for (int step = 0; step < 100 && cookie == 0; ++step) {
      std::array<TxDatagram, 16> out;
      const std::size_t n = pair.a.core->poll_transmit(Instant{pair.now_ns}, out);
      for (const TxDatagram& datagram : std::span(out).first(n)) {
        CorePair::Packet packet;
        packet.bytes.assign(datagram.header.begin(),
                            datagram.header.begin() + datagram.header_bytes);
        for (std::size_t i = 0; i < datagram.payload_count; ++i) {
          const Segment& piece = datagram.payload[i];
          packet.bytes.insert(packet.bytes.end(), piece.data, piece.data + piece.bytes);
        }
        if (packet.type() == PacketType::probe && common_of(packet).slot == 0) {
          cookie = datagram.cookie;
        }
        packet.at_ns = pair.now_ns;
        pair.deliver(pair.b, packet);
      }
      pair.run(0);
      const std::size_t answers = pair.b.core->poll_transmit(Instant{pair.now_ns}, out);
      for (const TxDatagram& datagram : std::span(out).first(answers)) {
        CorePair::Packet packet;
        packet.bytes.assign(datagram.header.begin(),
                            datagram.header.begin() + datagram.header_bytes);
        for (std::size_t i = 0; i < datagram.payload_count; ++i) {
          const Segment& piece = datagram.payload[i];
          packet.bytes.insert(packet.bytes.end(), piece.data, piece.data + piece.bytes);
        }
        pair.deliver(pair.a, packet);
      }
      pair.now_ns += 30'000;
    }
    ASSERT_NE(cookie, 0U);
    cookies.insert(cookie);
    ASSERT_EQ(pair.a.core->remove_peer(Instant{pair.now_ns}, pair.a.peer), Errc::ok);
    Address address{};
    address.family = 4;
    address.port = 2;
    address.bytes[0] = 10;
    pair.a.peer = pair.a.core->add_peer(Instant{pair.now_ns}, address).value();
  }
  EXPECT_EQ(cookies.size(), 2U);
}

TEST_F(CoreFaultsTest, GuessedResetCausesNoDoubt) {
  open();
  std::size_t hellos = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::hello) ++hellos;
    return true;
  };
  const auto guess = [&](std::uint32_t psn) {
    wire::CommonHeader common;
    common.type = PacketType::reset;
    common.psn = psn;
    wire::ResetHeader reset;
    reset.echo_dst_ctx = context().id_at_b;
    pair().deliver(pair().a, pair().forge(false, common, reset, wire::kResetBytes));
  };
  // Who knows the id but has seen no packet tries what counters begin with.
  for (std::uint32_t psn = 0; psn < 256; ++psn) guess(psn);
  pair().run(50);
  EXPECT_EQ(hellos, 0U);
}

TEST_F(CoreFaultsTest, StrangersGetAnswersAtABoundedRate) {
  open();
  const std::uint32_t opened = pair().b.paths.opened();
  wire::CommonHeader common;
  common.type = PacketType::hello;
  wire::HelloHeader hello;
  hello.version_min = hello.version_max = 5;
  hello.src_ctx = 1;
  hello.incarnation = 77;
  hello.paths = 1;
  hello.window_log2 = 10;
  hello.datagram_bytes = 1472;
  hello.partial_limit = 1;
  const CorePair::Packet packet = pair().forge(true, common, hello, wire::kHelloPaddedBytes);
  for (int i = 0; i < 5000; ++i) {
    pair().deliver(pair().b, packet);
    std::array<TxDatagram, 64> out;
    while (pair().b.core->poll_transmit(Instant{pair().now_ns}, out) > 0) {
    }
    std::array<BufferId, 64> returned;
    while (pair().b.core->poll_release(returned) > 0) {
    }
    pair().now_ns += 1000;
  }
  const std::uint32_t answers = pair().b.paths.opened() - opened;
  EXPECT_GE(answers, 64U);
  EXPECT_LE(answers, 64U + 5000U / 100U + 1);  // the burst, then one every 100 us
}

TEST_F(CoreFaultsTest, EveryProbeOfABurstIsAnswered) {
  Config base = config();
  base.limits.paths = 64;
  open(base);
  std::set<std::uint8_t> asked, answered;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::probe) asked.insert(common_of(packet).slot);
    if (!to_b && packet.type() == PacketType::probe_ack) {
      answered.insert(body_of<wire::ProbeAckHeader>(packet).echo_slot);
    }
    return true;
  };
  const auto payload = pattern(1 << 20, 2);
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_TRUE(pair().run(100, [&] { return asked.size() >= 60; }));
  pair().run(1);
  EXPECT_EQ(answered, asked);
}

TEST_F(CoreFaultsTest, PayloadGoesByProvenSlotsOnlyEvenAsTailProbe) {
  pair_ = std::make_unique<CorePair>();
  small_ = pattern(5000, 1);
  // Only slot 0 answers probes, and no ACK of data comes back: tail and RTO probes.
  std::set<std::uint8_t> carried;
  bool deaf = false;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && (packet.type() == PacketType::data || packet.type() == PacketType::small)) {
      carried.insert(common_of(packet).slot);
    }
    if (to_b && packet.type() == PacketType::probe) return common_of(packet).slot == 0;
    return to_b || !deaf || packet.type() != PacketType::ack;
  };
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  ASSERT_TRUE(pair().run(100, [&] { return !pair().b.messages.empty(); }));
  deaf = true;
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  pair().run(50);
  EXPECT_GT(pair().a.core->counters().tail_probes.value(), 0U);
  EXPECT_EQ(carried, std::set<std::uint8_t>{0});
}

TEST_F(CoreFaultsTest, OnePeerCannotHoldAllReceiveRecords) {
  Config base = config();
  base.limits.receive_messages = 128;
  open(base);
  pair().b.hold = true;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(pair().send(pair().a, {}), Errc::ok);
  pair().run(100);
  EXPECT_EQ(pair().b.loans.size(), 96U);
  pair().b.hold = false;
  for (const MessageId loan : pair().b.loans) {
    ASSERT_EQ(pair().b.core->release(Instant{pair().now_ns}, loan), Errc::ok);
  }
  EXPECT_TRUE(pair().run(3000, [&] { return pair().b.messages.size() == 203; }));
}

TEST_F(CoreFaultsTest, OnePeerCannotHoldAllRejections) {
  Config base = config();
  base.limits.rejections = 32;
  base.limits.rejections_per_peer = 32;
  open(base);
  pair().filter = [](bool, const CorePair::Packet&) { return false; };
  wire::CommonHeader common;
  common.type = PacketType::data;
  common.flags = wire::kFlagFirst;
  wire::DataHeader data;
  data.msg_len = UINT32_MAX;
  for (std::uint32_t i = 0; i < 100; ++i) {
    common.psn = context().first_psn_of_a + 3 + i;
    data.msg_id = 1'000'000 + i;
    pair().deliver(pair().b, pair().forge(true, common, data, wire::kDataBytes + 100));
  }
  pair().run(1);
  EXPECT_EQ(pair().b.core->counters().rx_rejected_messages.value(), 24U);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 76U);
}

TEST_F(CoreFaultsTest, AbortsOfUnknownMessagesTakeNoRecordsForEver) {
  Config base = config();
  base.limits.partial_messages = 4;
  base.limits.rejections_per_peer = 4;
  open(base);
  wire::CommonHeader common;
  common.type = PacketType::abort;
  wire::AbortHeader abort;
  const auto give = [&](std::uint32_t ahead) {
    common.psn = context().first_psn_of_a + 3 + ahead;
    abort.msg_id = 1'000'000 + ahead;
    pair().deliver(pair().b, pair().forge(true, common, abort, wire::kAbortBytes));
  };
  // Behind a hole they are remembered, up to a limit; then they are not acknowledged.
  for (std::uint32_t i = 1; i < 20; ++i) give(i);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 11U);
  // The hole closes: all that was refused is taken when it comes again.
  for (std::uint32_t i = 0; i < 20; ++i) give(i);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 11U);
  // And nothing is left that would take the place of messages to come.
  for (std::uint32_t i = 21; i < 29; ++i) give(i);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 11U);
}

TEST_F(CoreFaultsTest, ManyContextsOfOnePeerNeedACookie) {
  open();
  std::size_t accepted = 0, retries = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (!to_b && packet.type() == PacketType::hello_ack) ++accepted;
    if (!to_b && packet.type() == PacketType::retry) ++retries;
    return false;
  };
  wire::CommonHeader common;
  common.type = PacketType::hello;
  wire::HelloHeader hello;
  hello.endpoint_id = config().endpoint_id;  // a's
  hello.incarnation = config().incarnation;
  hello.ctx_serial = 1000;
  hello.paths = 4;
  hello.window_log2 = 10;
  hello.datagram_bytes = 1472;
  hello.partial_limit = 1;
  for (std::uint32_t i = 0; i < 20; ++i) {
    hello.src_ctx = 1000 + i;
    hello.nonce[0] = static_cast<std::uint8_t>(i);
    ++hello.ctx_serial;
    auto packet = pair().forge(true, common, hello, wire::kHelloPaddedBytes);
    pair().handshakes.clear();  // nothing of it matters here
    pair().deliver(pair().b, packet);
    std::array<TxDatagram, 64> out;
    const std::size_t n = pair().b.core->poll_transmit(Instant{pair().now_ns}, out);
    for (const TxDatagram& datagram : std::span(out).first(n)) {
      wire::CommonHeader answer;
      const std::span<const std::byte> bytes(datagram.payload[0].data, datagram.payload[0].bytes);
      if (datagram.payload_count == 0 || !wire::decode(bytes, answer)) continue;
      accepted += answer.type == PacketType::hello_ack ? 1 : 0;
      retries += answer.type == PacketType::retry ? 1 : 0;
    }
  }
  EXPECT_EQ(accepted, 3U);  // with the one that is open: a quarter of contexts_per_peer
  EXPECT_EQ(retries, 17U);
}

TEST_F(CoreFaultsTest, CloseThatDoesNotFitWhatWasSentEndsNothing) {
  open();
  wire::CommonHeader common;
  common.type = PacketType::close;
  // What b sends next and what it expects next: a sent three messages, b none.
  const std::uint32_t next_of_b = context().first_psn_of_b;
  const std::uint32_t next_of_a = context().first_psn_of_a + 3;
  const auto close = [&](std::uint32_t psn, std::uint32_t next) {
    common.psn = psn;
    wire::CloseHeader body;
    body.next_psn = next;
    pair().deliver(pair().a, pair().forge(false, common, body, wire::kCloseBytes));
    pair().run(1);
    return pair().a.core->counters().peers_lost.value();
  };
  EXPECT_EQ(close(next_of_b - 1, next_of_a), 0U);
  EXPECT_EQ(close(next_of_b + 100'000, next_of_a), 0U);
  EXPECT_EQ(close(next_of_b, next_of_a - 1), 0U);
  EXPECT_EQ(close(next_of_b, next_of_a + 1), 0U);
  EXPECT_EQ(close(next_of_b, next_of_a), 1U);
}

}  // namespace
}  // namespace srd::core
