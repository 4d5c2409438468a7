/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Blocks SIGXFSZ during the calls of one thread. See file_size_signal.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/file_size_signal.h"

#include <errno.h>
#include <time.h>

static void file_size_set(sigset_t* set) {
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
}

void kmes_file_size_signal_block(struct kmes_file_size_signal* saved) {
    int error = errno;
    sigset_t set, pending;

    file_size_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, &saved->mask_before);
    sigemptyset(&pending);
    sigpending(&pending);
    saved->was_pending = sigismember(&pending, SIGXFSZ) == 1;
    errno = error;
}

void kmes_file_size_signal_restore(const struct kmes_file_size_signal* saved) {
    const struct timespec no_time = {0, 0};
    int error = errno;
    sigset_t set;

    file_size_set(&set);
    /* The kernel sends the signal to the thread that exceeds the limit, before the call returns. */
    while (!saved->was_pending && sigtimedwait(&set, NULL, &no_time) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &saved->mask_before, NULL);
    errno = error;
}
