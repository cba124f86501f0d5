/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program that only knows TCP, makes its TCP sockets MPTCP sockets: iperf3 3.12
 * has no option for it. Used to compare with MPTCP, never by OpenSRD itself.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>

#include <dlfcn.h>
#include <stddef.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int socket(int domain, int type, int protocol) {
  typedef int (*socket_function)(int, int, int);
  socket_function next = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "socket");
  const int is_inet = domain == AF_INET || domain == AF_INET6;
  const int is_stream = (type & 0xf) == SOCK_STREAM; /* the rest are flags */
  const int is_tcp = protocol == 0 || protocol == IPPROTO_TCP;
  return next(domain, type, is_inet && is_stream && is_tcp ? IPPROTO_MPTCP : protocol);
}
