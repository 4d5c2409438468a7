/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The three system services of the userspace platform: sleeping on a word, waking its sleepers, and
 * the clock. Shared futexes only (E17), because the other side is another process. A signal handler
 * may call every function. This file uses no buffer.
 */
#ifndef KMES_USER_FUTEX_H
#define KMES_USER_FUTEX_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/*
 * Sleeps while *word is `expected`, for at most timeout_ns (KMES_NO_TIMEOUT: no limit), as
 * kmes_platform_sleep requires. Returns 0 after a wake or if the word differs, -ETIMEDOUT, -EINTR,
 * or -EFAULT if no word is there.
 */
int kmes_futex_wait(const __u32* word, __u32 expected, __u64 timeout_ns);

/* One of the words of kmes_futex_wait_any. */
struct kmes_futex_wait {
    const __u32* word;
    __u32 expected;
};
#define KMES_FUTEX_WAIT_ANY_MAX 128u

/*
 * As kmes_futex_wait, until any of `count` words (1 to KMES_FUTEX_WAIT_ANY_MAX, otherwise -EINVAL)
 * is woken or differs. -ENOSYS, -EPERM: the kernel lacks futex_waitv (Linux 5.16), or a filter of
 * system calls rejects it.
 */
int kmes_futex_wait_any(const struct kmes_futex_wait* waits, unsigned count, __u64 timeout_ns);

/* Wakes all sleepers on `word`, in any process, and returns their number. The caller changes the
 * value before the call. */
int kmes_futex_wake_all(__u32* word);

/* Returns CLOCK_REALTIME in ns since the Unix epoch (5.1.7 step 1); no system call if there is a
 * vDSO. */
__u64 kmes_clock_realtime_ns(void);

/* Returns CLOCK_MONOTONIC in ns, for schedules. It is not for events. */
__u64 kmes_clock_monotonic_ns(void);

KMES_EXTERN_C_END

#endif
