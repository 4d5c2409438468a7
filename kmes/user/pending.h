/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A request to a producer that stays on its connection until the answer comes. Between calls a
 * program may close all descriptors, or fork. The answer on a connection that a child has inherited
 * is for its parent. Each structure is used by one thread at a time.
 */
#ifndef KMES_USER_PENDING_H
#define KMES_USER_PENDING_H

#include <sys/types.h>

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

struct kmes_pending {
    __u64 device; /* identifies the file of `fd` */
    __u64 inode;
    __u64 asked_ns;
    pid_t process;
    int fd; /* -1: no request */
};

void kmes_pending_init(struct kmes_pending* pending);

/* Takes the connection of a request that was sent, or the error of the attempt (`fd` < 0), which it
 * returns. */
int kmes_pending_begin(struct kmes_pending* pending, int fd);

/* False: no request, or the connection belongs to another process or was closed. It is forgotten.
 */
bool kmes_pending_is_here(struct kmes_pending* pending);

/*
 * Returns 0 if the answer can be received. -EINPROGRESS: not yet. -ETIMEDOUT: not yet, and the
 * producer has had a second. After 30 s the request is given up. `is_new`: the request was sent in
 * this call, which may wait for KMES_PENDING_WAIT_MS. It does not wait if another wait of this
 * process has ended without an answer in the last second.
 */
int kmes_pending_check(struct kmes_pending* pending, bool is_new);
#define KMES_PENDING_WAIT_MS 10

/* Returns the connection, which belongs to the caller. */
int kmes_pending_take(struct kmes_pending* pending);

/* Closes the connection. */
void kmes_pending_end(struct kmes_pending* pending);

KMES_EXTERN_C_END

#endif
