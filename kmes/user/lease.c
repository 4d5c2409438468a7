// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The connection that tells a producer that a consumer may be asleep on its buffers (E12,
 * socket_protocol.h). See libkmes_parts.h.
 *
 * The descriptor is kept between calls, so kmes_fd_is identifies it before each use. Between this
 * check and the use another thread may still close it. The library cannot exclude that. It harms
 * only a program that closes descriptors which it did not open while it calls libkmes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmes/user/libkmes_parts.h"

struct kmes_lease {
    __u64 device;
    __u64 inode;
    int fd;
    unsigned holders;
    unsigned questions;
};

struct kmes_lease* kmes_lease_make(int fd) {
    struct kmes_lease* lease;
    struct stat status;

    if (fd < 0) return NULL;
    lease = (struct kmes_lease*)malloc(sizeof(*lease));
    if (!lease || fstat(fd, &status) != 0) {
        free(lease);
        close(fd);
        return NULL;
    }
    lease->device = status.st_dev;
    lease->inode = status.st_ino;
    lease->fd = fd;
    lease->holders = 1;
    lease->questions = 0;
    return lease;
}

static bool is_still_ours(const struct kmes_lease* lease) {
    return kmes_fd_is(lease->fd, lease->device, lease->inode);
}

bool kmes_lease_is_held(const struct kmes_lease* lease) {
    struct pollfd connection;

    if (!lease || !is_still_ours(lease)) return false;
    connection.fd = lease->fd;
    connection.events = POLLIN;
    return poll(&connection, 1, 0) == 0; /* the producer sends nothing more on it; it only ends */
}

unsigned kmes_lease_count_question(struct kmes_lease* lease) {
    return ++lease->questions;
}

struct kmes_lease* kmes_lease_hold(struct kmes_lease* lease) {
    if (lease) lease->holders++;
    return lease;
}

void kmes_lease_drop(struct kmes_lease* lease) {
    if (!lease || --lease->holders > 0) return;
    if (is_still_ours(lease)) close(lease->fd);
    free(lease);
}
