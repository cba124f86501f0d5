// SPDX-License-Identifier: Apache-2.0
// What went wrong once, or would with a peer, a driver or a stranger that does the unexpected: one
// test for each, named after the fault.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

/// SMALL with one message of zeros.
struct OneRecord {
  std::uint16_t bytes = 0;
};

void encode(std::span<std::byte> out, const OneRecord& body) {
  wire::SmallHeader small;
  small.count = 1;
  small.bytes = body.bytes;
  wire::encode(out, small);
  wire::SmallRecord record;
  record.bytes = body.bytes;
  wire::encode(out.subspan(wire::kSmallBytes), record);
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

  /// A HELLO to b.
  static wire::HelloHeader hello_of(const wire::EndpointId& id, std::uint64_t incarnation) {
    wire::HelloHeader hello;
    hello.src_ctx = 1;
    hello.ctx_serial = 1000;
    hello.endpoint_id = id;
    hello.incarnation = incarnation;
    hello.paths = 4;
    hello.window_log2 = 10;
    hello.datagram_bytes = 1472;
    hello.partial_limit = 1;
    return hello;
  }

  CorePair::Packet forge_hello(const wire::HelloHeader& hello, std::uint8_t slot = 0) {
    wire::CommonHeader common;
    common.type = PacketType::hello;
    common.slot = slot;
    return pair().forge(true, common, hello, wire::kHelloPaddedBytes);
  }

  std::uint64_t queued_at_a() {
    srd_peer_info info{};
    info.struct_bytes = sizeof info;
    EXPECT_TRUE(pair().a.core->peer_info(pair().a.peer, info));
    return info.queued_messages;
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
    base_config.timing.burst_span_ns = 1'000'000;
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

TEST_F(CoreFaultsTest, ImpossibleAcksProveNothing) {
  open();
  pair().filter = [](bool to_b, const CorePair::Packet&) { return to_b; };  // b's own are lost
  ASSERT_EQ(pair().send(pair().a, small_, 77), Errc::ok);
  pair().run(1);
  const std::size_t done = sends_done();
  // Three SMALL are acknowledged, the fourth is not, and nothing beyond it was sent.
  const std::uint32_t sent = context().first_psn_of_a + 3;
  wire::AckHeader ack;
  ack.ack_seq = 10'000;
  ack.echo_slot = 63;
  ack.echo_gen_attempt = 0xff;
  const auto impossible = [&](std::uint32_t cumulative, const wire::AckHeader& header,
                              std::span<const std::uint64_t> words) {
    const std::uint64_t before = pair().a.core->counters().rx_impossible_acks.value();
    pair().deliver(pair().a, pair().forge_ack(false, cumulative, header, words));
    pair().run(1);
    return pair().a.core->counters().rx_impossible_acks.value() - before == 1 &&
           sends_done() == done;
  };
  EXPECT_TRUE(impossible(sent + 2, ack, {})) << "cumulative beyond what was sent";
  const std::uint64_t beyond = std::uint64_t{1} << (sent + 1) % 64;
  EXPECT_TRUE(impossible(sent, ack, std::span(&beyond, 1))) << "a PSN that was not sent";
  ack.rej_total = 257;
  EXPECT_TRUE(impossible(sent + 1, ack, {})) << "more rejections than may be unconfirmed";
  ack.rej_total = 0;
  EXPECT_FALSE(impossible(sent + 1, ack, {}));
  EXPECT_EQ(sends_done(), done + 1);
}

TEST_F(CoreFaultsTest, RefusedDatagramsKeepTheirOrder) {
  open();
  const auto payload = pattern(1400 * 6, 2);
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  std::array<TxDatagram, 64> out;
  const auto psns = [&] {
    std::vector<std::uint32_t> found;
    std::vector<TxDone> reports;
    pair().a.core->handle_timeout(Instant{pair().now_ns});
    const std::size_t n = pair().a.core->poll_transmit(Instant{pair().now_ns}, out);
    for (const TxDatagram& datagram : std::span(out).first(n)) {
      wire::CommonHeader common;
      if (!wire::decode(std::span(datagram.header).first(datagram.header_bytes), common) ||
          common.type != PacketType::data) {
        continue;
      }
      found.push_back(common.psn);
      reports.push_back({datagram.cookie, Errc::would_block});
    }
    pair().a.core->handle_tx_done(Instant{pair().now_ns}, reports);
    return found;
  };
  const auto first = psns();
  ASSERT_GE(first.size(), 2U);
  pair().now_ns += 1'000'000;
  EXPECT_EQ(psns(), first);
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
    pair.a.peer = pair.a.core->add_peer(Instant{pair.now_ns}, CorePair::address_of(2)).value();
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
    pair.a.peer = pair.a.core->add_peer(Instant{pair.now_ns}, CorePair::address_of(2)).value();
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
  wire::HelloHeader hello = hello_of({}, 77);
  hello.version_min = hello.version_max = 5;
  const CorePair::Packet packet = forge_hello(hello);
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

/// Both forms of the check; the context has agreed on `full`.
class CheckFormTest : public CoreFaultsTest, public testing::WithParamInterface<bool> {};

// Whoever could choose the form of each packet could switch the check of its payload off by one
// bit.
TEST_P(CheckFormTest, PacketInTheOtherFormIsACountedDrop) {
  const bool full = GetParam();
  Config base = config();
  base.full_check = full;
  open(base);
  std::vector<CorePair::Packet> held;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (!to_b || packet.type() != PacketType::data) return true;
    held.push_back(packet);
    return false;
  };
  const auto payload = pattern(1000, 2);
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_TRUE(pair().run(10, [&] { return !held.empty(); }));
  // The same DATA with a right check of the other form, and as one with AEAD.
  for (const std::uint8_t other : {wire::kFlagFullCheck, wire::kFlagAead}) {
    CorePair::Packet changed = held.front();
    wire::CommonHeader common = common_of(changed);
    ASSERT_EQ((common.flags & wire::kFlagFullCheck) != 0, full);
    common.flags ^= other;
    wire::encode(changed.bytes, common);
    const bool whole = (common.flags & wire::kFlagFullCheck) != 0;
    const std::size_t covered = whole ? changed.bytes.size() : wire::kDataBytes;
    wire::seal(std::span(changed.bytes).first(covered), {}, context().seed_to_b);
    const std::uint64_t before = pair().b.core->counters().rx_bad_check.value();
    pair().deliver(pair().b, changed);
    EXPECT_EQ(pair().b.core->counters().rx_bad_check.value(), before + 1);
    pair().run(0);
    EXPECT_EQ(pair().b.messages.size(), 3U);
  }
  pair().filter = nullptr;
  pair().deliver(pair().b, held.front());  // it consumed no PSN: the genuine one still counts
  EXPECT_TRUE(pair().run(100, [&] { return pair().b.messages.size() == 4; }));
  EXPECT_EQ(pair().b.messages.back(), payload);
}

INSTANTIATE_TEST_SUITE_P(Forms, CheckFormTest, testing::Bool(),
                         [](const auto& form) { return form.param ? "full" : "header_only"; });

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
  base.limits.rejections = 64;
  base.limits.rejections_per_peer = 64;
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
  EXPECT_EQ(pair().b.core->counters().rx_rejected_messages.value(), 48U);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 52U);
}

TEST_F(CoreFaultsTest, AbortsOfUnknownMessagesTakeNoRecordsForEver) {
  Config base = config();
  base.limits.partial_messages = 4;
  base.limits.rejections_per_peer = 64;
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
  for (std::uint32_t i = 1; i < 80; ++i) give(i);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 11U);
  // The hole closes: all that was refused is taken when it comes again.
  for (std::uint32_t i = 0; i < 80; ++i) give(i);
  EXPECT_EQ(pair().b.core->counters().rx_no_memory.value(), 11U);
  // And nothing is left that would take the place of messages to come.
  for (std::uint32_t i = 81; i < 149; ++i) give(i);
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
  wire::HelloHeader hello = hello_of(config().endpoint_id, config().incarnation);  // a's
  for (std::uint32_t i = 0; i < 20; ++i) {
    hello.src_ctx = 1000 + i;
    hello.nonce[0] = static_cast<std::uint8_t>(i);
    ++hello.ctx_serial;
    pair().deliver(pair().b, forge_hello(hello));
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

TEST_F(CoreFaultsTest, TailProbeWhoseOriginalArrivedCountsAsNeedless) {
  open();
  std::size_t swallowed = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    return to_b || packet.type() != PacketType::ack || ++swallowed > 1;
  };
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  pair().run(20);
  const Counters& counters = pair().a.core->counters();
  EXPECT_EQ(counters.tx_retransmits.value(), 1U);
  EXPECT_EQ(counters.tx_spurious.value(), 1U);
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

// --- the life of peers and contexts ---

TEST_F(CoreFaultsTest, RestartIsProvenThoughTheAnswerComesLate) {
  open();
  const auto payload = pattern(50'000, 2);
  Config again = config();
  again.incarnation = 99;
  again.endpoint_id[0] = 2;
  again.seed = 99;
  pair().start(pair().b, again);
  std::size_t hellos = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    // Two HELLOs of the successor get lost: its answer comes long after one RTO.
    return !to_b || packet.type() != PacketType::hello || ++hellos > 2;
  };
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_TRUE(pair().run(1000, [&] { return sends_done(Errc::peer_restarted) == 1; }));
  EXPECT_GT(hellos, 2U);
  EXPECT_EQ(pair().a.core->counters().peer_restarts.value(), 1U);
  EXPECT_EQ(pair().a.core->counters().peers_lost.value(), 0U);
}

TEST_F(CoreFaultsTest, MessagesUnderWayAtCloseDoNotSucceed) {
  open();
  const auto payload = pattern(50'000, 2);
  pair().filter = [](bool, const CorePair::Packet&) { return false; };
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  pair().run(1);
  const std::size_t succeeded = sends_done();
  pair().a.core->close(Instant{pair().now_ns});
  pair().run(1);
  EXPECT_EQ(sends_done(), succeeded);
  EXPECT_EQ(sends_done(Errc::context_lost), 1U);
}

TEST_F(CoreFaultsTest, RejectionsAreConfirmedWithoutOtherTraffic) {
  open();
  bool confirmed = false;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::probe) {
      confirmed |= body_of<wire::ProbeHeader>(packet).rej_known == 1;
    }
    return true;
  };
  wire::CommonHeader common;
  common.type = PacketType::data;
  common.flags = wire::kFlagFirst;
  common.psn = context().first_psn_of_a + 3;
  wire::DataHeader data;
  data.msg_len = UINT32_MAX;
  pair().deliver(pair().b, pair().forge(true, common, data, wire::kDataBytes + 100));
  EXPECT_TRUE(pair().run(20, [&] { return confirmed; }));
}

TEST_F(CoreFaultsTest, DrainingContextTakesNoNewMessages) {
  pair_ = std::make_unique<CorePair>();
  small_ = pattern(100, 1);
  // Both open one.
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  ASSERT_EQ(pair().send(pair().b, small_), Errc::ok);
  pair().run(50);
  ASSERT_EQ(pair().handshakes.size(), 2U);
  std::set<std::uint32_t> used;
  pair().filter = [&](bool, const CorePair::Packet& packet) {
    if (packet.type() == PacketType::small) used.insert(common_of(packet).dst_ctx);
    return true;
  };
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  pair().run(1);
  ASSERT_EQ(used.size(), 1U);
  if (used.count(pair().handshakes[1].id_at_b) > 0) {
    std::swap(pair().handshakes[0], pair().handshakes[1]);
  }
  for (int i = 0; i < 300; ++i) {
    // The draining one has its turn first.
    wire::CommonHeader common;
    common.type = PacketType::probe;
    if (i < 50) pair().deliver(pair().a, pair().forge(false, common, wire::ProbeHeader{}, 40));
    ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
    ASSERT_EQ(pair().send(pair().b, small_), Errc::ok);
    pair().run(10);
  }
  EXPECT_EQ(used.size(), 2U);  // one, named by each side
  EXPECT_EQ(pair().a.core->counters().peers_lost.value(), 0U);
  EXPECT_EQ(pair().b.core->counters().peers_lost.value(), 0U);
}

TEST_F(CoreFaultsTest, HelloOnASlotBeyondItsPathsOpensNothing) {
  open();
  wire::HelloHeader hello = hello_of({7}, 77);
  hello.paths = 1;
  const std::uint32_t opened = pair().b.paths.opened();
  const std::uint64_t malformed = pair().b.core->counters().rx_malformed.value();
  for (std::uint8_t slot = 0; slot < 64; ++slot) {
    pair().deliver(pair().b, forge_hello(hello, slot));
    pair().now_ns += 1000;
  }
  EXPECT_EQ(pair().b.paths.opened() - opened, 1U);
  EXPECT_EQ(pair().b.core->counters().rx_malformed.value() - malformed, 63U);
}

// The repetition claims more paths than the context was made with.
TEST_F(CoreFaultsTest, RepeatedHelloOnASlotThatIsNotThereOpensNothing) {
  open();
  wire::HelloHeader hello = hello_of({7}, 77);
  hello.paths = 1;
  const std::uint32_t opened = pair().b.paths.opened();
  const std::uint64_t malformed = pair().b.core->counters().rx_malformed.value();
  pair().deliver(pair().b, forge_hello(hello, 0));
  hello.paths = 64;
  for (std::uint8_t slot = 1; slot < 64; ++slot) {
    pair().deliver(pair().b, forge_hello(hello, slot));
    pair().now_ns += 1000;
  }
  EXPECT_EQ(pair().b.paths.opened() - opened, 1U);
  EXPECT_EQ(pair().b.core->counters().rx_malformed.value() - malformed, 63U);
  // And nobody's timers wait for it.
  const std::size_t done = sends_done();
  pair().filter = [dropped = false](bool to_b, const CorePair::Packet& packet) mutable {
    if (dropped || !to_b || packet.type() != PacketType::small) return true;
    dropped = true;
    return false;
  };
  ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
  EXPECT_TRUE(pair().run(100, [&] { return sends_done() > done; }));
}

TEST_F(CoreFaultsTest, HelloInAnotherNameLeavesItsDestinationAlone) {
  open();
  const Address resolved = CorePair::address_of(1);
  ASSERT_EQ(pair().b.paths.references(resolved), 1U);
  pair().deliver(pair().b, forge_hello(hello_of({7}, 77)), resolved);
  EXPECT_EQ(pair().b.paths.references(resolved), 2U);
  pair().run(2000);
  EXPECT_EQ(pair().b.paths.references(resolved), 1U);
}

TEST_F(CoreFaultsTest, PartlySentMessageLeavesNoCountWhenItEnds) {
  open();
  const auto payload = pattern(4 << 20, 2);
  std::uint32_t id = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (to_b && packet.type() == PacketType::data) id = body_of<wire::DataHeader>(packet).msg_id;
    return to_b;
  };
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  pair().run(1);
  EXPECT_EQ(queued_at_a(), 1U);
  reject(id, 1, wire::NackCode::too_long, 0);
  EXPECT_EQ(queued_at_a(), 0U);
  // The same when its context ends under it and the peer goes on.
  pair().filter = nullptr;
  pair().run(100);
  Config again = config();
  again.incarnation = 99;
  again.endpoint_id[0] = 2;
  again.seed = 99;
  pair().start(pair().b, again);
  ASSERT_EQ(pair().send(pair().a, payload), Errc::ok);
  ASSERT_TRUE(pair().run(1000, [&] { return sends_done(Errc::peer_restarted) == 1; }));
  EXPECT_EQ(queued_at_a(), 0U);
}

TEST_F(CoreFaultsTest, HalfOpenContextDoesNotBlockMessages) {
  open();
  const PeerId client = pair().b.events.at(0).peer;
  pair().a.core->close(Instant{pair().now_ns});
  pair().run(10);
  std::size_t hellos = 0;
  pair().filter = [&](bool to_b, const CorePair::Packet& packet) {
    if (!to_b && packet.type() == PacketType::hello) ++hellos;
    return false;
  };
  pair().deliver(pair().b, forge_hello(hello_of(config().endpoint_id, 77)));
  const PeerId own = std::exchange(pair().b.peer, client);
  ASSERT_EQ(pair().send(pair().b, small_), Errc::ok);
  pair().b.peer = own;
  pair().run(10);
  EXPECT_GT(hellos, 0U);
}

TEST_F(CoreFaultsTest, HandleThatWasNeverGivenOutNamesNothing) {
  Config base = config();
  base.limits.peers = 8;
  open(base);
  pair().deliver(pair().b, forge_hello(hello_of({7}, 77)));
  std::size_t known = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    srd_peer_info info{};
    info.struct_bytes = sizeof info;
    if (pair().b.core->peer_info(PeerId{i}, info)) ++known;
  }
  EXPECT_EQ(known, 2U);  // the resolved one, and a
  for (std::uint32_t i = 0; i < 8; ++i) {
    pair().b.core->remove_peer(Instant{pair().now_ns}, PeerId{i});
  }
  pair().run(2000);
  // Each place of the table is free once.
  std::set<PeerId> handles;
  for (std::uint16_t port = 100; port < 108; ++port) {
    handles.insert(
        pair().b.core->add_peer(Instant{pair().now_ns}, CorePair::address_of(port)).value());
  }
  EXPECT_EQ(handles.size(), 8U);
}

TEST_F(CoreFaultsTest, ClientsThatComeAndGoFindRoomForEver) {
  Config base = config();
  base.limits.peers = 4;
  pair_ = std::make_unique<CorePair>(base);
  small_ = pattern(100, 1);
  std::set<PeerId> named;
  for (std::uint8_t i = 0; i < 20; ++i) {
    Config client = base;
    client.endpoint_id[1] = i;
    client.incarnation = 100U + i;
    client.seed = 100U + i;
    pair().start(pair().a, client);
    ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
    ASSERT_TRUE(pair().run(500, [&] { return pair().b.messages.size() == i + 1U; }));
    for (const Event& event : pair().b.events) named.insert(event.peer);
    pair().a.core->close(Instant{pair().now_ns});
    pair().run(10);
  }
  EXPECT_EQ(pair().b.core->counters().peers_up.value(), 20U);
  EXPECT_LE(named.size(), 3U);  // beside the one that b resolved
}

TEST_F(CoreFaultsTest, AliasesGoWithTheirPeer) {
  pair_ = std::make_unique<CorePair>();
  small_ = pattern(100, 1);
  // Three addresses of one host, contacted in an order that makes a chain of them.
  std::array<PeerId, 3> handles{};
  for (std::uint16_t i = 0; i < 3; ++i) {
    handles[i] =
        pair().a.core->add_peer(Instant{pair().now_ns}, CorePair::address_of(20 + i)).value();
  }
  for (const std::size_t i : {2U, 0U, 1U}) {
    pair().a.peer = handles[i];
    const std::size_t before = pair().b.messages.size();
    ASSERT_EQ(pair().send(pair().a, small_), Errc::ok);
    ASSERT_TRUE(pair().run(100, [&] { return pair().b.messages.size() > before; }));
    pair().run(5);
  }
  ASSERT_EQ(pair().a.core->remove_peer(Instant{pair().now_ns}, handles[1]), Errc::ok);
  for (const PeerId handle : handles) {
    srd_peer_info info{};
    info.struct_bytes = sizeof info;
    EXPECT_FALSE(pair().a.core->peer_info(handle, info));
  }
  for (std::uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pair().a.paths.references(CorePair::address_of(20 + i)), 0U);
  }
}

// --- answers to strangers, memory ---

TEST_F(CoreFaultsTest, EachStrangerIsAnsweredOnceHoweverOutputIsPolled) {
  open();
  std::vector<std::uint32_t> answered;
  const auto poll_one = [&] {
    std::array<TxDatagram, 1> out;
    if (pair().b.core->poll_transmit(Instant{pair().now_ns}, out) == 0) return false;
    wire::CommonHeader common;
    EXPECT_TRUE(wire::decode(std::span(out[0].payload[0].data, out[0].payload[0].bytes), common));
    answered.push_back(common.dst_ctx);
    return true;
  };
  wire::HelloHeader hello = hello_of({}, 77);
  hello.version_min = hello.version_max = 5;
  for (hello.src_ctx = 1; hello.src_ctx <= 9; ++hello.src_ctx) {
    pair().deliver(pair().b, forge_hello(hello));
    if (hello.src_ctx % 3 == 0) poll_one();
  }
  while (poll_one()) {
  }
  EXPECT_EQ(answered, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(CoreFaultsTest, SmallMessageWithoutMemoryIsRejectedNotLost) {
  Config base = config();
  base.limits.receive_messages = 64;
  base.limits.receive_pool_bytes = 1 << 20;
  base.limits.max_message_bytes = 512 << 10;
  open(base);
  pair().filter = [](bool, const CorePair::Packet&) { return false; };
  // A message in tiny pieces takes a block of memory for each.
  wire::CommonHeader common;
  common.type = PacketType::data;
  wire::DataHeader data;
  data.msg_id = 1'000'000;
  data.msg_len = 512 << 10;
  std::uint32_t psn = context().first_psn_of_a + 3;
  constexpr std::uint32_t kBlocks = 64 + 64 + 1024 + 64;  // small and large ones, see create()
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    common.psn = psn++;
    common.flags = i == 0 ? wire::kFlagFirst : 0;
    data.msg_off = i * 200;
    pair().deliver(pair().b, pair().forge(true, common, data, wire::kDataBytes + 200));
  }
  const Counters& counters = pair().b.core->counters();
  const std::uint64_t malformed = counters.rx_malformed.value();
  const std::uint64_t delivered = counters.rx_messages.value();
  const std::uint64_t told = counters.rx_rejected_messages.value();
  const std::uint64_t refused = counters.rx_no_memory.value();
  common.type = PacketType::small;
  common.flags = 0;
  common.psn = psn;
  pair().deliver(pair().b, pair().forge(true, common, OneRecord{8},
                                        wire::kSmallBytes + wire::small_record_stride(8)));
  EXPECT_EQ(counters.rx_malformed.value(), malformed);
  EXPECT_EQ(counters.rx_messages.value(), delivered);
  EXPECT_EQ(counters.rx_rejected_messages.value(), told + 1);
  EXPECT_EQ(counters.rx_no_memory.value(), refused);
}

}  // namespace
}  // namespace srd::core
