// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See time_limit.h. */
#include "kmes/user/time_limit.h"

#include <errno.h>
#include <sys/socket.h>

#include "kmes/user/futex.h"

#define NS_PER_SECOND 1000000000u

struct kmes_time_limit kmes_begin_limit(int fd, int option) {
    struct kmes_time_limit limit = {fd, option, false, {0, 0}, kmes_clock_monotonic_ns()};

    return limit;
}

/* Sets the timeout of the socket to the rest of the time. Returns false if the time is over, or the
 * option cannot be set. */
static bool cut(struct kmes_time_limit* limit) {
    const __u64 passed_ns = kmes_clock_monotonic_ns() - limit->begun_ns;
    socklen_t length = sizeof(limit->whole);
    struct timeval left;
    __u64 whole_ns, left_us;

    if (!limit->is_cut &&
        getsockopt(limit->fd, SOL_SOCKET, limit->option, &limit->whole, &length) != 0)
        return false;
    limit->is_cut = true;
    whole_ns = (__u64)limit->whole.tv_sec * NS_PER_SECOND + (__u64)limit->whole.tv_usec * 1000u;
    if (!whole_ns) return true;
    if (passed_ns >= whole_ns) return false;
    left_us = (whole_ns - passed_ns) / 1000 + 1; /* 0 would be no limit */
    left.tv_sec = (time_t)(left_us / 1000000);
    left.tv_usec = (suseconds_t)(left_us % 1000000);
    return setsockopt(limit->fd, SOL_SOCKET, limit->option, &left, sizeof(left)) == 0;
}

bool kmes_shorten_limit(struct kmes_time_limit* limit) {
    if (cut(limit)) return true;
    errno = EAGAIN;
    return false;
}

bool kmes_continue_limit(struct kmes_time_limit* limit) {
    return errno == EINTR && kmes_shorten_limit(limit);
}

void kmes_end_limit(const struct kmes_time_limit* limit) {
    const int error = errno;

    if (limit->is_cut)
        setsockopt(limit->fd, SOL_SOCKET, limit->option, &limit->whole, sizeof(limit->whole));
    errno = error;
}
