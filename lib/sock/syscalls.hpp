// SPDX-License-Identifier: Apache-2.0
// The system calls whose refusals the socket drivers must survive, as a replaceable table.
// Production uses kernel_syscalls(); tests pass a table that fails on purpose, because no kernel at
// hand refuses on demand ("accepts UDP_SEGMENT, then fails the send").
#pragma once

#include <sys/socket.h>

#include <ctime>

namespace srd::sock {

struct Syscalls {
  ssize_t (*recvmsg)(int fd, msghdr* message, int flags);
  int (*recvmmsg)(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
  int (*sendmmsg)(int fd, mmsghdr* messages, unsigned count, int flags);
  ssize_t (*sendmsg)(int fd, const msghdr* message, int flags);
  int (*setsockopt)(int fd, int level, int name, const void* value, socklen_t bytes);
  int (*clock_gettime)(clockid_t clock, timespec* now);  ///< of the wall clock, which may step
};

inline const Syscalls& kernel_syscalls() noexcept {
  static constexpr Syscalls kTable{&::recvmsg, &::recvmmsg,   &::sendmmsg,
                                   &::sendmsg, &::setsockopt, &::clock_gettime};
  return kTable;
}

}  // namespace srd::sock
