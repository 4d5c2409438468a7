/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of libkmes share. Everything here returns 0 or a negative error number.
 */
#ifndef KMES_USER_LIBKMES_PARTS_H
#define KMES_USER_LIBKMES_PARTS_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* Bytes that an mmap of `fd` can be given without SIGBUS: a regular file ends where it ends; what
 * is none says nothing. -EINVAL where it is too short. For descriptors of the kernel, which keeps
 * their length, and of the caller. (file_check.c) */
int kmes_check_file_length(int fd, __u64 bytes);

/* Whether the descriptor is open as this file. A program may close one that libkmes keeps, with all
 * its others, and open a file with its number. (file_check.c) */
bool kmes_fd_is(int fd, __u64 device, __u64 inode);

/*
 * Whether the two files of a buffer, which another process passed, can be mapped without SIGBUS at
 * any later access: memory files of plain pages, sealed against shrinking, the data also against
 * holes, all their pages there; the metadata not sealed against writing. -EPROTO where not. (What
 * is left: somebody makes a hole in the metadata, which consumers must be able to write, and the
 * kernel has no page for it.)
 */
int kmes_check_buffer_files(int metadata_fd, int data_fd, __u64 capacity_bytes);

/* The reply to an attach over the socket: `cpus` pairs of descriptors, the caller's. */
struct kmes_socket_attachment {
    int* metadata_fds;
    int* data_fds;
    int lease_fd; /* the connection, where it is a lease of all of them; else -1 */
    __u32 count;  /* pairs */
    __u64 capacity;
    __u64 session;
    bool needs_barrier; /* to a promise of membarrier: it is to be kept */
};

/* Which buffer a CPU writes to now. */
struct kmes_socket_identity {
    __u64 device;
    __u64 inode;
    __u64 session;
    __u32 cpus;
};

/* A producer answers at once, but for the time of a resize (E14). */
#define KMES_SOCKET_ANSWER_MS 30000u

/*
 * One request each, over a connection of its own (socket_client.c). -ENOSYS: nobody listens; -EPERM
 * where the permissions of the socket say so, or where another user serves an abstract name;
 * -EPROTO for an answer that is none, or files that kmes_check_buffer_files refuses; -ETIMEDOUT.
 * `cpu` may be KMES_SOCKET_ALL_CPUS for attach. identify waits for limit_ms at most.
 */
int kmes_socket_attach(__u32 cpu, struct kmes_socket_attachment* attachment);
/* The same, with the promise of socket_protocol.h; without it, -EOPNOTSUPP says that it is needed.
 */
int kmes_socket_attach_with_membarrier(__u32 cpu, struct kmes_socket_attachment* attachment);
int kmes_socket_identify(__u32 cpu, unsigned limit_ms, struct kmes_socket_identity* identity);
int kmes_socket_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);
/* *emitted is written in any case. */
int kmes_socket_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

/* The same over a connection of the caller, which serves one request at a time. */
int kmes_socket_connect(const char* address);
int kmes_socket_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len);
int kmes_socket_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted);

/*
 * A memory file with the `count` (1..256) entries that lie, or do not, at `entries`, and behind
 * them what they point to, for whoever serves the batch: see batch_file.c. Its descriptor, and
 * where the entries begin in it; or a negative error number, never -EFAULT.
 */
int kmes_batch_file_make(const struct kmes_emit_entry* entries, __u32 count, __u32* entries_offset);

/*
 * A lease: the connection of an attach, kept for as long as something that was attached to by it is
 * there (lease.c). NULL is a lease that was not to be had: the producer then takes somebody to be
 * asleep for ever. Not for several threads at a time.
 */
struct kmes_lease;
/* Takes `fd` (-1: NULL). NULL also without memory. */
struct kmes_lease* kmes_lease_make(int fd);
/* One holder more. */
struct kmes_lease* kmes_lease_hold(struct kmes_lease* lease);
/* One holder less; without the last one it ends. */
void kmes_lease_drop(struct kmes_lease* lease);
/* The producer's process, or a child of it, lives and has the connection. */
bool kmes_lease_is_held(const struct kmes_lease* lease);
/* How often this was called. */
unsigned kmes_lease_count_question(struct kmes_lease* lease);

struct kmes_reader_config;

/* After kmes_reader_by_libkmes: mappings are read-only. Such a reader must never ask for a wake
 * (kmes_reader_wait and kmes_reader_wait_begin write). */
void kmes_reader_make_read_only(struct kmes_reader_config* config);

/* Closes what is left (>= 0) of the descriptors, and frees. */
void kmes_socket_attachment_free(struct kmes_socket_attachment* attachment);

/*
 * The table of what kmes_attach has given away by the socket (data_table.c): for each metadata
 * descriptor, by device and inode, the data of its buffer; and what was mapped of it. Each of them
 * holds the lease of its attach.
 */
/* `data_fd` stays the caller's. -ENOMEM, -EBADF. */
int kmes_data_table_add(int metadata_fd, int data_fd, __u64 capacity_bytes,
                        struct kmes_lease* lease);
/* Maps the buffer of `fd`, as kmes_map. -ENOENT: `fd` is none of the table's; -EBADF, -EINVAL,
 * -ENOMEM. */
int kmes_data_table_map(int fd, __u64 capacity_bytes, void** base);
/* Before what it mapped is unmapped. */
void kmes_data_table_forget(const void* base);
/* The caller, who made the lease, does not hold it any more. */
void kmes_data_table_drop(struct kmes_lease* lease);
/* Forgets every buffer whose metadata descriptor is not open any more. */
void kmes_data_table_sweep(void);
/* Entries, for tests. */
unsigned kmes_data_table_entries(void);

KMES_EXTERN_C_END

#endif
