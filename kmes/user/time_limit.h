/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time limit of one call at a socket, by SO_RCVTIMEO or SO_SNDTIMEO. After EINTR the kernel
 * starts the limit again, so a timer of the program would extend it forever.
 *
 *   limit = kmes_begin_limit(fd, SO_RCVTIMEO)
 *   while ((got = recvmsg(fd, ...)) < 0 && kmes_continue_limit(&limit)) continue;
 *   kmes_end_limit(&limit)
 *
 * One limit can also hold for several calls: kmes_shorten_limit comes between two of them. A peer
 * that sends little by little then does not get a whole limit for each part. Each of the calls may
 * have a limit of its own, which is then the rest.
 */
#ifndef KMES_USER_TIME_LIMIT_H
#define KMES_USER_TIME_LIMIT_H

#include <sys/time.h>

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

struct kmes_time_limit {
    int fd;
    int option;
    bool is_cut; /* the option has the rest of `whole` */
    struct timeval whole;
    __u64 begun_ns; /* CLOCK_MONOTONIC */
};

struct kmes_time_limit kmes_begin_limit(int fd, int option);

/* Call it after an error of the call. After EINTR it sets the option to the rest of the time.
 * False: another error, or the time is over; errno is then EAGAIN, as after a call without a
 * signal. */
bool kmes_continue_limit(struct kmes_time_limit* limit);

/* Sets the option to the rest of the time. False: the time is over, or the option cannot be set;
 * errno is then EAGAIN. */
bool kmes_shorten_limit(struct kmes_time_limit* limit);

/* Restores the option for the next call. errno is unchanged. */
void kmes_end_limit(const struct kmes_time_limit* limit);

KMES_EXTERN_C_END

#endif
