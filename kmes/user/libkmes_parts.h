/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that the files of libkmes share. Each returns 0 or a negative error number.
 */
#ifndef KMES_USER_LIBKMES_PARTS_H
#define KMES_USER_LIBKMES_PARTS_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* Checks that an mmap of `bytes` bytes of `fd` cannot raise SIGBUS: a regular file must be long
 * enough, other files are accepted. -EINVAL if it is too short. For descriptors of the kernel,
 * which keeps their length, and of the caller. (file_check.c) */
int kmes_check_file_length(int fd, __u64 bytes);

/* True if the descriptor is open as this file. A program may close a descriptor that libkmes keeps,
 * with all its others, and open a file with its number. (file_check.c) */
bool kmes_fd_is(int fd, __u64 device, __u64 inode);

/*
 * Checks the two files of a buffer that another process passed: no later access to a mapping may
 * raise SIGBUS. They must be memory files of plain pages, with all their pages, and sealed against
 * shrinking. The data must also be sealed against holes, and the metadata must not be sealed
 * against writing. Returns -EPROTO otherwise. One case remains: a process makes a hole in the
 * metadata, and the kernel has no page for it. Consumers must be able to write the metadata.
 */
int kmes_check_buffer_files(int metadata_fd, int data_fd, __u64 capacity_bytes);

/* The reply to an attach over the socket: `cpus` pairs of descriptors, owned by the caller. */
struct kmes_socket_attachment {
    int* metadata_fds;
    int* data_fds;
    int lease_fd; /* the connection, if it is a lease of all of them; otherwise -1 */
    __u32 count;  /* pairs */
    __u64 capacity;
    __u64 session;
    bool needs_barrier; /* after a promise of membarrier: the caller must keep it */
};

/* Identifies the current buffer of a CPU. */
struct kmes_socket_identity {
    __u64 device;
    __u64 inode;
    __u64 session;
    __u64 next_sequence; /* the number of its next event; 0: unknown */
    __u32 cpus;
};

/* A producer replies at once, except during a resize (E14). */
#define KMES_SOCKET_ANSWER_MS 30000u

/* A server with many connections may close one before it has read a request. Nothing was served
 * then, and the client connects again, at most so often. */
#define KMES_SOCKET_ATTEMPTS 4

/*
 * One request with these attempts. `connect` returns a descriptor or an error, which ends the
 * attempts. `request` uses the connection. Its -ENOSYS means that the connection ended before the
 * server had read the request, and begins the next attempt. Returns the last result.
 */
int kmes_socket_attempt(int (*connect)(void* call), int (*request)(void* call, int fd), void* call);

/*
 * One request each, over its own connection (socket_client.c). -ENOSYS: no process listens. -EPERM:
 * the permissions of the socket forbid it, or another user serves an abstract name. -EPROTO: the
 * reply is malformed, or kmes_check_buffer_files rejects the files. Others: -ETIMEDOUT, and for the
 * two emissions -ECONNRESET: the server ended after it had read the request, so it may have
 * emitted. For attach `cpu` may be KMES_SOCKET_ALL_CPUS. identify waits for at most limit_ms.
 */
int kmes_socket_attach(__u32 cpu, struct kmes_socket_attachment* attachment);
/* As kmes_socket_attach, with the promise of socket_protocol.h. Without it, -EOPNOTSUPP means that
 * the promise is needed. */
int kmes_socket_attach_with_membarrier(__u32 cpu, struct kmes_socket_attachment* attachment);
int kmes_socket_identify(__u32 cpu, unsigned limit_ms, struct kmes_socket_identity* identity);
/* kmes_socket_identify, and kmes_socket_attach with any operation of socket_protocol.h that
 * attaches one CPU, in two halves. Neither waits for the producer. `ask` returns the connection.
 * Call `take` when it is readable. It closes the connection, or keeps it as the lease. */
int kmes_socket_ask_identity(__u32 cpu);
int kmes_socket_take_identity(int fd, struct kmes_socket_identity* identity);
int kmes_socket_ask_attach(__u32 operation, __u32 cpu);
/* Returns the operation to try after -EPROTO: an older server knows fewer. 0: none is older. */
__u32 kmes_socket_older_attach(__u32 operation);
int kmes_socket_take_attach(int fd, __u32 operation, __u32 cpu,
                            struct kmes_socket_attachment* attachment);
struct kmes_socket_emitter; /* socket_protocol.h */

/* Returns the emitters: *count entries, 1 to KMES_SOCKET_EMITTERS_MAX. `emitters` has room for that
 * maximum. */
int kmes_socket_emitters(struct kmes_socket_emitter* emitters, __u32* count);
int kmes_socket_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);
/* *emitted is always written. */
int kmes_socket_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

/* As above, over a connection of the caller, which serves one request at a time. -ENOSYS: it ended
 * before the server read the request. */
int kmes_socket_connect(const char* address);
int kmes_socket_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len);
int kmes_socket_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted);

/*
 * Makes a memory file for the server of a batch. It contains the `count` (1..256) entries at
 * `entries`, as far as they can be read, and the bytes that they point to: see batch_file.c.
 * Returns its descriptor, and the offset of the entries in it, or a negative error number, never
 * -EFAULT.
 */
int kmes_batch_file_make(const struct kmes_emit_entry* entries, __u32 count, __u32* entries_offset);

/*
 * A lease: the connection of an attach, kept while anything that was attached by it exists
 * (lease.c). NULL means that no lease was available: the producer then assumes forever that a
 * consumer is asleep. At most one thread may use it at a time.
 */
struct kmes_lease;
/* Takes ownership of `fd` (-1: NULL). Also returns NULL without memory. */
struct kmes_lease* kmes_lease_make(int fd);
/* Adds a holder. */
struct kmes_lease* kmes_lease_hold(struct kmes_lease* lease);
/* Removes a holder. The lease ends with the last one. */
void kmes_lease_drop(struct kmes_lease* lease);
/* True if the producer's process, or a child of it, is alive and has the connection. */
bool kmes_lease_is_held(const struct kmes_lease* lease);
/* Returns how often this function was called. */
unsigned kmes_lease_count_question(struct kmes_lease* lease);
/*
 * Asks the producer of the lease for the current buffer of a CPU, as kmes_socket_identify, but by
 * kmes_pending_check: it waits rarely. -EINPROGRESS: no answer so far, after an earlier answer
 * without an error. The next call checks for the answer. An earlier error is returned again until
 * the answer comes. -ETIMEDOUT: no answer for a second.
 */
int kmes_lease_ask(struct kmes_lease* lease, __u32 cpu, struct kmes_socket_identity* identity);
/* True if kmes_lease_ask has a question without an answer. */
bool kmes_lease_is_asking(const struct kmes_lease* lease);

struct kmes_reader_config;

/* Call it after kmes_reader_by_libkmes: mappings are read-only. Such a reader must never ask for a
 * wake (kmes_reader_wait and kmes_reader_wait_begin write). */
void kmes_reader_make_read_only(struct kmes_reader_config* config);

/*
 * An attach of one CPU that a producer has not answered so far (pending_attach.c). While a thread
 * uses one, the attach functions of kmes_reader_by_libkmes wait rarely for a process
 * (kmes_pending_check). They return -EINPROGRESS, and from the second second on -ETIMEDOUT. The
 * next attach goes on with the same requests. Without it, and for a kernel, they wait as before.
 */
struct kmes_pending_attach;
/* NULL: no memory. */
struct kmes_pending_attach* kmes_pending_attach_make(void);
void kmes_pending_attach_free(struct kmes_pending_attach* pending);
/* For the calls of this thread; NULL: none. Returns the previous one. */
struct kmes_pending_attach* kmes_pending_attach_use(struct kmes_pending_attach* pending);
/* Returns the one in use. */
struct kmes_pending_attach* kmes_pending_attach_used(void);

struct kmes_mapping;

/* As the functions of kmes_attach_functions, by the socket. */
int kmes_pending_attach_step(struct kmes_pending_attach* pending, __u16 cpu, bool promises,
                             struct kmes_mapping* mapping);
/* Fills the answer for the mapping of the last step: no file if the buffer was retired meanwhile.
 * False: there is no such mapping. */
bool kmes_pending_attach_identify(struct kmes_pending_attach* pending,
                                  struct kmes_mapping* mapping);

/* Call it before a mapping is unmapped. */
void kmes_pending_attach_forget(const void* base);

/* Maps the buffer, and frees the attachment. */
int kmes_socket_attachment_map(struct kmes_socket_attachment* attachment,
                               struct kmes_mapping* mapping);
/* Fills the identity of the current buffer, its session and its next number. */
void kmes_mapping_identify(struct kmes_mapping* mapping,
                           const struct kmes_socket_identity* identity);
/* Unmaps, and drops the lease. */
void kmes_mapping_detach(struct kmes_mapping* mapping);

/* Closes the remaining descriptors (>= 0), and frees. */
void kmes_socket_attachment_free(struct kmes_socket_attachment* attachment);

/*
 * The table of the descriptors that kmes_attach has returned by the socket (data_table.c). For each
 * metadata descriptor, identified by device and inode, it has the data of its buffer, and the
 * mappings made of it. Each of them holds the lease of its attach.
 */
/* `data_fd` still belongs to the caller. -ENOMEM, -EBADF. */
int kmes_data_table_add(int metadata_fd, int data_fd, __u64 capacity_bytes,
                        struct kmes_lease* lease);
/* Maps the buffer of `fd`, as kmes_map. -ENOENT: the table does not contain `fd`. Others: -EBADF,
 * -EINVAL, -ENOMEM. */
int kmes_data_table_map(int fd, __u64 capacity_bytes, void** base);
/* Call it before the mapping is unmapped. */
void kmes_data_table_forget(const void* base);
/* The caller, who made the lease, no longer holds it. */
void kmes_data_table_drop(struct kmes_lease* lease);
/* Forgets every buffer whose metadata descriptor is no longer open. */
void kmes_data_table_sweep(void);
/* The number of entries, for tests. */
unsigned kmes_data_table_entries(void);

KMES_EXTERN_C_END

#endif
