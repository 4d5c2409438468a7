/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of libkmes share. Everything here returns 0 or a negative error number.
 */
#ifndef KMES_USER_LIBKMES_PARTS_H
#define KMES_USER_LIBKMES_PARTS_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* ENOSYS: there is no such call. EPERM may be the word of a container's filter: see libkmes.h. */
static inline bool kmes_call_is_absent(int error) {
    return error == -ENOSYS || error == -EPERM;
}

/* What the caller gets after all ways were tried, the call with `call_error`, the last way with
 * `error`. */
static inline int kmes_last_word(int call_error, int error) {
    return error == -ENOSYS ? call_error : error;
}

/* Bytes that an mmap of `fd` can be given without SIGBUS: a regular file ends where it ends; what
 * is none says nothing. -EINVAL where it is too short. (libkmes.c) */
int kmes_check_file_length(int fd, __u64 bytes);

/* The reply to an attach over the socket: `cpus` pairs of descriptors, the caller's. */
struct kmes_socket_attachment {
    int* metadata_fds;
    int* data_fds;
    __u32 count; /* pairs */
    __u64 capacity;
    __u64 session;
};

/* Which buffer a CPU writes to now. */
struct kmes_socket_identity {
    __u64 device;
    __u64 inode;
    __u64 session;
    __u32 cpus;
};

/*
 * One request each, over a connection of its own (socket_client.c). -ENOSYS: nobody listens; -EPERM
 * where the permissions of the socket say so; -EPROTO for an answer that is none; -ETIMEDOUT.
 * `cpu` may be KMES_SOCKET_ALL_CPUS for attach.
 */
int kmes_socket_attach(__u32 cpu, struct kmes_socket_attachment* attachment);
int kmes_socket_identify(__u32 cpu, struct kmes_socket_identity* identity);
int kmes_socket_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);
/* *emitted is written in any case. */
int kmes_socket_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

/*
 * A memory file with the `count` (1..256) entries that lie, or do not, at `entries`, and behind
 * them what they point to, for whoever serves the batch: see batch_file.c. Its descriptor, and
 * where the entries begin in it; or a negative error number, never -EFAULT.
 */
int kmes_batch_file_make(const struct kmes_emit_entry* entries, __u32 count, __u32* entries_offset);

/* Closes what is left (>= 0) of the descriptors, and frees. */
void kmes_socket_attachment_free(struct kmes_socket_attachment* attachment);

/*
 * The table of data descriptors (data_table.c): for each metadata descriptor that kmes_attach has
 * given away, the one of its data, by device and inode.
 */
/* The table takes `data_fd`. -ENOMEM, -EBADF: it does not. */
int kmes_data_table_add(int metadata_fd, int data_fd, __u64 capacity_bytes);
/* A new descriptor of the data that belongs to the buffer of `fd`; *capacity_bytes is the buffer's.
 * -ENOENT: `fd` is none of the table's; -EBADF, -EMFILE. */
int kmes_data_table_find(int fd, __u64* capacity_bytes);
/* Closes the data of every buffer whose metadata descriptor is not open any more. */
void kmes_data_table_sweep(void);
/* Entries, for tests. */
unsigned kmes_data_table_entries(void);

KMES_EXTERN_C_END

#endif
