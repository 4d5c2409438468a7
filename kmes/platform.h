/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The other part of the platform seam: clock, critical section, wake, sleep. Shared memory is in
 * order.h. The code above the core maps and allocates, and passes ready buffers to the core.
 *
 * An implementation defines `struct kmes_platform`, one for each producer CPU and each reader, and:
 *
 *   __u64 kmes_platform_clock_ns(struct kmes_platform *platform)
 *        returns CLOCK_REALTIME in ns since the Unix epoch (5.1.7 step 1).
 *
 *   bool kmes_platform_enter(struct kmes_platform *platform)
 *   void kmes_platform_exit(struct kmes_platform *platform)
 *        delimit the critical section of one CPU's producer (E16): no other context emits on that
 *        CPU between them. The kernel disables interrupts, so only an NMI can still interrupt.
 *        Userspace takes a lock, or does nothing if the caller promises a single emitter. If enter
 *        would wait for the very context that it interrupts, it returns false and changes nothing.
 *        exit may issue the queued wakes.
 *
 *   void kmes_platform_queue_wake(struct kmes_platform *platform, struct kmes_buffer *buffer)
 *        wakes all sleepers on the futex_counter of `buffer` (FUTEX_WAKE, shared: E17), now or soon
 *        after exit. Called inside the critical section. It keeps a reference to `buffer` until the
 *        wake is done, also across a swap (E16).
 *
 *   int kmes_platform_sleep(struct kmes_platform *platform, __u32 *word, __u32 expected,
 *                           __u64 timeout_ns)
 *        FUTEX_WAIT, shared (E17): sleeps while *word is `expected`, for at most timeout_ns
 *        (KMES_NO_TIMEOUT: no limit). Returns 0 after a wake or if the word differs, -ETIMEDOUT or
 *        -EINTR. Only readers use it; a platform without readers may omit it.
 *
 *   int kmes_platform_barrier(struct kmes_platform *platform)
 *        SLEEP_BARRIER of order.h: every processor that runs the producer executes a full fence
 *        between the call and its return. Returns 0, or a negative error number if none was
 *        executed. Only readers use it.
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
