/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest use of srd.h: two endpoints, one message. The README shows it. */
/* clang-format off */
#include <stdio.h>
#include "srd/srd.h"
int main(void) {
  srd_context *context; srd_poller *poller; srd_endpoint *alice, *bob;
  srd_address address; srd_peer peer; srd_completion done = {0};
  if (srd_context_open("udp:127.0.0.1", NULL, &context) || srd_poller_create(context, NULL, &poller) ||
      srd_endpoint_create(poller, NULL, &alice) || srd_endpoint_create(poller, NULL, &bob) ||
      srd_endpoint_address(bob, &address) || srd_peer_resolve(alice, &address, &peer) ||
      srd_send(alice, peer, &(srd_iov){"hello", 5}, 1, NULL)) return puts(srd_last_error()), 1;
  while (done.op != SRD_OP_RECEIVE) if (srd_poller_wait(poller, &done, 1, UINT64_MAX) < 0 || done.status)
    return puts(done.status ? srd_error_string(done.status) : srd_last_error()), 1;
  printf("bob got: %.*s\n", (int)done.bytes, (const char *)done.data);
  srd_buffer_release(bob, done.buffer), srd_endpoint_destroy(alice), srd_endpoint_destroy(bob);
  return srd_poller_destroy(poller) || srd_context_close(context);
}
