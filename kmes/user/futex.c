// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Futex and clock of the userspace platform. See futex.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kmes/platform.h"

#define NS_PER_SECOND 1000000000ull

/* Restores errno, because the caller may be a signal handler. */
static int futex(const __u32* word, int operation, __u32 value, const struct timespec* timeout) {
    int saved = errno;
    long result = syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
    int error = result < 0 ? -errno : (int)result;

    errno = saved;
    return error;
}

int kmes_futex_wait(const __u32* word, __u32 expected, __u64 timeout_ns) {
    struct timespec timeout;
    int result;

    timeout.tv_sec = (time_t)(timeout_ns / NS_PER_SECOND);
    timeout.tv_nsec = (long)(timeout_ns % NS_PER_SECOND);
    result = futex(word, FUTEX_WAIT, expected, timeout_ns == KMES_NO_TIMEOUT ? NULL : &timeout);
    return result == -EAGAIN || result > 0 ? 0 : result;
}

int kmes_futex_wait_any(const struct kmes_futex_wait* waits, unsigned count, __u64 timeout_ns) {
    struct futex_waitv vector[KMES_FUTEX_WAIT_ANY_MAX];
    struct timespec deadline;
    int saved = errno;
    unsigned i;
    int error = 0;

    if (count == 0 || count > KMES_FUTEX_WAIT_ANY_MAX) return -EINVAL;
    for (i = 0; i < count; i++) {
        vector[i].val = waits[i].expected;
        vector[i].uaddr = (__u64)(uintptr_t)waits[i].word;
        vector[i].flags = FUTEX_32; /* and shared */
        vector[i].__reserved = 0;
    }
    if (timeout_ns != KMES_NO_TIMEOUT) {
        __u64 now_ns = kmes_clock_monotonic_ns();
        __u64 end_ns = timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;

        deadline.tv_sec = (time_t)(end_ns / NS_PER_SECOND);
        deadline.tv_nsec = (long)(end_ns % NS_PER_SECOND);
    }
    if (syscall(SYS_futex_waitv, vector, count, 0, timeout_ns == KMES_NO_TIMEOUT ? NULL : &deadline,
                CLOCK_MONOTONIC) < 0)
        error = errno == EAGAIN ? 0 : -errno;
    errno = saved;
    return error;
}

int kmes_futex_wake_all(__u32* word) {
    return futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

static __u64 clock_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (__u64)now.tv_sec * NS_PER_SECOND + (__u64)now.tv_nsec;
}

__u64 kmes_clock_realtime_ns(void) {
    return clock_ns(CLOCK_REALTIME);
}

__u64 kmes_clock_monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
