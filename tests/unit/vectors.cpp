// SPDX-License-Identifier: Apache-2.0
#include "unit/vectors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "srd/wire/check.hpp"

#include "base/bytes.hpp"

namespace srd::test {

using namespace wire;

namespace {

// ---- contents ---------------------------------------------------------------------------------

constexpr std::uint64_t kInitiatorIncarnation = 0x0123456789abcdef;
constexpr std::uint64_t kResponderIncarnation = 0xfedcba9876543210;
constexpr std::uint32_t kInitiatorCtx = 0x11223344;
constexpr std::uint32_t kResponderCtx = 0x55667788;

// first, first + 1, ...
template <std::size_t N>
constexpr std::array<std::uint8_t, N> counting(std::uint8_t first) {
  std::array<std::uint8_t, N> bytes{};
  for (std::size_t i = 0; i < N; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

constexpr Nonce kInitiatorNonce = counting<16>(0x20);
constexpr Nonce kResponderNonce = counting<16>(0x40);
constexpr Cookie kCookie = counting<24>(0x60);

CommonHeader common_to(std::uint32_t ctx, PacketType type, std::uint8_t flags = 0) {
  CommonHeader common;
  common.type = type;
  common.flags = flags;
  common.slot = 7;
  common.generation = 2;
  common.attempt = 1;
  common.dst_ctx = ctx;
  common.psn = 0x89abcdef;
  common.tx_time = 0x01020304;
  return common;
}

CommonHeader to_responder(PacketType type, std::uint8_t flags = kFlagFullCheck) {
  return common_to(kResponderCtx, type, flags);
}

CommonHeader to_initiator(PacketType type, std::uint8_t flags = kFlagFullCheck) {
  return common_to(kInitiatorCtx, type, flags);
}

constexpr Piggy kPiggy{.cumulative = 0x77665544,
                       .echo_time = 0x0a0b0c0d,
                       .hold_time = 300,
                       .limit = 0x00400000,
                       .ack_seq = 513,
                       .rej_total = 4,
                       .echo_slot = 9,
                       .echo_gen_attempt = 0x31,
                       .pressure = 64};
constexpr RevPath kRevPath{.heard_slots = 0x8000000000000201, .last_ack_seq = 514};
constexpr RePath kRePath{.slot = 12, .generation = 5};

DataHeader some_data() {
  DataHeader data;
  data.msg_id = 1000;
  data.msg_len = 1416;
  data.port = 80;
  data.backlog = backlog_code(200'000);
  return data;
}

AckHeader some_ack() {
  AckHeader ack;
  ack.echo_time = 0x0a0b0c0d;
  ack.rx_time = 0x01020000;
  ack.echo_psn = 0x89abcdf0;
  ack.echo_slot = 9;
  ack.echo_gen_attempt = 0x31;
  ack.pressure = 64;
  ack.rx_bytes = 123'456'789;
  ack.limit = 0x00400000;
  ack.ce_total = 17;
  ack.dup_total = 3;
  ack.ack_seq = 515;
  ack.rej_total = 4;
  ack.host_drops = 2;
  return ack;
}

HelloHeader hello_of_initiator() {
  HelloHeader hello;
  hello.src_ctx = kInitiatorCtx;
  hello.ctx_serial = 5;
  hello.features = kFeatureFullCheck;
  hello.endpoint_id = counting<16>(0xa0);
  hello.incarnation = kInitiatorIncarnation;
  hello.nonce = kInitiatorNonce;
  hello.initial_psn = 0x89abcdef;
  hello.paths = 32;
  hello.window_log2 = 13;
  hello.datagram_bytes = 1472;
  hello.max_message_bytes = 16U << 20;
  hello.partial_limit = 256;
  hello.max_ack_delay_us = 100;
  hello.reads_ce = 1;
  hello.rx_buffer_bytes = 425'984;
  hello.initial_limit = 0x00010000;
  return hello;
}

HelloHeader hello_of_responder() {
  HelloHeader hello = hello_of_initiator();
  hello.src_ctx = kResponderCtx;
  hello.ctx_serial = 1;
  hello.endpoint_id = counting<16>(0xc0);
  hello.incarnation = kResponderIncarnation;
  hello.seen_incarnation = kInitiatorIncarnation;
  hello.nonce = kResponderNonce;
  hello.echo_nonce = kInitiatorNonce;
  hello.initial_psn = 0x77665500;
  hello.datagram_bytes = 8972;
  hello.echo_time = 0x01020304;
  hello.hold_time = 40;
  return hello;
}

CommonHeader common_of_hello(PacketType type, std::uint32_t dst_ctx) {
  CommonHeader common = common_to(dst_ctx, type);
  common.generation = 0;
  common.attempt = 0;
  common.psn = 0;
  return common;
}

// ---- building ---------------------------------------------------------------------------------

class Builder {
 public:
  Builder(const CommonHeader& common, std::size_t bytes) : bytes_(bytes) { encode(bytes_, common); }

  template <class Header>
  static Builder with(const CommonHeader& common, const Header& header) {
    Builder builder(common, fixed_bytes(common.type));
    encode(builder.bytes_, header);
    return builder;
  }

  static Builder ack(const CommonHeader& common, const AckHeader& header,
                     std::span<const std::uint64_t> received, std::span<const std::uint64_t> ce) {
    Builder builder(common, kAckBytes + 8 * (received.size() + ce.size()));
    encode(builder.bytes_, header, received, ce);
    return builder;
  }

  Builder& extend(const Extensions& extensions) {
    encode_extensions(grow(extension_bytes(extensions)), extensions);
    return *this;
  }

  Builder& record(const SmallRecord& record) {
    const std::span<std::byte> out = grow(small_record_stride(record.bytes));
    encode(out, record);
    fill(out.subspan(kSmallRecordBytes, record.bytes));
    return *this;
  }

  Builder& payload(std::size_t bytes) {
    fill(grow(bytes));
    return *this;
  }

  Builder& pad_to(std::size_t bytes) {
    bytes_.resize(bytes);
    return *this;
  }

  // With a header-only check the header ends at `header_bytes`.
  Vector seal(std::string name, std::string title, std::uint32_t seed,
              std::size_t header_bytes = SIZE_MAX) {
    const std::span<std::byte> header =
        std::span(bytes_).first(std::min(header_bytes, bytes_.size()));
    const Segment payload{bytes_.data() + header.size(),
                          static_cast<std::uint32_t>(bytes_.size() - header.size())};
    wire::seal(header, std::span(&payload, 1), seed);
    return {std::move(name), std::move(title), seed, std::move(bytes_)};
  }

 private:
  std::span<std::byte> grow(std::size_t bytes) {
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + bytes);
    return std::span(bytes_).subspan(begin);
  }

  static void fill(std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(0xe0 + i % 32);
  }

  std::vector<std::byte> bytes_;
};

constexpr std::uint8_t kFull = kFlagFullCheck;
constexpr std::uint8_t kFullExtended = kFlagFullCheck | kFlagExtension;

void add_data(std::vector<Vector>& out) {
  const std::uint32_t seed = forward_seed();
  const auto flags = [](unsigned value) { return static_cast<std::uint8_t>(value); };
  out.push_back(
      Builder::with(to_responder(PacketType::data, flags(kFull | kFlagFirst)), some_data())
          .payload(64)
          .seal("data_first", "DATA: first segment of a message of two", seed));

  DataHeader last = some_data();
  last.msg_off = 1408;
  out.push_back(Builder::with(to_responder(PacketType::data, flags(kFull | kFlagLast)), last)
                    .payload(8)
                    .seal("data_last", "DATA: last segment of a message of two", seed));

  DataHeader ordered = some_data();
  ordered.msg_len = 5;
  ordered.chan_seq = 77;
  out.push_back(
      Builder::with(to_responder(PacketType::data, flags(kFull | kFlagFirst | kFlagLast |
                                                         kFlagAckRequest | kFlagTailProbe)),
                    ordered)
          .payload(5)
          .seal("data_ordered_probe",
                "DATA: a whole ordered message of 5 bytes, sent again as a tail probe", seed));

  DataHeader empty = some_data();
  empty.msg_len = 0;
  out.push_back(
      Builder::with(to_responder(PacketType::data, flags(kFull | kFlagFirst | kFlagLast)), empty)
          .seal("data_empty", "DATA: a message of 0 bytes", seed));

  out.push_back(Builder::with(to_responder(PacketType::data, kFlagFirst), some_data())
                    .payload(64)
                    .seal("data_header_check",
                          "DATA with a check of the header only: payload is not covered", seed,
                          kDataBytes));

  Extensions rev_path;
  rev_path.rev_path = kRevPath;
  out.push_back(
      Builder::with(to_responder(PacketType::data, flags(kFullExtended | kFlagFirst)), some_data())
          .extend(rev_path)
          .payload(64)
          .seal("data_rev_path", "DATA with REVPATH", seed));

  Extensions all;
  all.piggy = kPiggy;
  all.rev_path = kRevPath;
  all.re_path = kRePath;
  out.push_back(
      Builder::with(to_responder(PacketType::data, flags(kFullExtended | kFlagFirst)), some_data())
          .extend(all)
          .payload(64)
          .seal("data_extensions", "DATA with PIGGY, REVPATH and REPATH: the longest header",
                seed));
}

void add_small(std::vector<Vector>& out) {
  const std::uint32_t seed = forward_seed();
  SmallHeader one;
  one.msg_id = 1001;
  one.count = 1;
  one.bytes = 64;
  SmallRecord record;
  record.port = 80;
  record.bytes = 64;
  out.push_back(Builder::with(to_responder(PacketType::small), one)
                    .record(record)
                    .seal("small_one", "SMALL: one message of 64 bytes", seed));

  Extensions piggy;
  piggy.piggy = kPiggy;
  out.push_back(Builder::with(to_responder(PacketType::small, kFullExtended), one)
                    .extend(piggy)
                    .record(record)
                    .seal("small_piggy", "SMALL: one message of 64 bytes, with PIGGY", seed));

  SmallHeader three;
  three.msg_id = 1002;
  three.count = 3;
  three.backlog = backlog_code(70'000);
  three.bytes = 8;
  SmallRecord a, b, c;
  a.port = 80;
  a.bytes = 5;
  b.port = 81;
  b.chan_seq = 78;
  c.port = 82;
  c.bytes = 3;
  out.push_back(Builder::with(to_responder(PacketType::small), three)
                    .record(a)
                    .record(b)
                    .record(c)
                    .seal("small_three",
                          "SMALL: three messages of 5, 0 and 3 bytes, the second ordered", seed));
}

void add_ack(std::vector<Vector>& out) {
  const std::uint32_t seed = reverse_seed();
  const CommonHeader common = to_initiator(PacketType::ack);
  out.push_back(Builder::ack(common, some_ack(), {}, {})
                    .seal("ack_plain", "ACK without a hole: no bitmap", seed));

  constexpr std::array<std::uint64_t, 2> kReceived = {0xfffffffffffffffe, 0x00000000000000ff};
  constexpr std::array<std::uint64_t, 2> kCe = {0x0000000000000100, 0};
  AckHeader holes = some_ack();
  holes.bitmap_base = 0;
  holes.flags = kAckDuplicate;
  out.push_back(Builder::ack(common, holes, kReceived, {})
                    .seal("ack_holes", "ACK with two received words, for a duplicate", seed));

  AckHeader ce = some_ack();
  ce.bitmap_base = -64;
  ce.flags = kAckCeEcho;
  out.push_back(
      Builder::ack(common, ce, kReceived, kCe)
          .seal("ack_ce", "ACK with received and CE words from below the cumulative ack", seed));

  std::array<std::uint64_t, kAckWordsMax> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = 0x1111111111111111 * i;
  AckHeader longest = some_ack();
  longest.bitmap_base = 7168;
  longest.flags = kAckBeyondWindow;
  Extensions re_path;
  re_path.re_path = kRePath;
  out.push_back(Builder::ack(to_initiator(PacketType::ack, kFullExtended), longest, words, words)
                    .extend(re_path)
                    .seal("ack_longest", "ACK with all words and REPATH", seed));
}

void add_control(std::vector<Vector>& out) {
  NackHeader nack;
  nack.code = NackCode::receiver_not_ready;
  nack.echo_slot = 9;
  nack.echo_gen_attempt = 0x31;
  nack.retry_after_us = 250;
  nack.msg_id = 1000;
  nack.port = 80;
  nack.rej_seq = 5;
  out.push_back(Builder::with(to_initiator(PacketType::nack), nack)
                    .seal("nack_not_ready", "NACK: receiver not ready", reverse_seed()));

  ProbeHeader probe;
  probe.probe_id = 42;
  probe.opaque = 0x1020304050607080;
  probe.flags = kProbeWantAck | kProbeWantNack;
  probe.rej_known = 4;
  probe.backlog = backlog_code(1'000'000);
  CommonHeader common = to_responder(PacketType::probe);
  common.psn = probe.probe_id;
  out.push_back(Builder::with(common, probe)
                    .seal("probe", "PROBE that asks for ACKs and NACKs", forward_seed()));

  probe.flags = kProbeSameSlot;
  out.push_back(
      Builder::with(common, probe)
          .pad_to(104)
          .seal("probe_padded", "PROBE of one path, padded to 104 bytes", forward_seed()));

  ProbeAckHeader probe_ack;
  probe_ack.probe_id = 42;
  probe_ack.opaque = 0x1020304050607080;
  probe_ack.echo_time = 0x01020304;
  probe_ack.rx_time = 0x0a0b0c0d;
  probe_ack.rx_queue = 3;
  probe_ack.ce = 1;
  probe_ack.echo_slot = 7;
  probe_ack.echo_gen_attempt = 0x21;
  out.push_back(Builder::with(to_initiator(PacketType::probe_ack), probe_ack)
                    .seal("probe_ack", "PROBE_ACK", reverse_seed()));

  CloseHeader close;
  close.reason = 0;
  close.next_psn = 0x77665544;
  out.push_back(
      Builder::with(to_responder(PacketType::close), close).seal("close", "CLOSE", forward_seed()));

  VoidHeader void_psns;
  void_psns.count = 64;
  void_psns.bytes_each = 1408;
  out.push_back(Builder::with(to_responder(PacketType::void_psns), void_psns)
                    .seal("void", "VOID of 64 PSNs", forward_seed()));

  AbortHeader abort;
  abort.msg_id = 1000;
  abort.chan_seq = 77;
  abort.rej_known = 5;
  out.push_back(Builder::with(to_responder(PacketType::abort), abort)
                    .seal("abort_final", "ABORT of a message for good", forward_seed()));
  abort.requeue = 1;
  out.push_back(Builder::with(to_responder(PacketType::abort), abort)
                    .seal("abort_requeue", "ABORT of a message that comes again", forward_seed()));
}

void add_set_up(std::vector<Vector>& out) {
  const CommonHeader hello = common_of_hello(PacketType::hello, 0);
  out.push_back(Builder::with(hello, hello_of_initiator())
                    .pad_to(kHelloPaddedBytes)
                    .seal("hello", "HELLO", kUnseeded));

  CommonHeader with_cookie = hello;
  with_cookie.flags = kFlagExtension;
  HelloHeader again = hello_of_initiator();
  again.seen_incarnation = kResponderIncarnation;
  again.prev_ctx = kResponderCtx;
  Extensions cookie;
  cookie.cookie = kCookie;
  out.push_back(
      Builder::with(with_cookie, again)
          .extend(cookie)
          .pad_to(kHelloPaddedBytes)
          .seal("hello_cookie", "HELLO with the cookie of retry.hex, after a RESET", kUnseeded));

  const CommonHeader answer = common_of_hello(PacketType::hello_ack, kInitiatorCtx);
  out.push_back(Builder::with(answer, hello_of_responder())
                    .pad_to(kHelloPaddedBytes)
                    .seal("hello_ack", "HELLO_ACK: accepted", kUnseeded));

  HelloHeader refusal;
  refusal.reject = RejectCode::no_room;
  refusal.endpoint_id = counting<16>(0xc0);
  refusal.incarnation = kResponderIncarnation;
  refusal.echo_nonce = kInitiatorNonce;
  refusal.prev_state = PrevState::unknown;
  out.push_back(Builder::with(answer, refusal)
                    .seal("hello_ack_refused", "HELLO_ACK: no room for a context", kUnseeded));

  RetryHeader retry;
  retry.echo_nonce = kInitiatorNonce;
  retry.cookie = kCookie;
  out.push_back(Builder::with(common_of_hello(PacketType::retry, kInitiatorCtx), retry)
                    .seal("retry", "RETRY", kUnseeded));

  ResetHeader reset;
  reset.echo_dst_ctx = kResponderCtx;
  reset.incarnation = kResponderIncarnation;
  CommonHeader common = common_of_hello(PacketType::reset, 0);
  common.psn = 0x89abcdef;
  out.push_back(Builder::with(common, reset).seal("reset", "RESET", kUnseeded));
}

// ---- text -------------------------------------------------------------------------------------

class HexFile {
 public:
  explicit HexFile(const Vector& vector) : rest_(vector.bytes) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "# %s\n# %zu bytes, check seeded with 0x%08x; columns: bytes, offset, field, "
                  "value\n",
                  vector.title.c_str(), vector.bytes.size(), vector.seed);
    text_ = line;
  }

  void fields(const std::vector<Field>& fields) {
    for (const Field& field : fields) take(field.name, field.bytes);
  }

  // Lines of 16 bytes.
  void block(const char* name, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t now = std::min<std::size_t>(bytes, 16);
      take(name, now);
      bytes -= now;
    }
  }

  void take(const char* name, std::size_t bytes) {
    std::string hex;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      char digits[4];
      std::snprintf(digits, sizeof digits, "%02x ", std::to_integer<unsigned>(rest_[i]));
      hex += digits;
      if (i < 8) value |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    }
    char line[200];
    std::snprintf(line, sizeof line, "%-48s# %3zu %s", hex.c_str(), offset_, name);
    text_ += line;
    if (bytes <= 8 && std::string_view(name) != "payload") {
      std::snprintf(line, sizeof line, " 0x%0*llx", static_cast<int>(2 * bytes),
                    static_cast<unsigned long long>(value));
      text_ += line;
    }
    text_ += '\n';
    rest_ = rest_.subspan(bytes);
    offset_ += bytes;
  }

  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

  std::string finish() { return std::move(text_); }

 private:
  std::span<const std::byte> rest_;
  std::size_t offset_ = 0;
  std::string text_;
};

void write_extensions(HexFile& file) {
  std::size_t left = load_le<std::uint16_t>(file.rest().data());
  file.fields({{"extension_bytes", 2}, {"reserved", 2}});
  left -= kExtensionHeadBytes;
  while (left > 0 && file.rest().front() != std::byte{0}) {
    const auto type = static_cast<TlvType>(file.rest()[0]);
    const auto bytes = std::to_integer<std::size_t>(file.rest()[1]);
    file.fields({{"tlv_type", 1}, {"tlv_bytes", 1}});
    file.fields(tlv_fields(type));
    left -= 2 + bytes;
  }
  if (left > 0) file.take("pad", left);
}

}  // namespace

std::uint32_t forward_seed() {
  return derive_seed({kInitiatorNonce, kInitiatorIncarnation},
                     {kResponderNonce, kResponderIncarnation});
}

std::uint32_t reverse_seed() {
  return derive_seed({kResponderNonce, kResponderIncarnation},
                     {kInitiatorNonce, kInitiatorIncarnation});
}

std::vector<Vector> make_vectors() {
  std::vector<Vector> out;
  add_data(out);
  add_small(out);
  add_ack(out);
  add_control(out);
  add_set_up(out);
  return out;
}

const std::vector<Field>& common_fields() {
  static const std::vector<Field> fields = {
      {"version_type", 1}, {"flags", 1}, {"slot", 1},    {"generation_attempt", 1},
      {"dst_ctx", 4},      {"psn", 4},   {"tx_time", 4}, {"check", 4}};
  return fields;
}

const std::vector<Field>& body_fields(PacketType type) {
  static const std::vector<Field> data = {{"msg_id", 4},   {"msg_len", 4}, {"msg_off", 4},
                                          {"chan_seq", 4}, {"port", 2},    {"op", 1},
                                          {"backlog", 1}};
  static const std::vector<Field> small = {
      {"msg_id", 4}, {"count", 1}, {"backlog", 1}, {"bytes", 2}};
  static const std::vector<Field> ack = {
      {"echo_time", 4},   {"rx_time", 4},          {"echo_psn", 4},
      {"echo_slot", 1},   {"echo_gen_attempt", 1}, {"flags", 1},
      {"pressure", 1},    {"rx_bytes", 4},         {"limit", 4},
      {"bitmap_base", 2}, {"ce_total", 2},         {"dup_total", 2},
      {"ack_seq", 2},     {"rej_total", 2},        {"host_drops", 2},
      {"words", 1},       {"reserved", 7}};
  static const std::vector<Field> nack = {
      {"code", 1},     {"echo_slot", 1},      {"echo_gen_attempt", 1},
      {"reserved", 1}, {"retry_after_us", 4}, {"msg_id", 4},
      {"port", 2},     {"rej_seq", 2}};
  static const std::vector<Field> hello = {{"src_ctx", 4},          {"version_min", 1},
                                           {"version_max", 1},      {"traffic_class", 1},
                                           {"reject", 1},           {"ctx_serial", 4},
                                           {"features", 8},         {"endpoint_id", 16},
                                           {"incarnation", 8},      {"seen_incarnation", 8},
                                           {"nonce", 16},           {"echo_nonce", 16},
                                           {"initial_psn", 4},      {"prev_ctx", 4},
                                           {"prev_state", 1},       {"paths", 1},
                                           {"planes", 1},           {"window_log2", 1},
                                           {"datagram_bytes", 4},   {"max_message_bytes", 4},
                                           {"partial_limit", 2},    {"ordered_channels", 2},
                                           {"max_ack_delay_us", 2}, {"reads_ce", 1},
                                           {"reserved", 1},         {"rx_buffer_bytes", 4},
                                           {"initial_limit", 4},    {"echo_time", 4},
                                           {"hold_time", 4},        {"reserved", 12}};
  static const std::vector<Field> retry = {{"echo_nonce", 16}, {"cookie", 24}, {"reserved", 4}};
  static const std::vector<Field> probe = {{"probe_id", 4},  {"opaque", 8},  {"flags", 2},
                                           {"rej_known", 2}, {"backlog", 1}, {"reserved", 3}};
  static const std::vector<Field> probe_ack = {
      {"probe_id", 4}, {"opaque", 8},    {"echo_time", 4},        {"rx_time", 4}, {"rx_queue", 2},
      {"ce", 1},       {"echo_slot", 1}, {"echo_gen_attempt", 1}, {"reserved", 3}};
  static const std::vector<Field> reset = {{"echo_dst_ctx", 4}, {"incarnation", 8}};
  static const std::vector<Field> close = {{"reason", 4}, {"next_psn", 4}};
  static const std::vector<Field> void_psns = {{"count", 2}, {"reserved", 2}, {"bytes_each", 4}};
  static const std::vector<Field> abort = {
      {"msg_id", 4}, {"chan_seq", 4}, {"rej_known", 2}, {"requeue", 1}, {"reserved", 1}};
  switch (type) {
    case PacketType::data:
      return data;
    case PacketType::small:
      return small;
    case PacketType::ack:
      return ack;
    case PacketType::nack:
      return nack;
    case PacketType::hello:
    case PacketType::hello_ack:
      return hello;
    case PacketType::retry:
      return retry;
    case PacketType::probe:
      return probe;
    case PacketType::probe_ack:
      return probe_ack;
    case PacketType::reset:
      return reset;
    case PacketType::close:
      return close;
    case PacketType::void_psns:
      return void_psns;
    case PacketType::abort:
      return abort;
  }
  static const std::vector<Field> none;
  return none;
}

const std::vector<Field>& record_fields() {
  static const std::vector<Field> fields = {
      {"chan_seq", 4}, {"port", 2}, {"bytes", 2}, {"op", 1}, {"reserved", 3}};
  return fields;
}

const std::vector<Field>& tlv_fields(TlvType type) {
  static const std::vector<Field> piggy = {
      {"cumulative", 4}, {"echo_time", 4}, {"hold_time", 4}, {"limit", 4},
      {"ack_seq", 2},    {"rej_total", 2}, {"echo_slot", 1}, {"echo_gen_attempt", 1},
      {"pressure", 1},   {"reserved", 1}};
  static const std::vector<Field> rev_path = {{"heard_slots", 8}, {"last_ack_seq", 2}};
  static const std::vector<Field> re_path = {{"slot", 1}, {"generation", 1}};
  static const std::vector<Field> cookie = {{"cookie", 24}};
  static const std::vector<Field> none;
  switch (type) {
    case TlvType::piggy:
      return piggy;
    case TlvType::rev_path:
      return rev_path;
    case TlvType::re_path:
      return re_path;
    case TlvType::cookie:
      return cookie;
    default:
      return none;
  }
}

std::string to_hex_file(const Vector& vector) {
  CommonHeader common;
  decode(vector.bytes, common);
  HexFile file(vector);
  file.fields(common_fields());
  file.fields(body_fields(common.type));
  if (common.type == PacketType::ack) {
    AckHeader ack;
    std::array<std::uint64_t, kAckWordsMax> received, ce;
    decode(vector.bytes, ack, received, ce);
    for (unsigned i = 0; i < ack.words; ++i) file.take("received", 8);
    for (unsigned i = 0; (ack.flags & kAckCeBitmap) != 0 && i < ack.words; ++i) file.take("ce", 8);
  }
  if ((common.flags & kFlagExtension) != 0) write_extensions(file);
  if (common.type == PacketType::small) {
    while (!file.rest().empty()) {
      const std::size_t bytes = load_le<std::uint16_t>(file.rest().data() + 6);
      file.fields(record_fields());
      file.block("payload", bytes);
      const std::size_t pad = small_record_stride(bytes) - kSmallRecordBytes - bytes;
      if (pad > 0) file.take("pad", pad);
    }
  }
  file.block(common.type == PacketType::data ? "payload" : "pad", file.rest().size());
  return file.finish();
}

std::vector<std::byte> parse_hex_file(std::string_view text) {
  std::vector<std::byte> bytes;
  unsigned digits = 0;
  unsigned value = 0;
  bool in_comment = false;
  for (const char c : text) {
    if (c == '#') in_comment = true;
    if (c == '\n') in_comment = false;
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t digit = kDigits.find(c);
    if (in_comment || digit == kDigits.npos) continue;
    value = value << 4 | static_cast<unsigned>(digit);
    if (++digits % 2 == 0) bytes.push_back(static_cast<std::byte>(value & 0xff));
  }
  return bytes;
}

}  // namespace srd::test
