/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rest of the platform seam: clock, critical section, wake, sleep. (Shared memory is in
 * order.h; mapping and allocation are done above the core, which is handed ready buffers.)
 *
 * An implementation defines `struct kmes_platform`, one for each producer CPU and each reader, and:
 *
 *   __u64 kmes_platform_clock_ns(struct kmes_platform *platform)
 *        CLOCK_REALTIME in ns since the Unix epoch (5.1.7 step 1).
 *
 *   bool kmes_platform_enter(struct kmes_platform *platform)
 *   void kmes_platform_exit(struct kmes_platform *platform)
 *        the critical section of one CPU's producer (E16): between them no other context may emit
 *        on that CPU. In the kernel: interrupts off; what still comes in between is an NMI. In
 *        userspace: a lock, or nothing where the caller promises one emitter. enter returns false,
 *        and has then changed nothing, if it would wait for the very context that it interrupts.
 *        exit may issue the wakes that were queued.
 *
 *   void kmes_platform_queue_wake(struct kmes_platform *platform, struct kmes_buffer *buffer)
 *        wake all who sleep on the futex_counter of `buffer` (FUTEX_WAKE, shared: E17), now or soon
 *        after exit. Called inside the critical section; holds `buffer` until the wake is done,
 *        also over a swap (E16).
 *
 *   int kmes_platform_sleep(struct kmes_platform *platform, __u32 *word, __u32 expected,
 *                           __u64 timeout_ns)
 *        FUTEX_WAIT, shared (E17): sleeps while *word is `expected`, for at most timeout_ns
 *        (KMES_NO_TIMEOUT: for ever). 0 when woken or when the word differs, -ETIMEDOUT, -EINTR.
 *        Readers only; a platform without readers in it need not have it.
 *
 *   int kmes_platform_barrier(struct kmes_platform *platform)
 *        SLEEP_BARRIER of order.h: on every processor that runs the producer, a full fence between
 *        this call and its return. 0, or a negative error number: there was none. Readers only.
 */
#ifndef KMES_PLATFORM_H
#define KMES_PLATFORM_H

#include "kmes/types.h"

#define KMES_NO_TIMEOUT (~0ull)

struct kmes_buffer;

#ifdef __KERNEL__
#include "platform_kernel.h"
#else
#include "kmes/user/platform_user.h"
#endif

#endif
