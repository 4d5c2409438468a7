/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a producer in userspace (socket_server.cc) and libkmes (socket_client.c) say to each other
 * over a Unix socket of type SOCK_SEQPACKET. One request, then its reply, in the machine's byte
 * order; both sides are on one machine. Knows no ring. A server that does not know an operation
 * replies EPROTO, and closes.
 *
 *   attach      cpu, or all      replies with two descriptors for each CPU, metadata then data, at
 *                                most 126 CPUs a packet; packets follow until all have come
 *   lease       cpu, or all      as attach. The connection is a lease from then on: while it lasts,
 *                                somebody may be asleep on the buffers (E12). A connection can be
 *                                one lease, and serves nothing else
 *   lease with membarrier        as lease, from a consumer that keeps Promise::kMembarrier where
 *                                the reply says so (producer.h). A producer that needs that promise
 *                                answers attach and lease with EOPNOTSUPP
 *   identify    cpu              which buffer the CPU writes to now, without descriptors (E19)
 *   emit        cpu, type_len    the type and the payload follow in the packet, or lie in a memory
 *                                file that is passed with it
 *   emit batch  cpu, count       the entries and what they point to lie in a memory file that is
 *                                passed with it; pointers are offsets in the file (batch_file.c)
 */
#ifndef KMES_USER_SOCKET_PROTOCOL_H
#define KMES_USER_SOCKET_PROTOCOL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* Where a producer is looked for, unless the environment says otherwise. */
#define KMES_SOCKET_ENVIRONMENT "KMES_SOCKET"
#define KMES_SOCKET_DEFAULT_ADDRESS "/run/kmes/producer.socket"

#define KMES_SOCKET_MAGIC 0x534D4B31u
#define KMES_SOCKET_ALL_CPUS 0xFFFFFFFFu
#define KMES_SOCKET_CPUS_PER_PACKET 126u          /* the kernel passes 253 descriptors at a time */
#define KMES_SOCKET_INLINE_MAX_BYTES (128u << 10) /* a longer body of an emit comes as a file */

enum kmes_socket_operation {
    KMES_SOCKET_ATTACH = 1,
    KMES_SOCKET_IDENTIFY = 2,
    KMES_SOCKET_EMIT = 3,
    KMES_SOCKET_EMIT_BATCH = 4,
    KMES_SOCKET_LEASE = 5,
    KMES_SOCKET_LEASE_WITH_MEMBARRIER = 6,
};

/* What the reply to a lease grants and asks for. */
#define KMES_SOCKET_IS_LEASE 1u      /* not so where there are too many, and this is an attach */
#define KMES_SOCKET_NEEDS_BARRIER 2u /* lease with membarrier alone: the promise is to be kept */

struct kmes_socket_request {
    __u32 magic;
    __u32 operation;
    __u32 cpu;        /* of emits: where the caller runs; the producer may take another */
    __u32 body_bytes; /* emit: type and payload; emit batch: before the entries; else 0 */
    __u32 type_len;   /* emit; else 0 */
    __u32 count;      /* emit batch: entries; else 0 */
};

struct kmes_socket_reply {
    __u32 magic;
    __s32 error;    /* 0, or a negative error number: then only `emitted` is meant */
    __u32 cpus;     /* CPUs of the producer */
    __u32 first;    /* attach: the CPU of the first two descriptors of this packet */
    __u32 count;    /* attach: CPUs in this packet */
    __u32 emitted;  /* emit batch: entries before the bad one, or all. lease: KMES_SOCKET_IS_LEASE
                       and KMES_SOCKET_NEEDS_BARRIER. Else 0 */
    __u64 capacity; /* bytes, of each buffer */
    __u64 session;  /* E25 */
    __u64 device;   /* identify: of the metadata file */
    __u64 inode;
};

KMES_STATIC_ASSERT(sizeof(struct kmes_socket_request) == 24, "a request has no holes");
KMES_STATIC_ASSERT(sizeof(struct kmes_socket_reply) == 56, "a reply has no holes");

/*
 * The address that `text` means: a path, or an abstract name where it begins with '@'. 0, -EINVAL
 * for an empty one, -ENAMETOOLONG.
 */
int kmes_socket_address(const char* text, struct sockaddr_un* address, socklen_t* length);

KMES_EXTERN_C_END

#endif
