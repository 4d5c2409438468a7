/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The emit calls, kmes_emit (1090) and kmes_emit_batch (1092), as whoever serves them does them
 * (docs/event-model.md, Calls): a kernel module, the socket of a producer in userspace. What lies
 * behind the pointers of a call is the caller's memory: it can be fetched, the fetch can fail or
 * take long, and a second one can give other bytes. So nothing is fetched twice, nothing before its
 * length is known to be in order, and nothing inside the critical section. Knows no permissions
 * (EPERM), and not how a result gets to the caller.
 *
 * What is wrong with an event, in the order in which it is looked for; the first is the error:
 *
 *   -EFAULT   its entry cannot be fetched                                (kmes_emit_batch only)
 *   -EINVAL   type_len is 0
 *   -ENOSPC   it has more bytes than MaxEventSize
 *   -EBUSY    the call is nested in an emission of the same CPU (E16), or the producer has ended
 *   -ENOSPC   it has more bytes than 50 % of the capacity
 *   -EFAULT   the type cannot be fetched
 *   -EINVAL   the type is not UTF-8
 *   -EFAULT   the payload cannot be fetched; one of 0 bytes is not, whatever its pointer
 *   -EBUSY    as above, and
 *   -ENOSPC   over 50 % of the capacity, both at the moment of writing: a resize may have come
 *             since they were looked for above
 *
 * In each case nothing has been written, no sequence number is used up, and no counter moves.
 */
#ifndef KMES_CALL_H
#define KMES_CALL_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

struct kmes_cpu; /* ring.h */

/* What a call is served with. It and all that it points to stay as they are until the call returns,
 * but for the buffer of `cpu`, which may be swapped by whoever else may. */
struct kmes_call {
    /* The CPU that the call goes to. NULL: `pin` says which. */
    struct kmes_cpu* cpu;
    /*
     * Where the call goes to the CPU that its thread is on: `pin` keeps the thread there until
     * `unpin`, and returns that CPU, or NULL where it has no producer: -EBUSY, and no unpin. The
     * thread is pinned only for what cannot sleep, never during a fetch, so a call can have several
     * CPUs one after the other. An event goes to the last of them.
     */
    struct kmes_cpu* (*pin)(void* context);
    void (*unpin)(void* context);
    /* Private memory, for this call alone: max_event_bytes bytes; with `pin`, staging_bytes, which
     * are no fewer, and aligned to 8. */
    __u8* staging;
    __u64 staging_bytes;
    __u64 max_event_bytes; /* MaxEventSize */
    /*
     * Copies `bytes` bytes, at least one, from the caller's memory to private memory: 0, or
     * -EFAULT where any of them is not there (`to` holds anything then). Never called inside the
     * critical section; may sleep.
     */
    int (*fetch)(void* context, void* to, const void* from, __u64 bytes);
    void* context;     /* of fetch, pin and unpin */
    __u8 origin_class; /* KMES_ORIGIN_..., never the caller's choice */
};

/* kmes_emit: `type` and `payload` are the caller's. 0 or one of the errors above. */
int kmes_call_emit(const struct kmes_call* call, const void* type, __u16 type_len,
                   const void* payload, __u32 payload_len);

/*
 * kmes_emit_batch: `entries` is the caller's, `emitted` is private. From 1 to 256 entries, else
 * EINVAL. The first bad one ends it, and its error is the result; those before it are emitted, and
 * *emitted says how many. All have one timestamp, and are published, with one look at need_wake, at
 * the end (5.1.7, last rule); whoever else emits on the CPU in between publishes what there is so
 * far (E16). With `pin`, the entries are fetched before anything is written, as many as the staging
 * memory takes. A batch that needs more is written and published in as many parts, and its thread
 * may have moved to another CPU between two of them. *emitted is written in any case.
 */
int kmes_call_emit_batch(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                         __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
