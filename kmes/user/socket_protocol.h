/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The protocol between a producer in userspace (socket_server.cc) and libkmes (socket_client.c),
 * over a Unix socket of type SOCK_SEQPACKET. Each request has one reply. Both have the byte order
 * of the machine, which is the same for both sides. A server that does not know an operation
 * replies EPROTO, and closes.
 *
 *   attach      cpu, or all      replies with two descriptors for each CPU, metadata then data, at
 *                                most 126 CPUs a packet; packets follow until all have come
 *   lease       cpu, or all      as attach. From then on the connection is a lease: while it lasts,
 *                                a consumer may be asleep on the buffers (E12). A connection can
 *                                be one lease, and serves nothing else
 *   lease with membarrier        as lease, from a consumer that keeps Promise::kMembarrier if the
 *                                reply requires it (producer.h). A producer that needs that promise
 *                                replies EOPNOTSUPP to attach and lease
 *   identify    cpu              the current buffer of the CPU, without descriptors (E19), and the
 *                                number of its next event
 *   emit        cpu, type_len    the type and the payload follow in the packet, or are in a memory
 *                                file that is passed with it
 *   emit batch  cpu, count       the entries and the bytes that they point to are in a memory file
 *                                that is passed with it; pointers are offsets in the file
 *                                (batch_file.c)
 *   emitters                     the processes that have emitted by the sockets of this producer.
 *                                `count` entries (kmes_socket_emitter) follow the reply in its
 *                                packet. The operation needs the privilege to attach
 */
#ifndef KMES_USER_SOCKET_PROTOCOL_H
#define KMES_USER_SOCKET_PROTOCOL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* The address of the producer, unless the environment sets another one. */
#define KMES_SOCKET_ENVIRONMENT "KMES_SOCKET"
#define KMES_SOCKET_DEFAULT_ADDRESS "/run/kmes/producer.socket"

#define KMES_SOCKET_MAGIC 0x534D4B31u
#define KMES_SOCKET_ALL_CPUS 0xFFFFFFFFu
#define KMES_SOCKET_CPUS_PER_PACKET 126u          /* the kernel passes 253 descriptors at a time */
#define KMES_SOCKET_INLINE_MAX_BYTES (128u << 10) /* a longer body of an emit is a file */

enum kmes_socket_operation {
    KMES_SOCKET_ATTACH = 1,
    KMES_SOCKET_IDENTIFY = 2,
    KMES_SOCKET_EMIT = 3,
    KMES_SOCKET_EMIT_BATCH = 4,
    KMES_SOCKET_LEASE = 5,
    KMES_SOCKET_LEASE_WITH_MEMBARRIER = 6,
    KMES_SOCKET_EMITTERS = 7,
};

/* Flags of the reply to a lease: grants and requests. */
#define KMES_SOCKET_IS_LEASE 1u      /* 0: too many leases; this is an attach */
#define KMES_SOCKET_NEEDS_BARRIER 2u /* for a lease with membarrier: keep the promise */

struct kmes_socket_request {
    __u32 magic;
    __u32 operation;
    __u32 cpu;        /* emits: the caller's CPU; the producer may use another */
    __u32 body_bytes; /* emit: type and payload. emit batch: bytes before the entries. otherwise
                         0 */
    __u32 type_len;   /* emit; otherwise 0 */
    __u32 count;      /* emit batch: entries; otherwise 0 */
};

struct kmes_socket_reply {
    __u32 magic;
    __s32 error;    /* 0, or a negative error number: then only `emitted` is valid */
    __u32 cpus;     /* CPUs of the producer */
    __u32 first;    /* attach: the CPU of the first two descriptors of this packet. identify: the
                       lower half of the number of the next event. An older producer has 0 in both
                       halves: unknown */
    __u32 count;    /* attach: CPUs in this packet; emitters: entries after this */
    __u32 emitted;  /* emit batch: entries before the bad one, or all. lease: KMES_SOCKET_IS_LEASE
                       and KMES_SOCKET_NEEDS_BARRIER. identify: the upper half. Otherwise 0 */
    __u64 capacity; /* bytes of each buffer */
    __u64 session;  /* E25 */
    __u64 device;   /* identify: of the metadata file */
    __u64 inode;
};

/* A process that has emitted. The first entry is the sum of those that have ended, and of those
 * that were silent for longest if there are too many. */
struct kmes_socket_emitter {
    __u32 process; /* its number for the producer; 0: it has none there. Of the sum: 0 */
    __u32 user;
    __u64 emitters; /* 1, or the number of processes in the sum */
    __u64 events;
    __u64 bytes;   /* of the whole events */
    __u64 refused; /* calls with an error */
};

#define KMES_SOCKET_EMITTERS_MAX 257u

KMES_STATIC_ASSERT(sizeof(struct kmes_socket_emitter) == 40, "an emitter has no holes");
KMES_STATIC_ASSERT(sizeof(struct kmes_socket_request) == 24, "a request has no holes");
KMES_STATIC_ASSERT(sizeof(struct kmes_socket_reply) == 56, "a reply has no holes");

/*
 * Parses the address `text`: a path, or an abstract name if it begins with '@'. Returns 0, -EINVAL
 * for an empty one, or -ENAMETOOLONG.
 */
int kmes_socket_address(const char* text, struct sockaddr_un* address, socklen_t* length);

KMES_EXTERN_C_END

#endif
