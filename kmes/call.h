/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The emit calls kmes_emit (1090) and kmes_emit_batch (1092) as their server executes them
 * (docs/event-model.md, Calls). The server is a kernel module, or the socket of a producer in
 * userspace. The pointers of a call refer to memory of the caller. A fetch from it can fail or take
 * long, and a second fetch can return other bytes. The code therefore fetches no byte twice, checks
 * each length before the fetch, and never fetches inside the critical section. It does not check
 * permissions (EPERM), and does not deliver the result to the caller.
 *
 * The checks of an event, in their order. The first failed check is the error:
 *
 *   -EFAULT   its entry cannot be fetched                                (kmes_emit_batch only)
 *   -EINVAL   type_len is 0
 *   -ENOSPC   it has more bytes than MaxEventSize
 *   -EBUSY    the call is nested in an emission of the same CPU (E16), or the producer has ended
 *   -ENOSPC   it has more bytes than 50 % of the capacity
 *   -EFAULT   the type cannot be fetched
 *   -EINVAL   the type is not UTF-8
 *   -EFAULT   the payload cannot be fetched; a payload of 0 bytes needs no valid pointer
 *   -EBUSY    as above, checked again at the write
 *   -ENOSPC   over 50 % of the capacity, checked again at the write: a resize may have come between
 *
 * After each of these errors nothing is written, no sequence number is used, and no counter
 * changes.
 */
#ifndef KMES_CALL_H
#define KMES_CALL_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

struct kmes_cpu; /* ring.h */

/* The parameters of a call. They and all memory that they point to are constant until the call
 * returns. Another thread may swap the buffer of `cpu`. */
struct kmes_call {
    /* The CPU that receives the events. NULL: `pin` selects it. */
    struct kmes_cpu* cpu;
    /*
     * For calls that go to the CPU of the calling thread. `pin` keeps the thread on its CPU until
     * `unpin` and returns that CPU. It returns NULL if the CPU has no producer: the call then fails
     * with -EBUSY, without unpin. The thread is pinned only for work that cannot sleep, never
     * during a fetch, so one call may use several CPUs in turn. An event goes to the last of them.
     */
    struct kmes_cpu* (*pin)(void* context);
    void (*unpin)(void* context);
    /* Private memory, for this call only. Its size is max_event_bytes; with `pin` it is
     * staging_bytes, at least max_event_bytes, and it is aligned to 8. */
    __u8* staging;
    __u64 staging_bytes;
    __u64 max_event_bytes; /* MaxEventSize */
    /*
     * Copies `bytes` bytes, at least one, from the caller's memory to private memory. Returns 0, or
     * -EFAULT if any byte is missing; the content of `to` is then undefined. May sleep. Never
     * called inside the critical section.
     */
    int (*fetch)(void* context, void* to, const void* from, __u64 bytes);
    void* context;     /* for fetch, pin and unpin */
    __u8 origin_class; /* KMES_ORIGIN_...; the caller cannot choose it */
};

/* kmes_emit. `type` and `payload` are memory of the caller. Returns 0 or one of the errors
 * above. */
int kmes_call_emit(const struct kmes_call* call, const void* type, __u16 type_len,
                   const void* payload, __u32 payload_len);

/*
 * kmes_emit_batch. `entries` is memory of the caller, `emitted` is private. `count` is 1 to 256,
 * otherwise the result is -EINVAL. The first bad entry ends the call and its error is the result;
 * the entries before it are emitted. *emitted is always written: it is the number of emitted
 * entries.
 *
 * All events have one timestamp. The call publishes them at its end, with one check of need_wake
 * (5.1.7, last rule). Another emitter of the CPU publishes those that are written so far (E16).
 *
 * With `pin`, the call fetches the entries before it writes any, as many as fit into the staging
 * memory. A larger batch is written and published in several parts. The thread may move to another
 * CPU between two parts.
 */
int kmes_call_emit_batch(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                         __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
