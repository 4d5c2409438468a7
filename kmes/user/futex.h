/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The three system services of the userspace platform: sleeping on a word, waking who sleeps on it,
 * and the clock. Shared futexes only (E17): the other side is another process. All of it may be
 * called in a signal handler. Knows no buffer.
 */
#ifndef KMES_USER_FUTEX_H
#define KMES_USER_FUTEX_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/*
 * Sleeps while *word is `expected`, for at most timeout_ns (KMES_NO_TIMEOUT: for ever). 0 when
 * woken or when the word differs, -ETIMEDOUT, -EINTR, -EFAULT where no word is. As
 * kmes_platform_sleep wants it.
 */
int kmes_futex_wait(const __u32* word, __u32 expected, __u64 timeout_ns);

/* One of the words that kmes_futex_wait_any sleeps on. */
struct kmes_futex_wait {
    const __u32* word;
    __u32 expected;
};
#define KMES_FUTEX_WAIT_ANY_MAX 128u

/*
 * As kmes_futex_wait, until any of `count` words (1 to KMES_FUTEX_WAIT_ANY_MAX, else -EINVAL) is
 * woken or differs. -ENOSYS, -EPERM: the kernel, or a filter of system calls, does not have it
 * (futex_waitv, Linux 5.16).
 */
int kmes_futex_wait_any(const struct kmes_futex_wait* waits, unsigned count, __u64 timeout_ns);

/* Wakes all, in any process, who sleep on `word`, and says how many there were. The value is the
 * caller's to change before. */
int kmes_futex_wake_all(__u32* word);

/* CLOCK_REALTIME in ns since the Unix epoch (5.1.7 step 1); no system call where there is a vDSO.
 */
__u64 kmes_clock_realtime_ns(void);

/* CLOCK_MONOTONIC in ns, for schedules: not for events. */
__u64 kmes_clock_monotonic_ns(void);

KMES_EXTERN_C_END

#endif
