/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSRD: stable C ABI (C99).
 *
 * Returns: >= 0 success or a count; < 0 a negated error: errno where one fits, else SRD_ERR_*.
 * srd_last_error() then tells, in words, argument, value, limit and remedy.
 *
 * Structs that may grow start with struct_bytes = sizeof, as the caller was compiled; the *_INIT
 * macros set it. A program built with an older srd.h works with a newer library, and one built with
 * a newer srd.h with an older library as long as it uses nothing that is new: an unknown option
 * that is not 0 is refused, what an older library does not know it fills with 0. In a configuration
 * 0 means "the default". Unknown flags are refused.
 *
 * [P] = only the thread that drives the poller (any thread if the poller is SRD_POLLER_SHARED);
 * [A] = any thread. Nothing throws; only a failed internal check ends the process. After fork()
 * every call in the child on an object of the parent is -EPERM and touches nothing.
 *
 * A message is the unit of delivery. A success completion means that the peer's endpoint accepted
 * the message and hands it to the application there exactly once while that endpoint lives. A
 * failure completion means delivery unknown, but never twice. Messages are not ordered.
 */
#ifndef SRD_SRD_H
#define SRD_SRD_H

#include <stddef.h>
#include <stdint.h>

#if defined(SRD_BUILD)
#define SRD_API __attribute__((visibility("default")))
#else
#define SRD_API
#endif
#ifdef __cplusplus
#define SRD_NOEXCEPT noexcept
extern "C" {
#else
#define SRD_NOEXCEPT
#endif

typedef struct srd_context srd_context;   /* an opened device */
typedef struct srd_poller srd_poller;     /* one thread's progress engine */
typedef struct srd_endpoint srd_endpoint; /* one local address that talks to many peers */
typedef uint32_t srd_peer;                /* a remote endpoint, index within one endpoint */
typedef uint64_t srd_buffer;              /* received message on loan; 0 = none */

#define SRD_NO_PEER UINT32_MAX

/* Errors beyond errno; the C++ name of each is in srd/error.hpp with its meaning. */
enum {
  SRD_ERR_PEER_UNREACHABLE = 10001,
  SRD_ERR_PEER_RESTARTED = 10002,
  SRD_ERR_PEER_CLOSED = 10003,
  SRD_ERR_CONTEXT_LOST = 10004,
  SRD_ERR_NO_SUCH_PORT = 10005, /* reserved: no peer says so yet */
  SRD_ERR_VERSION_MISMATCH = 10006,
  SRD_ERR_PEER_REFUSED = 10007,
  SRD_ERR_INTERNAL = 10099
};

/* Address of an endpoint. family: 0 none, 4, 6. port: host byte order. bytes: network order, IPv4
 * in the first four. scope: interface index of a link-local IPv6 address. aux: driver-specific
 * (queue pair number and key), else 0. */
typedef struct srd_address {
  uint8_t family;
  uint8_t reserved;
  uint16_t port;
  uint32_t scope;
  uint8_t bytes[16];
  uint64_t aux;
} srd_address;

/* A piece of a message, in the layout of struct iovec; its size never changes. data may be NULL if
 * bytes is 0. (Devices that send from registered memory only will find the registration by the
 * address: srd_iov has no field for it, and srd_send_options can grow.) */
typedef struct srd_iov {
  const void* data;
  size_t bytes;
} srd_iov;

/* ---- configuration ---- */

/* Of srd_context_open(). Nothing can be chosen yet: options of the device are in its string. */
typedef struct srd_context_config {
  size_t struct_bytes;
  uint64_t flags; /* none defined */
} srd_context_config;

#define SRD_CONTEXT_CONFIG_INIT \
  { sizeof(srd_context_config), 0 }

enum {
  SRD_POLLER_SHARED = 1 /* calls from any thread; a lock inside. srd_poller_poll() on a poller that
                           another thread is driving returns -EBUSY at once, and that thread looks
                           at the queues again before it returns */
};

/* Of srd_poller_create(). flags: SRD_POLLER_SHARED. */
typedef struct srd_poller_config {
  size_t struct_bytes;
  uint64_t flags;
  uint32_t spin_us;  /* srd_poller_wait() polls this long before it sleeps; default 0 */
  uint32_t reserved; /* 0 */
} srd_poller_config;

#define SRD_POLLER_CONFIG_INIT \
  { sizeof(srd_poller_config), 0, 0, 0 }

/* Of srd_endpoint_create(). docs/TUNING.md has ranges and effects. */
typedef struct srd_endpoint_config {
  size_t struct_bytes;
  uint64_t flags;
  const srd_address* bind;     /* NULL: the address in the device string */
  const uint8_t* endpoint_id;  /* 16 bytes, stable over restarts; NULL: random */
  uint16_t paths;              /* paths per peer; default: the device string's, else 32 */
  uint16_t max_ack_delay_us;   /* longest hold of an ACK, told to peers; default 100 */
  uint32_t max_message_bytes;  /* longest message accepted; default 16 MiB */
  uint64_t receive_pool_bytes; /* memory for messages not yet released; default 64 MiB */
  uint32_t max_peers;          /* remote endpoints at once; default 1024 */
  uint32_t max_sends;          /* messages queued or in flight at once; default 8192 */
  uint32_t peer_timeout_ms;    /* silence with data outstanding until the peer is lost; 2000 */
  uint32_t connect_timeout_ms; /* no answer to the first packets; default 3000 */
} srd_endpoint_config;

#define SRD_ENDPOINT_CONFIG_INIT \
  { sizeof(srd_endpoint_config), 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0 }

/* ---- sending ---- */

enum {
  SRD_SEND_COPY = 1,       /* payload is copied now and may be reused at once; at most
                              srd_endpoint_limits.copy_bytes_max */
  SRD_SEND_UNSIGNALED = 2, /* no completion on success; failures are reported all the same */
  SRD_SEND_ONE_PATH = 4    /* hint: keep all its datagrams on one path (lower reordering) */
};

typedef struct srd_send_options {
  size_t struct_bytes;
  uint64_t user_data; /* comes back in the completion */
  uint32_t flags;
  uint16_t channel;  /* told to the receiver; demultiplexing only, not ordered */
  uint16_t reserved; /* 0 */
} srd_send_options;

#define SRD_SEND_OPTIONS_INIT \
  { sizeof(srd_send_options), 0, 0, 0, 0 }

/* ---- completions ---- */

enum {
  SRD_OP_SEND = 1,    /* user_data of the send; status 0 or a negated error; bytes sent */
  SRD_OP_RECEIVE = 2, /* a message: data, bytes, segment_count, buffer (give it back!) */
  SRD_OP_PEER = 3     /* peer state: status 0 = up, else why it was lost; the endpoint lives on */
};

typedef struct srd_completion { /* 64 bytes, one cache line; its size never changes */
  uint8_t op;
  uint8_t flags;
  uint16_t channel;
  int32_t status;
  srd_peer peer;
  uint32_t segment_count; /* > 1: walk with srd_buffer_segments(); data is the first piece */
  srd_endpoint* endpoint;
  uint64_t user_data;
  const void* data;
  size_t bytes; /* of the whole message */
  srd_buffer buffer;
  uint64_t reserved;
} srd_completion;

/* ---- what can be read ---- */

/* What holds for one endpoint; constant for its life. */
typedef struct srd_limits {
  size_t struct_bytes;
  uint32_t datagram_bytes_max; /* largest datagram of the device, without IP and UDP headers */
  uint32_t paths_max;          /* paths per peer */
  uint32_t max_message_bytes;  /* longest message sent or accepted */
  uint32_t copy_bytes_max;     /* longest message with SRD_SEND_COPY */
  uint32_t iov_max;            /* pieces of one send */
  uint32_t max_peers;          /* remote endpoints at once */
  uint32_t max_sends;          /* messages queued or in flight at once */
  uint32_t can_sleep;          /* 1: srd_poller_fd() and srd_poller_wait() work */
} srd_limits;

#define SRD_LIMITS_INIT \
  { sizeof(srd_limits), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Free-running counters of one endpoint. docs/API.md lists the meaning of each. */
typedef struct srd_stats {
  size_t struct_bytes;
  uint64_t tx_messages, tx_message_bytes; /* completed with success */
  uint64_t tx_failed_messages;
  uint64_t rx_messages, rx_message_bytes; /* handed to the application */
  uint64_t tx_datagrams, tx_bytes;        /* all types, retransmissions included */
  uint64_t rx_datagrams, rx_bytes;
  uint64_t tx_acks, rx_acks;            /* ACK datagrams */
  uint64_t tx_retransmits, tx_spurious; /* datagrams sent again; of them needlessly */
  uint64_t losses_fifo, losses_rack;    /* datagrams declared lost, by rule */
  uint64_t tail_probes, rto_probes;
  uint64_t rx_duplicates, rx_ce;
  uint64_t rx_beyond_window, rx_bad_check, rx_malformed, rx_unknown_context, rx_no_memory;
  uint64_t rx_rejected_messages, tx_rejected_messages;
  uint64_t path_rerolls, path_suspects;
  uint64_t peers_up, peers_lost, peer_restarts;
  uint64_t rx_host_drops, tx_refused, icmp_errors;              /* from the driver */
  uint64_t receive_pool_used_bytes, peers_active, sends_active; /* now */
  uint64_t tx_piggybacks; /* acknowledgements that rode on data */
  uint64_t late_timers, rx_impossible_acks, rx_dropped_handshakes;
  uint64_t gso_fallbacks, rx_starved, rx_truncated; /* from the driver */
  uint64_t paths_refused; /* from the driver: paths not opened for want of a descriptor */
} srd_stats;

enum { SRD_PEER_IDLE = 0, SRD_PEER_CONNECTING = 1, SRD_PEER_UP = 2, SRD_PEER_LOST = 3 };

enum { SRD_PATH_UNTRIED = 0, SRD_PATH_GOOD = 1, SRD_PATH_SUSPECT = 2, SRD_PATH_CLOSED = 3 };

/* One path of a peer. Grows at its end; srd_peer_paths() is told its size. Counters are
 * free-running since the peer's context was opened, over all generations. */
typedef struct srd_path_info {
  uint32_t slot;       /* number of the path, 0 to srd_peer_info.paths - 1 */
  uint32_t state;      /* SRD_PATH_* */
  uint32_t generation; /* of the way that the slot stands for, mod 16: changes with each re-roll */
  uint32_t reserved;
  srd_address local, remote;       /* the 5-tuple; family 0 while the path is closed */
  uint64_t tx_datagrams, tx_bytes; /* data sent over it, retransmissions and headers included */
  uint64_t acked_bytes;            /* payload of it that was acknowledged */
  uint64_t lost_datagrams;         /* sent over it and declared lost */
  uint64_t retransmits;            /* datagrams sent over it that had been sent before */
  uint64_t ce_datagrams;           /* sent over it and marked by a congested switch */
  uint64_t rerolls;                /* times it was replaced by another way */
  uint64_t rx_datagrams;           /* received over it, of all types */
  uint64_t rtt_min_ns, rtt_ns;     /* smallest seen on this generation; smoothed. 0: none yet */
  uint64_t in_flight_bytes;        /* now: sent over it, neither acknowledged nor lost */
  uint64_t rate_bytes_per_s;       /* at which data was acknowledged lately */
} srd_path_info;

/* State of one peer, and what was counted since its handle was made. */
typedef struct srd_peer_info {
  size_t struct_bytes;
  srd_address address;
  uint32_t state;               /* SRD_PEER_* */
  uint32_t paths;               /* slots that srd_peer_paths() tells of */
  uint32_t datagram_bytes;      /* negotiated; 0 before the handshake */
  uint32_t in_flight_datagrams; /* sent, neither acknowledged nor lost */
  uint64_t window_bytes;        /* payload that may be in flight */
  uint64_t in_flight_bytes;     /* payload that is */
  uint64_t rate_bytes_per_s;    /* that the window stands for */
  uint64_t rtt_min_ns, rtt_ns;  /* smallest of the last seconds; smoothed. 0: none yet */
  uint64_t rtt_var_ns;          /* mean deviation */
  uint64_t queued_messages;     /* not begun yet */
  uint64_t hello_tries;         /* HELLO datagrams sent since the last contact */
  /* Free-running counters of this peer; the names mean what they mean in srd_stats. */
  uint64_t tx_messages, tx_message_bytes, tx_failed_messages;
  uint64_t rx_messages, rx_message_bytes;
  uint64_t tx_datagrams, tx_bytes, rx_datagrams, rx_bytes;
  uint64_t tx_acks, rx_acks, tx_piggybacks;
  uint64_t tx_retransmits, tx_spurious, losses_fifo, losses_rack, tail_probes, rto_probes;
  uint64_t rx_duplicates, rx_ce, rx_rejected_messages, tx_rejected_messages;
  uint64_t path_rerolls, path_suspects, peer_restarts;
  uint64_t payload_bytes; /* of a message in one datagram; 0 before the handshake */
} srd_peer_info;

/* ---- functions ---- */

/* Opens a device: "udp:", "udp:0.0.0.0:7000?paths=16", "udp:[::]:7000" (docs/TUNING.md lists all
 * options). config may be NULL. -ENODEV unknown driver, -EINVAL bad string. Allocates. [A] */
SRD_API int srd_context_open(const char* device, const srd_context_config* config,
                             srd_context** out) SRD_NOEXCEPT;
/* After its pollers are destroyed; -EBUSY while one lives. NULL is allowed. [A] */
SRD_API int srd_context_close(srd_context* context) SRD_NOEXCEPT;

/* config may be NULL. -EMFILE (it needs 3 descriptors), -ENOMEM, -EINVAL. Allocates. [A] */
SRD_API int srd_poller_create(srd_context* context, const srd_poller_config* config,
                              srd_poller** out) SRD_NOEXCEPT;
/* After its endpoints are destroyed; -EBUSY while one lives. [P] */
SRD_API int srd_poller_destroy(srd_poller* poller) SRD_NOEXCEPT;
/* Makes progress on all its endpoints and harvests up to `capacity` completions (may be 0: progress
 * only). Never blocks. Returns their number; -EBUSY see SRD_POLLER_SHARED. [P] */
SRD_API int srd_poller_poll(srd_poller* poller, srd_completion* out, size_t capacity) SRD_NOEXCEPT;
/* Sends what is queued without receiving or harvesting. [P] */
SRD_API int srd_poller_flush(srd_poller* poller) SRD_NOEXCEPT;
/* Polls, and sleeps until there is a completion, a wake, or `timeout_ns` passed (UINT64_MAX: for
 * ever). Returns the number of completions, 0 on timeout or wake. -ENOTSUP: the device cannot
 * sleep. -EINVAL: capacity is 0. -EINTR is never returned: a signal ends the wait with 0. [P] */
SRD_API int srd_poller_wait(srd_poller* poller, srd_completion* out, size_t capacity,
                            uint64_t timeout_ns) SRD_NOEXCEPT;
/* For foreign event loops: 0 = may sleep until srd_poller_fd() is readable; 1 = work pending, call
 * srd_poller_poll() first. -ENOTSUP: the device cannot sleep. [P] */
SRD_API int srd_poller_arm(srd_poller* poller) SRD_NOEXCEPT;
/* One pollable descriptor for arrivals, timers and wakes; owned by the poller. -ENOTSUP. [A] */
SRD_API int srd_poller_fd(const srd_poller* poller) SRD_NOEXCEPT;
/* Ends a current or the next srd_poller_wait(), makes the fd readable. Async-signal-safe.
 * -ENOTSUP: the device cannot sleep. [A] */
SRD_API int srd_poller_wake(srd_poller* poller) SRD_NOEXCEPT;

/* Opens sockets (or queues) and takes all memory this endpoint will ever use. config may be NULL.
 * -EINVAL, -EADDRINUSE, -EADDRNOTAVAIL, -EPERM (a port below 1024), -ENOTSUP,
 * -ENOMEM, -EMFILE. [P] */
SRD_API int srd_endpoint_create(srd_poller* poller, const srd_endpoint_config* config,
                                srd_endpoint** out) SRD_NOEXCEPT;
/* Tells peers (CLOSE), drops what is queued without completions, takes back loaned messages. Wait
 * for the completions first if they matter. No other call on the endpoint may run meanwhile, on a
 * shared poller neither. [P] */
SRD_API void srd_endpoint_destroy(srd_endpoint* endpoint) SRD_NOEXCEPT;
/* The bound address with its real port. -EINVAL. [A] */
SRD_API int srd_endpoint_address(const srd_endpoint* endpoint, srd_address* out) SRD_NOEXCEPT;
/* -EINVAL: struct_bytes is not set. [A] */
SRD_API int srd_endpoint_limits(const srd_endpoint* endpoint, srd_limits* out) SRD_NOEXCEPT;
/* Takes no lock and holds nobody up. -EINVAL: struct_bytes is not set. [A] */
SRD_API int srd_endpoint_stats(const srd_endpoint* endpoint, srd_stats* out) SRD_NOEXCEPT;
/* What has gone wrong at this endpoint and can be mended, a line each with the command that mends
 * it (a socket buffer limit that made this host drop datagrams); "" if nothing. Each is also logged
 * once, as a warning. Writes a NUL-terminated text, cut at `capacity` bytes; returns the length of
 * the whole. -EINVAL, -ENOMEM. Allocates. [A] */
SRD_API int srd_endpoint_advice(const srd_endpoint* endpoint, char* out,
                                size_t capacity) SRD_NOEXCEPT;

/* A handle for a remote endpoint; sends nothing. The same address gives the same handle. A peer
 * that talks to us first has a handle, too: the one in its completions. -EHOSTUNREACH, -ENOMEM,
 * -EINVAL (port 0, a wildcard address, an unknown family). [P] */
SRD_API int srd_peer_resolve(srd_endpoint* endpoint, const srd_address* address,
                             srd_peer* out) SRD_NOEXCEPT;
/* Drops the peer; what is outstanding to it completes with -ECANCELED. Its handle may be reused.
 * The peer is not told: what it sends from now on ends there as after a lost context. [P] */
SRD_API int srd_peer_forget(srd_endpoint* endpoint, srd_peer peer) SRD_NOEXCEPT;
/* State and counters of a peer. Waits for the end of the call that the poller's thread is in, never
 * for its sleep, and holds the next one up: microseconds. -ENOENT, -EINVAL. [A] */
SRD_API int srd_peer_query(const srd_endpoint* endpoint, srd_peer peer,
                           srd_peer_info* out) SRD_NOEXCEPT;
/* Fills up to `capacity` entries of `entry_bytes` = sizeof(srd_path_info) each; returns the number
 * of paths the peer has. Waits as srd_peer_query() does. -ENOENT, -EINVAL. O(paths), with a look at
 * the routing table for each on a wildcard socket. [A] */
SRD_API int srd_peer_paths(const srd_endpoint* endpoint, srd_peer peer, srd_path_info* out,
                           size_t capacity, size_t entry_bytes) SRD_NOEXCEPT;

/* Queues one message of up to iov_max pieces. The payload belongs to the library until the
 * completion, unless SRD_SEND_COPY. options may be NULL. 0 bytes are a valid message. -EAGAIN: the
 * queue is full and nothing was queued; poll, then retry. -EMSGSIZE: over max_message_bytes here
 * or, if it is known already, at the peer (else the completion says so), or over copy_bytes_max.
 * -ENOENT: no such peer. -EINVAL: iov or options. Goes out with the next poll or flush. O(1) +
 * O(bytes) with SRD_SEND_COPY. [P] */
SRD_API int srd_send(srd_endpoint* endpoint, srd_peer peer, const srd_iov* iov, size_t iov_count,
                     const srd_send_options* options) SRD_NOEXCEPT;

/* The pieces of a received message, in order, as many as fit; returns their number. Valid until it
 * is released. -EINVAL: not on loan. O(pieces). [P] */
SRD_API int srd_buffer_segments(const srd_endpoint* endpoint, srd_buffer buffer, srd_iov* out,
                                size_t capacity) SRD_NOEXCEPT;
/* Copies up to `bytes` bytes of it, from `offset`; returns how many, 0 behind its end. -EINVAL: not
 * on loan. [P] */
SRD_API int64_t srd_buffer_copy(const srd_endpoint* endpoint, srd_buffer buffer, size_t offset,
                                void* out, size_t bytes) SRD_NOEXCEPT;
/* Gives the memory back and credit to the sender. Required for each SRD_OP_RECEIVE. -EINVAL: not on
 * loan (released twice). [P] */
SRD_API int srd_buffer_release(srd_endpoint* endpoint, srd_buffer buffer) SRD_NOEXCEPT;

/* "192.0.2.1:7000", "[2001:db8::1]:7000", "[fe80::1%eth0]:7000"; a missing port is 0; no name
 * resolution. -EINVAL. [A] */
SRD_API int srd_address_parse(const char* text, srd_address* out) SRD_NOEXCEPT;
/* Writes a NUL-terminated text; returns its length or -ENOMEM if it does not fit (64 always do).
 * [A] */
SRD_API int srd_address_format(const srd_address* address, char* out, size_t capacity) SRD_NOEXCEPT;

/* One device found on this host, or a driver that cannot work here and why. Grows at its end. */
typedef struct srd_device_info {
  char device[64]; /* string for srd_context_open(), "" if not usable */
  char driver[16];
  char description[128];
  char capabilities[256]; /* words: "gso" what the driver makes use of here, "no-gro" what it would
                             and the kernel refuses. docs/DRIVERS.md has those of each driver */
  char advice[1024]; /* what is missing and the command that fixes it, a line each; "" if nothing */
  uint32_t usable;
  uint32_t datagram_bytes_max, paths_max, rx_buffer_bytes;
} srd_device_info;

/* Fills up to `capacity` entries of `entry_bytes` = sizeof(srd_device_info) each; returns how many
 * there are. -EINVAL, -ENOMEM. Opens each driver once, which takes milliseconds. Allocates. [A] */
SRD_API int srd_devices(srd_device_info* out, size_t capacity, size_t entry_bytes) SRD_NOEXCEPT;

/* Text of a status, static storage. [A] */
SRD_API const char* srd_error_string(int status) SRD_NOEXCEPT;
/* What was wrong with the last failed call of this thread: argument, value, limit, remedy. Valid
 * until the next failing call of this thread. Never NULL. [A] */
SRD_API const char* srd_last_error(void) SRD_NOEXCEPT;

enum { SRD_LOG_ERROR = 0, SRD_LOG_WARNING = 1, SRD_LOG_INFO = 2, SRD_LOG_DEBUG = 3 };

/* Where the library's few messages go; default: warnings and worse to standard error. `sink` NULL:
 * nowhere. Environment SRD_LOG=error|warning|info|debug sets the level at start. When this returns,
 * the sink before is not in use any more. Of each level messages in excess of 10/s, after a
 * burst of 50, are left out and counted. A sink is called by the thread that noticed something,
 * inside a call that it made; it may call this function and others that read [A]. [A] */
SRD_API void srd_log_set(int level, void (*sink)(void* user, int level, const char* text),
                         void* user) SRD_NOEXCEPT;
/* Of the library at run time: 0x00MMmmpp, major, minor, patch. [A] */
SRD_API uint32_t srd_version(void) SRD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
