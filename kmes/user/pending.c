// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A request that is not answered so far. See pending.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/pending.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_parts.h"

#define NS_PER_SECOND 1000000000ull
#define GIVES_UP_NS (30 * NS_PER_SECOND)

/* When a wait for an answer has last ended without one; 0: never. All threads write it. */
static __u64 no_answer_ns;

void kmes_pending_init(struct kmes_pending* pending) {
    memset(pending, 0, sizeof(*pending));
    pending->fd = -1;
}

int kmes_pending_begin(struct kmes_pending* pending, int fd) {
    struct stat status;

    if (fd < 0) return fd;
    if (fstat(fd, &status) != 0) return -errno; /* another thread has closed it */
    pending->device = status.st_dev;
    pending->inode = status.st_ino;
    pending->asked_ns = kmes_clock_monotonic_ns();
    pending->process = getpid();
    pending->fd = fd;
    return 0;
}

bool kmes_pending_is_here(struct kmes_pending* pending) {
    if (pending->fd < 0) return false;
    if (pending->process == getpid() && kmes_fd_is(pending->fd, pending->device, pending->inode))
        return true;
    kmes_pending_end(pending);
    return false;
}

/* Positive: the answer is there. 0: the time is over. Negative: a signal, for example. */
static int wait_for_answer(int fd, int wait_ms) {
    struct pollfd connection = {fd, POLLIN, 0};

    return poll(&connection, 1, wait_ms);
}

int kmes_pending_check(struct kmes_pending* pending, bool is_new) {
    const __u64 before_ns = __atomic_load_n(&no_answer_ns, __ATOMIC_RELAXED);
    const bool waits = is_new && (!before_ns || pending->asked_ns > before_ns + NS_PER_SECOND);
    const int found = wait_for_answer(pending->fd, waits ? KMES_PENDING_WAIT_MS : 0);
    __u64 now_ns;

    if (found > 0) return 0;
    now_ns = kmes_clock_monotonic_ns();
    if (waits && found == 0) __atomic_store_n(&no_answer_ns, now_ns, __ATOMIC_RELAXED);
    if (now_ns - pending->asked_ns > GIVES_UP_NS) kmes_pending_end(pending);
    return now_ns - pending->asked_ns > NS_PER_SECOND ? -ETIMEDOUT : -EINPROGRESS;
}

int kmes_pending_take(struct kmes_pending* pending) {
    const int fd = pending->fd;

    pending->fd = -1;
    return fd;
}

void kmes_pending_end(struct kmes_pending* pending) {
    if (pending->fd >= 0 && kmes_fd_is(pending->fd, pending->device, pending->inode))
        close(pending->fd);
    pending->fd = -1;
}
