/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time limit of one call at a socket, as SO_RCVTIMEO or SO_SNDTIMEO has it. After EINTR the
 * kernel begins it anew, so a timer of the program would extend it for ever.
 *
 *   limit = kmes_begin_limit(fd, SO_RCVTIMEO)
 *   while ((got = recvmsg(fd, ...)) < 0 && kmes_continue_limit(&limit)) continue;
 *   kmes_end_limit(&limit)
 *
 * Several calls can share one limit: kmes_call_within_limit comes before each of them. A peer that
 * sends little by little then does not get a whole limit for each part.
 */
#ifndef KMES_USER_TIME_LIMIT_H
#define KMES_USER_TIME_LIMIT_H

#include <sys/time.h>

#include "kmes/types.h"

struct kmes_time_limit {
    int fd;
    int option;
    bool is_cut;    /* the option has what is left of `whole` */
    bool is_shared; /* a call has been made within it */
    struct timeval whole;
    __u64 begun_ns; /* CLOCK_MONOTONIC */
};

struct kmes_time_limit kmes_begin_limit(int fd, int option);

/* Call it after an error of the call. After EINTR it sets the option to the rest of the time.
 * False: another error, or the time is over; errno is then EAGAIN, as after a call without a
 * signal. */
bool kmes_continue_limit(struct kmes_time_limit* limit);

/* Call it before each call that shares the limit. From the second call on it sets the option to the
 * rest of the time. False: the time is over; errno is then EAGAIN. */
bool kmes_call_within_limit(struct kmes_time_limit* limit);

/* Restores the option for the next call. errno is unchanged. */
void kmes_end_limit(const struct kmes_time_limit* limit);

#endif
