/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkmes: a program's access to KMES, independent of the server. C, no exceptions. Its only thread
 * is that of kmes_reader_set_fd (reader_set.h).
 *
 * One rule selects the server of a call: attach, emit, emit_batch, and the calls of a reader
 * (libkmes_reader.h).
 *
 *   - If the environment variable KMES_SOCKET is not empty, it names the Unix socket of a producer:
 * a path, or '@' and an abstract name. Only that producer is used. ENOSYS: no producer serves
 *     there. A program with raised privileges ignores the variable.
 *   - Otherwise the first of these that exists:
 *       1. the system calls 1090, 1091 and 1092. ENOSYS: this kernel lacks them.
 *       2. /dev/kmes, of the kernel module (<linux/kmes.h>).
 *       3. a producer in userspace at /run/kmes/producer.socket.
 *
 * A filter around a container may answer an unknown system call with EPERM instead of ENOSYS. A
 * device may exist that this program may not open. After EPERM the next server is therefore tried,
 * and the caller gets EPERM only if none of them answers.
 *
 * Every function returns 0, or -1 with errno set, like a system call. ENOSYS: no server of KMES
 * exists here. Any thread may call any function. A signal handler may call none. No function is a
 * cancellation point: a thread that is cancelled (pthread_cancel) returns from its call first, even
 * from one that waits without a limit. A function of the program that a call invokes for an event
 * may have cancellation points.
 *
 * Socket: the server of an abstract name must be the same user or root (EPERM). The files that a
 * server passes must be memory files of plain pages, with all their pages. They must be sealed
 * against shrinking, and the data also against future writes (EPROTO). No access to a mapping then
 * raises SIGBUS.
 *
 * Lease: by the socket, libkmes keeps the connection of an attach until all its descriptors are
 * closed and all its mappings are unmapped. When the last lease of a buffer ends, by this or by the
 * death of the process, the producer clears need_wake (E12). From then on it also clears need_wake
 * whenever a wake reaches no sleeper. A descriptor or mapping that a process has got in another way
 * has no lease. A consumer there is woken when the last lease ends. It must load futex_counter
 * before it sets need_wake, as the reader here does, or sleep with a time limit.
 *
 * closefrom: a program may close all its descriptors at any time. Mappings remain. Between calls
 * libkmes keeps open only the connections of leases, the connection of a request that a producer
 * has not answered, and the descriptor of kmes_reader_set_fd. It identifies each by device and
 * inode, and leaves a number alone that has become another file. This fails for an eventfd, which
 * is indistinguishable from another eventfd, and if another thread closes descriptors during a
 * call. A lease ends with its connection. A reader takes a new lease after a wait with a time
 * limit.
 *
 * fork: the child has the mappings and descriptors of its parent. It may call every function here,
 * whatever other threads of the parent did at the moment of the fork. If another thread was inside
 * a call, descriptors that the call had just received stay open in the child. A reader's state
 * (kmes/reader.h) is copied: parent and child both deliver every event, and share one need_wake.
 * Both should read in KMES_SHARED mode, or one of them should close its reader. A signal handler
 * may fork during a call of libkmes, as far as the C library permits it. The same holds for _Fork
 * and clone only if no other thread is inside libkmes. Call no function between vfork and exec.
 */
#ifndef KMES_USER_LIBKMES_H
#define KMES_USER_LIBKMES_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/*
 * kmes_attach (docs/event-model.md). On entry *count is the number of slots in `fds`; on return it
 * is the number of CPUs. Index i is CPU i. Errors:
 *   ERANGE      too few slots: *count is the number needed, and no fd was made
 *   EAGAIN      the boot phase
 *   EFAULT, EPERM, EMFILE, ENFILE, ENOMEM, ENOSYS
 * By the socket also:
 *   ESHUTDOWN   the producer has ended
 *   ETIMEDOUT   the producer has not sent its whole reply in 30 s
 *   EPROTO      see above
 *   EOPNOTSUPP  the producer needs consumers that call membarrier: see
 *               kmes_reader_promise_membarrier in libkmes_reader.h
 *
 * The fds are close-on-exec and belong to the caller, who closes them; a mapping outlives its fd.
 * By the socket each fd is the metadata file. libkmes keeps the data mapped, without access, until
 * a later kmes_attach or kmes_unmap finds the fd closed.
 */
int kmes_attach(int* fds, int* count, __u64* capacity_bytes);

/*
 * Maps the buffer of an fd as 5.1.5 lays it out: 4096 + 2 x capacity bytes at *base, with writable
 * metadata. `fd` comes from kmes_attach, or is a dup of such an fd. By the socket the data is
 * mapped read-only. EINVAL: `capacity_bytes` is not that of the buffer, or the file is shorter than
 * the mapping. Others: EFAULT, EBADF, ENOMEM, EACCES. After an error nothing is mapped.
 */
int kmes_map(int fd, __u64 capacity_bytes, void** base);

/* Unmaps a mapping of kmes_map. EINVAL: nothing is unmapped, and the mapping keeps its lease. */
int kmes_unmap(void* base, __u64 capacity_bytes);

/*
 * kmes_emit (docs/event-model.md): emits one event from this process, with origin class 0. Errors:
 *   EINVAL      type_len is 0, or the type is not UTF-8
 *   ENOSPC      over 50 % of the capacity, or over MaxEventSize
 *   EFAULT, EPERM, EBUSY, ENOSYS
 * By the socket also:
 *   EOPNOTSUPP  this producer takes no events from other processes
 *   EFBIG       the event is passed as a file, and RLIMIT_FSIZE of this process is below its size
 *   ECONNRESET  the producer ended before it had replied
 *   ESHUTDOWN, ETIMEDOUT, EMFILE, ENFILE, ENOMEM
 * After an error nothing is written. ETIMEDOUT and ECONNRESET leave it unknown. If several apply,
 * kmes/call.h gives their order; by the socket EFAULT may come before others.
 */
int kmes_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/*
 * kmes_emit_batch (docs/event-model.md): 1 to 256 entries, otherwise EINVAL. All events have one
 * timestamp and are published together. The call stops at the first bad entry and emits those
 * before it. It fails with the error of that entry, as kmes_emit, in the order of kmes/call.h.
 * EFAULT also means that an entry itself cannot be read. *emitted is the number of entries before
 * the bad one, or all of them after 0. If `emitted` is NULL, the call fails with EFAULT. Then, and
 * after ENOSYS, EPERM, EOPNOTSUPP and EFBIG (the batch is passed as a file), no event was emitted.
 */
int kmes_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
