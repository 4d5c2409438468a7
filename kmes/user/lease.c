// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The connection that tells a producer that a consumer may be asleep on its buffers (E12,
 * socket_protocol.h). See libkmes_parts.h.
 *
 * A descriptor is kept between calls, so kmes_fd_is identifies it before each use. Between this
 * check and the use another thread may still close it. The library cannot exclude that. It harms
 * only a program that closes descriptors which it did not open while it calls libkmes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmes/user/libkmes_parts.h"
#include "kmes/user/pending.h"

struct kmes_lease {
    __u64 device;
    __u64 inode;
    struct kmes_pending question;
    int last_error; /* of a question */
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
    lease->last_error = 0;
    kmes_pending_init(&lease->question);
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

bool kmes_lease_is_asking(const struct kmes_lease* lease) {
    return lease->question.fd >= 0;
}

int kmes_lease_ask(struct kmes_lease* lease, __u32 cpu, struct kmes_socket_identity* identity) {
    struct kmes_pending* question = &lease->question;
    const bool is_new = !kmes_pending_is_here(question);
    int error = is_new ? kmes_pending_begin(question, kmes_socket_ask_identity(cpu)) : 0;

    if (!error) error = kmes_pending_check(question, is_new);
    if (error == -EINPROGRESS && lease->last_error) return lease->last_error;
    if (error == -EINPROGRESS) return error;
    if (!error) error = kmes_socket_take_identity(kmes_pending_take(question), identity);
    lease->last_error = error;
    return error;
}

struct kmes_lease* kmes_lease_hold(struct kmes_lease* lease) {
    if (lease) lease->holders++;
    return lease;
}

void kmes_lease_drop(struct kmes_lease* lease) {
    if (!lease || --lease->holders > 0) return;
    if (is_still_ours(lease)) close(lease->fd);
    kmes_pending_end(&lease->question);
    free(lease);
}
