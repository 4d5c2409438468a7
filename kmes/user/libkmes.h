/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkmes: how a program reaches KMES, whatever serves it. C, no exceptions. The only thread of its
 * own is that of kmes_reader_set_fd (reader_set.h).
 *
 * One rule says which way a call goes: attach, emit, emit_batch, and what a reader asks
 * (libkmes_reader.h).
 *
 *   - The environment variable KMES_SOCKET names the Unix socket of a producer (a path, or '@' and
 *     an abstract name): that producer, and nobody else. ENOSYS where nobody serves there. The
 *     variable is ignored in a program with raised privileges.
 *   - Else the first of these that is there:
 *       1. the system calls 1090, 1091 and 1092. ENOSYS: this kernel has none.
 *       2. /dev/kmes, of the kernel module (<linux/kmes.h>).
 *       3. a producer in userspace at /run/kmes/producer.socket.
 *
 * A filter around a container may answer an unknown system call with EPERM instead of ENOSYS, and a
 * device may be there that this program may not open. So after EPERM the next way is tried, and the
 * caller gets EPERM only if none of them answers.
 *
 * Every function returns 0, or -1 with errno set, as a system call. ENOSYS: nobody serves KMES
 * here. Any thread may call any of them, but no signal handler.
 *
 * By the socket: an abstract name must be served by the same user or by root (EPERM). The files
 * that a server passes must be memory files of plain pages, sealed against shrinking, the data also
 * against writing from now on, with all their pages (EPROTO): no access to a mapping is SIGBUS
 * then.
 *
 * Lease: by the socket, libkmes keeps the connection of an attach until all that the attach gave is
 * closed and unmapped. When the last lease of a buffer ends, by this or by the death of the
 * process, the producer clears need_wake (E12), and from then on whenever a wake wakes nobody. A
 * descriptor or mapping that another process has got in some other way has no lease: a consumer
 * there is woken then, and must read futex_counter before it sets need_wake, as the reader here
 * does, or sleep with a time limit.
 *
 * closefrom: a program may close all its descriptors at any time. What is mapped stays mapped. The
 * connections of leases, and the descriptor of kmes_reader_set_fd, are all that libkmes keeps open
 * between calls. It knows each by device and inode, and leaves a number alone that has become
 * another file: but an eventfd cannot be told from another one. (Not so if that happens in another
 * thread in the middle of a call.) A lease ends with its connection; a reader takes
 * another one after a wait with a time limit.
 *
 * fork: the child has the mappings and the descriptors of its parent, and may call everything here,
 * whatever other threads of the parent did at that moment. A call of another thread that was on its
 * way leaves the descriptors that it had just received open in the child. A reader's state
 * (kmes/reader.h) is copied: parent and child then both deliver every event, and share one
 * need_wake, so both should read in KMES_SHARED mode, or one of them close its reader. The same
 * holds for _Fork and clone only if no other thread is inside libkmes. Between vfork and exec call
 * nothing of it.
 */
#ifndef KMES_USER_LIBKMES_H
#define KMES_USER_LIBKMES_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/*
 * kmes_attach (docs/event-model.md): *count slots in `fds` on entry, CPUs on return; index i is CPU
 * i. ERANGE: too few slots, *count says how many; no fd was made. EAGAIN: the boot phase; EFAULT,
 * EPERM, EMFILE, ENFILE, ENOMEM, ENOSYS; by the socket also ESHUTDOWN (the producer has ended),
 * ETIMEDOUT (it does not answer), EPROTO (see above) and EOPNOTSUPP (the producer needs consumers
 * that call membarrier: kmes_reader_promise_membarrier in libkmes_reader.h).
 *
 * The fds are close-on-exec and the caller's: close() them, the mapping stays. By the socket each
 * one stands for the metadata; its data is kept mapped in here, without access, until the fd is
 * found closed, at a later kmes_attach or kmes_unmap.
 */
int kmes_attach(int* fds, int* count, __u64* capacity_bytes);

/*
 * Maps the buffer of an fd as 5.1.5 lays it out, 4096 + 2 x capacity bytes at *base, metadata
 * writable. `fd` is what kmes_attach gave, or a dup of it. By the socket the data is mapped
 * read-only. EINVAL: `capacity_bytes` is not that of the buffer, or the file is
 * shorter than the mapping; EFAULT, EBADF, ENOMEM, EACCES. Nothing is mapped then.
 */
int kmes_map(int fd, __u64 capacity_bytes, void** base);

/* Unmaps what kmes_map mapped. EINVAL. */
int kmes_unmap(void* base, __u64 capacity_bytes);

/*
 * kmes_emit (docs/event-model.md): one event from this process, origin class 0. EINVAL: type_len 0,
 * or a type that is not UTF-8; ENOSPC: over 50 % of the capacity, or over MaxEventSize; EFAULT;
 * EPERM; EBUSY; ENOSYS; by the socket also EOPNOTSUPP (that producer takes no events from others),
 * EFBIG (the event is passed as a file, and RLIMIT_FSIZE of this process allows none of that size),
 * ESHUTDOWN, ETIMEDOUT. Nothing was written then, but for ETIMEDOUT, where nobody knows. Where
 * more than one is due, kmes/call.h says which it is; by the socket EFAULT may come before others.
 */
int kmes_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/*
 * kmes_emit_batch (docs/event-model.md): 1 to 256 entries, else EINVAL; all with one timestamp, and
 * published together. It stops at the first bad entry, emits those before it, fails with the error
 * of that entry (as kmes_emit, in the order of kmes/call.h; EFAULT also for an entry that is not
 * there), and *emitted says how many are before it. After 0 that is all of them. EFAULT where
 * `emitted` is NULL; then, as after ENOSYS, EPERM, EOPNOTSUPP and EFBIG (the batch is passed as a
 * file), nothing was emitted.
 */
int kmes_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
