/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srd-e2e-pair LOCAL REMOTE MESSAGES START_NS
 * One of two equal ends: at CLOCK_MONOTONIC START_NS it begins to send MESSAGES messages from LOCAL
 * to REMOTE, while the other end does the same. Checks that every message of the other end comes
 * exactly once with the right bytes and that every own one completes with success; prints the
 * counts. Exit code 1 if not.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <time.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srd/srd.h"

enum { kSizeMax = 9000, kCompletions = 64, kTimeLimitS = 15, kLingerMs = 500 };

static const uint64_t kNsPerMs = 1000000;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void check(int status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s (%s)\n", what, srd_last_error(), srd_error_string(status));
  exit(1);
}

static void fail(const char* what, uint64_t number) {
  fprintf(stderr, "message %" PRIu64 ": %s\n", number, what);
  exit(1);
}

/* Both ends make the same messages: a number, then bytes that follow from it. */
static size_t message_bytes(uint64_t number) {
  return sizeof number + (size_t)(number * 2654435761U % (kSizeMax - 8));
}

static void fill(unsigned char* out, uint64_t number) {
  memcpy(out, &number, sizeof number);
  for (size_t i = sizeof number; i < message_bytes(number); ++i)
    out[i] = (unsigned char)(number * 31 + i);
}

typedef struct {
  srd_poller* poller;
  srd_endpoint* endpoint;
  uint64_t messages, completed, received;
  unsigned char* seen; /* by number */
} pair;

static void receive(pair* self, const srd_completion* completion) {
  unsigned char got[kSizeMax], expected[kSizeMax];
  uint64_t number = UINT64_MAX;
  if (completion->bytes > sizeof got || completion->bytes < sizeof number)
    fail("impossible size", completion->bytes);
  check((int)srd_buffer_copy(self->endpoint, completion->buffer, 0, got, sizeof got),
        "srd_buffer_copy");
  memcpy(&number, got, sizeof number);
  if (number >= self->messages) fail("impossible number", number);
  if (self->seen[number]++ != 0) fail("came twice", number);
  fill(expected, number);
  if (completion->bytes != message_bytes(number) || memcmp(got, expected, completion->bytes) != 0)
    fail("wrong bytes", number);
  ++self->received;
  check(srd_buffer_release(self->endpoint, completion->buffer), "srd_buffer_release");
}

/* Harvests what there is; waits up to `timeout_ns` for it. */
static void progress(pair* self, uint64_t timeout_ns) {
  srd_completion completions[kCompletions];
  const int count = srd_poller_wait(self->poller, completions, kCompletions, timeout_ns);
  check(count, "srd_poller_wait");
  for (int i = 0; i < count; ++i) {
    if (completions[i].op == SRD_OP_RECEIVE) receive(self, &completions[i]);
    if (completions[i].op == SRD_OP_SEND) {
      if (completions[i].status != 0)
        fail(srd_error_string(completions[i].status), completions[i].user_data);
      ++self->completed;
    }
  }
}

static void send_all(pair* self, srd_peer peer, unsigned char* payload, uint64_t deadline_ns) {
  for (uint64_t number = 0; number < self->messages; ++number) {
    unsigned char* message = payload + number * kSizeMax;
    fill(message, number);
    const srd_iov iov = {message, message_bytes(number)};
    srd_send_options options = SRD_SEND_OPTIONS_INIT;
    options.user_data = number;
    int status;
    while ((status = srd_send(self->endpoint, peer, &iov, 1, &options)) < 0) {
      const int is_queue_full = status == -EAGAIN && self->completed < number;
      if (!is_queue_full || now_ns() > deadline_ns) check(status, "srd_send");
      progress(self, 10 * kNsPerMs);
    }
  }
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: srd-e2e-pair LOCAL REMOTE MESSAGES START_NS\n");
    return 2;
  }
  pair self = {NULL, NULL, strtoull(argv[3], NULL, 10), 0, 0, NULL};
  const uint64_t start_ns = strtoull(argv[4], NULL, 10);
  const uint64_t deadline_ns = start_ns + (uint64_t)kTimeLimitS * 1000 * kNsPerMs;
  unsigned char* payload = malloc(self.messages * kSizeMax);
  self.seen = calloc(self.messages, 1);
  if (payload == NULL || self.seen == NULL) return 1;

  srd_address local, remote;
  srd_context* context;
  srd_peer peer;
  srd_endpoint_config config = SRD_ENDPOINT_CONFIG_INIT;
  config.bind = &local;
  check(srd_address_parse(argv[1], &local), "LOCAL");
  check(srd_address_parse(argv[2], &remote), "REMOTE");
  check(srd_context_open("udp:", NULL, &context), "srd_context_open");
  check(srd_poller_create(context, NULL, &self.poller), "srd_poller_create");
  check(srd_endpoint_create(self.poller, &config, &self.endpoint), "srd_endpoint_create");
  check(srd_peer_resolve(self.endpoint, &remote, &peer), "srd_peer_resolve");

  while (now_ns() < start_ns)
    progress(&self, 0); /* awake, so that both begin within microseconds */
  send_all(&self, peer, payload, deadline_ns);
  while ((self.completed < self.messages || self.received < self.messages) &&
         now_ns() < deadline_ns)
    progress(&self, 100 * kNsPerMs);
  const uint64_t linger_ns =
      now_ns() + kLingerMs * kNsPerMs; /* the other end may miss our last answers */
  while (now_ns() < linger_ns) progress(&self, 10 * kNsPerMs);

  printf("%" PRIu64 " sent, %" PRIu64 " received\n", self.completed, self.received);
  const int failed = self.completed != self.messages || self.received != self.messages;
  srd_endpoint_destroy(self.endpoint);
  check(srd_poller_destroy(self.poller), "srd_poller_destroy");
  check(srd_context_close(context), "srd_context_close");
  free(self.seen);
  free(payload);
  return failed;
}
