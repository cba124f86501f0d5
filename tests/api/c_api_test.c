/* SPDX-License-Identifier: Apache-2.0 */
/* The C ABI from C99 (compiled with -pedantic -Werror): one program through every kind of call over
 * UDP on loopback. Wrong uses are in misuse_test.cpp. */
#include <errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srd/srd.h"

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              srd_last_error());                                                     \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static const uint64_t kSecond = 1000000000U;

/* The next completion of kind `op`; others are looked at by the caller's counters. */
static srd_completion next_of(srd_poller* poller, int op, unsigned* others) {
  srd_completion done;
  for (;;) {
    const int count = srd_poller_wait(poller, &done, 1, 20 * kSecond);
    CHECK(count == 1);
    if (done.op == op) return done;
    *others |= 1U << done.op;
  }
}

static void check_pieces(srd_endpoint* endpoint, const srd_completion* done, const char* expected) {
  srd_iov pieces[16];
  char copy[64];
  const int count = srd_buffer_segments(endpoint, done->buffer, pieces, 16);
  size_t total = 0;
  CHECK(count >= 1 && (uint32_t)count == done->segment_count);
  for (int i = 0; i < count; ++i) {
    CHECK(memcmp(pieces[i].data, expected + total, pieces[i].bytes) == 0);
    total += pieces[i].bytes;
  }
  CHECK(total == strlen(expected) && done->bytes == total);
  CHECK(srd_buffer_copy(endpoint, done->buffer, 0, copy, sizeof copy) == (int64_t)total);
  CHECK(memcmp(copy, expected, total) == 0);
  CHECK(srd_buffer_copy(endpoint, done->buffer, 2, copy, 3) == 3);
  CHECK(memcmp(copy, expected + 2, 3) == 0);
  CHECK(srd_buffer_copy(endpoint, done->buffer, total, copy, 3) == 0);
}

static void check_reading(const srd_endpoint* alice, srd_peer bob, const srd_address* to_bob) {
  srd_stats stats = {0};
  srd_limits limits = SRD_LIMITS_INIT;
  srd_peer_info info = {0};
  srd_path_info paths[64];
  stats.struct_bytes = sizeof stats;
  info.struct_bytes = sizeof info;
  CHECK(srd_endpoint_stats(alice, &stats) == 0);
  CHECK(stats.tx_messages == 1 && stats.tx_message_bytes == 11);
  CHECK(stats.tx_datagrams > 0 && stats.rx_datagrams > 0 && stats.peers_active == 1);
  CHECK(srd_endpoint_limits(alice, &limits) == 0);
  CHECK(limits.iov_max >= 8 && limits.max_message_bytes == 16U << 20 && limits.can_sleep == 1);
  CHECK(srd_peer_query(alice, bob, &info) == 0);
  CHECK(info.state == SRD_PEER_UP && info.datagram_bytes > 0 && info.struct_bytes == sizeof info);
  CHECK(info.address.port == to_bob->port && memcmp(info.address.bytes, to_bob->bytes, 16) == 0);
  {
    const int count = srd_peer_paths(alice, bob, paths, 64, sizeof paths[0]);
    CHECK(count >= 1 && count <= 64 && (uint32_t)count == info.paths);
    CHECK(paths[0].remote.port == to_bob->port && paths[0].local.port != 0);
    CHECK(srd_peer_paths(alice, bob, NULL, 0, sizeof paths[0]) == count);
  }
}

static void check_texts(void) {
  srd_address address;
  char text[64];
  CHECK(srd_address_parse("[::1]:7000", &address) == 0);
  CHECK(address.family == 6 && address.port == 7000 && address.bytes[15] == 1);
  CHECK(srd_address_format(&address, text, sizeof text) == (int)strlen("[::1]:7000"));
  CHECK(strcmp(text, "[::1]:7000") == 0);
  CHECK(strcmp(srd_error_string(0), "success") == 0);
  CHECK(strstr(srd_error_string(-SRD_ERR_PEER_RESTARTED), "restarted") != NULL);
  CHECK(strcmp(srd_error_string(-12345), "unknown error") == 0);
  CHECK(srd_version() < 0x01000000U && srd_version() > 0);
  CHECK(sizeof(srd_completion) == 64 && sizeof(srd_address) == 32);
}

int main(void) {
  srd_context* context = NULL;
  srd_poller* poller = NULL;
  srd_endpoint* alice = NULL;
  srd_endpoint* bob = NULL;
  srd_endpoint_config config = SRD_ENDPOINT_CONFIG_INIT;
  srd_send_options options = SRD_SEND_OPTIONS_INIT;
  srd_address to_bob;
  srd_peer peer = SRD_NO_PEER;
  srd_peer again = SRD_NO_PEER;
  srd_completion done;
  srd_iov pieces[3];
  char hello[] = "hello world";
  unsigned others = 0;
  const uint8_t id[16] = {1, 2, 3};

  check_texts();
  CHECK(srd_context_open("udp:127.0.0.1?paths=4", NULL, &context) == 0);
  CHECK(srd_poller_create(context, NULL, &poller) == 0);
  CHECK(srd_endpoint_create(poller, NULL, &alice) == 0);
  config.endpoint_id = id;
  config.paths = 2;
  CHECK(srd_endpoint_create(poller, &config, &bob) == 0);
  CHECK(srd_endpoint_address(bob, &to_bob) == 0);
  CHECK(to_bob.family == 4 && to_bob.port != 0);
  CHECK(srd_peer_resolve(alice, &to_bob, &peer) == 0);
  CHECK(srd_peer_resolve(alice, &to_bob, &again) == 0 && again == peer);

  /* Three pieces, copied: they may change at once. */
  pieces[0].data = hello;
  pieces[0].bytes = 5;
  pieces[1].data = NULL;
  pieces[1].bytes = 0;
  pieces[2].data = hello + 5;
  pieces[2].bytes = 6;
  options.user_data = 42;
  options.channel = 7;
  options.flags = SRD_SEND_COPY;
  CHECK(srd_send(alice, peer, pieces, 3, &options) == 0);
  memset(hello, 'x', sizeof hello - 1);
  CHECK(srd_poller_flush(poller) == 0);

  done = next_of(poller, SRD_OP_RECEIVE, &others);
  CHECK(done.endpoint == bob && done.channel == 7 && done.status == 0);
  check_pieces(bob, &done, "hello world");
  /* The answer goes to whom the message came from. */
  options.user_data = 43;
  options.channel = 0;
  pieces[0].data = "ok";
  pieces[0].bytes = 2;
  CHECK(srd_send(bob, done.peer, pieces, 1, &options) == 0);
  CHECK(srd_buffer_release(bob, done.buffer) == 0);
  CHECK(srd_buffer_release(bob, done.buffer) == -EINVAL);

  done = next_of(poller, SRD_OP_RECEIVE, &others);
  CHECK(done.endpoint == alice && done.peer == peer && done.bytes == 2);
  CHECK(srd_buffer_release(alice, done.buffer) == 0);
  if ((others & 1U << SRD_OP_SEND) == 0) {
    done = next_of(poller, SRD_OP_SEND, &others);
    CHECK(done.status == 0 && (done.user_data == 42 || done.user_data == 43));
  }
  while (srd_poller_wait(poller, &done, 1, kSecond / 10) > 0) CHECK(done.status == 0);
  check_reading(alice, peer, &to_bob);

  CHECK(srd_peer_forget(alice, peer) == 0);
  CHECK(srd_peer_query(alice, peer, &(srd_peer_info){.struct_bytes = sizeof(srd_peer_info)}) ==
        -ENOENT);
  CHECK(srd_context_close(context) == -EBUSY);
  CHECK(srd_poller_destroy(poller) == -EBUSY);
  srd_endpoint_destroy(alice);
  srd_endpoint_destroy(bob);
  CHECK(srd_poller_destroy(poller) == 0);
  CHECK(srd_context_close(context) == 0);
  puts("ok");
  return 0;
}
