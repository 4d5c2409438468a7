/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkmes: how a program reaches KMES, whatever serves it. C, no exceptions, no threads of its own.
 *
 * Each call is tried in this order, and the first that is there answers:
 *
 *   1. the system calls 1090, 1091 and 1092. ENOSYS: this kernel has none.
 *   2. /dev/kmes, of the kernel module (<linux/kmes.h>).
 *   3. a producer in userspace, at the Unix socket that the environment variable KMES_SOCKET names
 *      (a path, or '@' and an abstract name), or at /run/kmes/producer.socket. The variable is not
 *      looked at in a program with raised privileges.
 *
 * A filter around a container may answer an unknown system call with EPERM instead of ENOSYS. So
 * after EPERM the others are tried too, and the caller gets EPERM only if none of them is there.
 *
 * Every function returns 0, or -1 with errno set, as a system call. ENOSYS: nobody serves KMES
 * here. Any thread may call any of them, but no signal handler.
 */
#ifndef KMES_USER_LIBKMES_H
#define KMES_USER_LIBKMES_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/*
 * kmes_attach (docs/event-model.md): *count slots in `fds` on entry, CPUs on return; index i is CPU
 * i. ERANGE: too few slots, *count says how many; no fd was made. EAGAIN: the boot phase; EFAULT,
 * EPERM, EMFILE, ENFILE, ENOMEM, ENOSYS; by the socket also ESHUTDOWN (the producer has ended) and
 * ETIMEDOUT (it does not answer).
 *
 * The fds are close-on-exec and the caller's: close() them, the mapping stays. By the socket each
 * one stands for the metadata; the descriptor of its data is kept in here until the fd is found
 * closed, at a later kmes_attach or kmes_unmap.
 */
int kmes_attach(int* fds, int* count, __u64* capacity_bytes);

/*
 * Maps the buffer of an fd as 5.1.5 lays it out, 4096 + 2 x capacity bytes at *base, metadata
 * writable. `fd` is what kmes_attach gave, or a dup of it while that is open. By the socket the
 * data is mapped read-only. EINVAL: `capacity_bytes` is not that of the buffer, or the file is
 * shorter than the mapping; EFAULT, EBADF, ENOMEM, EACCES. Nothing is mapped then.
 */
int kmes_map(int fd, __u64 capacity_bytes, void** base);

/* Unmaps what kmes_map mapped. EINVAL. */
int kmes_unmap(void* base, __u64 capacity_bytes);

/*
 * kmes_emit (docs/event-model.md): one event from this process, origin class 0. EINVAL: type_len 0,
 * or a type that is not UTF-8; ENOSPC: over 50 % of the capacity, or over MaxEventSize; EFAULT;
 * EPERM; EBUSY; ENOSYS; by the socket also EOPNOTSUPP (that producer takes no events from others),
 * ESHUTDOWN, ETIMEDOUT. Nothing was written then, but for ETIMEDOUT, where nobody knows. Where
 * more than one is due, kmes/call.h says which it is; by the socket EFAULT may come before others.
 */
int kmes_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/*
 * kmes_emit_batch (docs/event-model.md): 1 to 256 entries, else EINVAL; all with one timestamp, and
 * published together. It stops at the first bad entry, emits those before it, fails with the error
 * of that entry (as kmes_emit, in the order of kmes/call.h; EFAULT also for an entry that is not
 * there), and *emitted says how many are before it. After 0 that is all of them. EFAULT where
 * `emitted` is NULL; then, as after ENOSYS, EPERM, EOPNOTSUPP, nothing was emitted.
 */
int kmes_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
