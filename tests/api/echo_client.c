/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an echo server each TEXT, one after the other, and prints its answers: the other side of the
 * tests of examples/epoll_echo.c, which need nothing but C. Usage: echo_client ADDRESS:PORT TEXT...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srd/srd.h"

static const uint64_t kPatienceNs = 10000000000U;

static int fail(const char* what) {
  fprintf(stderr, "echo_client: %s\n", what);
  return 1;
}

/* Prints the answer; 0 if there was one. */
static int print_message(const srd_completion* done) {
  char* text = calloc(1, done->bytes + 1);
  if (text == NULL) return fail("no memory");
  srd_buffer_copy(done->endpoint, done->buffer, 0, text, done->bytes);
  srd_buffer_release(done->endpoint, done->buffer);
  puts(text);
  free(text);
  return 0;
}

static int ask(srd_poller* poller, srd_endpoint* endpoint, srd_peer server, const char* text) {
  const srd_iov piece = {text, strlen(text)};
  if (srd_send(endpoint, server, &piece, 1, NULL) < 0) return fail(srd_last_error());
  int sent = 0, answered = 0;
  while (!sent || !answered) {
    srd_completion done;
    const int count = srd_poller_wait(poller, &done, 1, kPatienceNs);
    if (count < 0) return fail(srd_last_error());
    if (count == 0) return fail("no answer");
    if (done.status < 0) return fail(srd_error_string(done.status));
    if (done.op == SRD_OP_SEND) sent = 1;
    if (done.op == SRD_OP_RECEIVE) {
      answered = 1;
      if (print_message(&done) != 0) return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: echo_client ADDRESS:PORT TEXT...\n");
    return 2;
  }
  srd_context* context = NULL;
  srd_poller* poller = NULL;
  srd_endpoint* endpoint = NULL;
  srd_address address;
  srd_peer server;
  if (srd_address_parse(argv[1], &address) < 0 || srd_context_open("udp:", NULL, &context) < 0 ||
      srd_poller_create(context, NULL, &poller) < 0 ||
      srd_endpoint_create(poller, NULL, &endpoint) < 0 ||
      srd_peer_resolve(endpoint, &address, &server) < 0) {
    return fail(srd_last_error());
  }
  int status = 0;
  for (int i = 2; i < argc && status == 0; ++i) status = ask(poller, endpoint, server, argv[i]);
  srd_endpoint_destroy(endpoint);
  srd_poller_destroy(poller);
  srd_context_close(context);
  return status;
}
