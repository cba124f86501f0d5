/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server in a plain epoll loop of its own: the poller is one descriptor among others (here
 * a signalfd, so that Ctrl-C ends it cleanly). Usage: epoll_echo [ADDRESS:PORT], default
 * 127.0.0.1:0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srd/srd.h"

/* An answer that is being sent, or waits because the queue was full. */
struct echo {
  struct echo* next;
  srd_peer peer;
  size_t bytes;
  char data[];
};

struct server {
  srd_poller* poller;
  srd_endpoint* endpoint;
  struct echo* waiting;
};

static int fail(const char* what) {
  fprintf(stderr, "epoll_echo: %s\n", what);
  return 1;
}

/* Returns 0, or -EAGAIN: try later. Other failures end this answer. */
static int send_echo(struct server* server, struct echo* echo) {
  const srd_iov piece = {echo->data, echo->bytes};
  srd_send_options options = SRD_SEND_OPTIONS_INIT;
  options.user_data = (uintptr_t)echo; /* comes back when the payload may be freed */
  const int status = srd_send(server->endpoint, echo->peer, &piece, 1, &options);
  if (status == 0 || status == -EAGAIN) return status;
  fail(srd_last_error());
  free(echo);
  return 0;
}

static void send_waiting(struct server* server) {
  while (server->waiting != NULL) {
    struct echo* echo = server->waiting;
    server->waiting = echo->next;
    if (send_echo(server, echo) == -EAGAIN) {
      server->waiting = echo;
      return;
    }
  }
}

static void handle(struct server* server, const srd_completion* done) {
  if (done->op == SRD_OP_SEND) {
    if (done->status < 0) fail(srd_error_string(done->status));
    free((struct echo*)(uintptr_t)done->user_data);
  } else if (done->op == SRD_OP_RECEIVE) {
    struct echo* echo = malloc(sizeof *echo + done->bytes);
    if (echo != NULL) {
      echo->peer = done->peer;
      echo->bytes = done->bytes;
      srd_buffer_copy(done->endpoint, done->buffer, 0, echo->data, done->bytes);
      echo->next = server->waiting;
      server->waiting = echo;
    }
    srd_buffer_release(done->endpoint, done->buffer);
  }
}

/* Everything that can be done now; afterwards the poller's descriptor tells when there is more. */
static int make_progress(struct server* server) {
  srd_completion done[64];
  int count = 0;
  int pending = 1;
  while (pending == 1) {
    count = srd_poller_poll(server->poller, done, 64);
    for (int i = 0; i < count; ++i) handle(server, &done[i]);
    send_waiting(server);
    pending = srd_poller_arm(server->poller);
  }
  return count < 0 ? count : pending;
}

static int run(struct server* server, int signals) {
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event on_srd = {.events = EPOLLIN, .data.fd = srd_poller_fd(server->poller)};
  struct epoll_event on_signal = {.events = EPOLLIN, .data.fd = signals};
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, on_srd.data.fd, &on_srd) != 0 ||
      epoll_ctl(loop, EPOLL_CTL_ADD, signals, &on_signal) != 0) {
    return fail(strerror(errno));
  }
  for (;;) {
    struct epoll_event event;
    if (make_progress(server) < 0) return fail(srd_last_error());
    const int count = epoll_wait(loop, &event, 1, -1);
    if (count == 1 && event.data.fd == signals) break;
    if (count < 0 && errno != EINTR) return fail(strerror(errno));
  }
  close(loop);
  return 0;
}

int main(int argc, char** argv) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);

  srd_context* context;
  struct server server = {0};
  srd_address address;
  srd_endpoint_config config = SRD_ENDPOINT_CONFIG_INIT;
  config.bind = &address;
  char text[64];
  if (srd_address_parse(argc > 1 ? argv[1] : "127.0.0.1:0", &address) < 0 ||
      srd_context_open("udp:", NULL, &context) < 0 ||
      srd_poller_create(context, NULL, &server.poller) < 0 ||
      srd_endpoint_create(server.poller, &config, &server.endpoint) < 0 ||
      srd_endpoint_address(server.endpoint, &address) < 0 ||
      srd_address_format(&address, text, sizeof text) < 0) {
    return fail(srd_last_error());
  }
  printf("listening on %s\n", text);
  fflush(stdout);
  const int status = run(&server, signals);
  srd_endpoint_destroy(server.endpoint); /* drops what is not sent yet, and tells the peers */
  while (server.waiting != NULL) {
    struct echo* next = server.waiting->next;
    free(server.waiting);
    server.waiting = next;
  }
  srd_poller_destroy(server.poller);
  srd_context_close(context);
  return status;
}
