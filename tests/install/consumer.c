/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program in C: one message between two endpoints of this process, over loopback. Built
 * against the installed library in every way that is offered. */
#include <srd/srd.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, srd_last_error());
  return 1;
}

int main(void) {
  static const char text[] = "installed";
  srd_context* context = NULL;
  srd_poller* poller = NULL;
  srd_endpoint* sender = NULL;
  srd_endpoint* receiver = NULL;
  if (srd_context_open("udp:127.0.0.1:0", NULL, &context) < 0) return failed("context");
  if (srd_poller_create(context, NULL, &poller) < 0) return failed("poller");
  if (srd_endpoint_create(poller, NULL, &receiver) < 0) return failed("receiver");
  if (srd_endpoint_create(poller, NULL, &sender) < 0) return failed("sender");

  srd_address address;
  srd_peer peer = SRD_NO_PEER;
  if (srd_endpoint_address(receiver, &address) < 0) return failed("address");
  if (srd_peer_resolve(sender, &address, &peer) < 0) return failed("peer");
  const srd_iov iov = {text, sizeof text};
  if (srd_send(sender, peer, &iov, 1, NULL) < 0) return failed("send");

  int sent = 0;
  int received = 0;
  for (int waits = 0; waits < 100 && !(sent && received); ++waits) {
    srd_completion done[8];
    const int count = srd_poller_wait(poller, done, 8, 100000000);
    if (count < 0) return failed("wait");
    for (int i = 0; i < count; ++i) {
      if (done[i].op == SRD_OP_SEND) sent = done[i].status == 0;
      if (done[i].op == SRD_OP_RECEIVE) {
        received = done[i].bytes == sizeof text && memcmp(done[i].data, text, sizeof text) == 0;
        if (srd_buffer_release(done[i].endpoint, done[i].buffer) < 0) return failed("release");
      }
    }
  }
  srd_endpoint_destroy(sender);
  srd_endpoint_destroy(receiver);
  if (srd_poller_destroy(poller) < 0) return failed("poller");
  if (srd_context_close(context) < 0) return failed("context");
  if (!(sent && received)) {
    fprintf(stderr, "no message within 10 s\n");
    return 1;
  }
  printf("received with OpenSRD %#x\n", (unsigned)srd_version());
  return 0;
}
