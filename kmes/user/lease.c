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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_parts.h"

#define NS_PER_SECOND 1000000000ull
#define ASKS_AGAIN_NS (30 * NS_PER_SECOND)

/* A request that the producer has not answered so far. */
struct lease_question {
    __u64 device;
    __u64 inode;
    __u64 asked_ns;
    pid_t process; /* that reads the answer: a forked child has another one */
    int fd;        /* -1: none */
    int last_error;
};

struct kmes_lease {
    __u64 device;
    __u64 inode;
    struct lease_question question;
    int fd;
    unsigned holders;
    unsigned questions;
};

/* When a wait for an answer has last ended without one; 0: never. All threads write it. */
static __u64 no_answer_ns;

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
    memset(&lease->question, 0, sizeof(lease->question));
    lease->question.fd = -1;
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

/* -- A question -------------------------------------------------------------------------------- */

static void end_question(struct lease_question* question) {
    if (question->fd >= 0 && kmes_fd_is(question->fd, question->device, question->inode))
        close(question->fd);
    question->fd = -1;
}

static int begin_question(struct lease_question* question, __u32 cpu) {
    const int fd = kmes_socket_ask_identity(cpu);
    struct stat status;

    if (fd < 0) return fd;
    if (fstat(fd, &status) != 0) return -errno; /* another thread has closed it */
    question->device = status.st_dev;
    question->inode = status.st_ino;
    question->asked_ns = kmes_clock_monotonic_ns();
    question->process = getpid();
    question->fd = fd;
    return 0;
}

/* Waits rarely, so that many CPUs of one producer do not each wait for it. */
static int take_first(const struct lease_question* question,
                      struct kmes_socket_identity* identity) {
    const __u64 before_ns = __atomic_load_n(&no_answer_ns, __ATOMIC_RELAXED);
    const bool waits = !before_ns || question->asked_ns - before_ns > NS_PER_SECOND;
    const int error =
        kmes_socket_take_identity(question->fd, waits ? KMES_LEASE_ASK_MS : 0, identity);

    if (waits && error == -EINPROGRESS)
        __atomic_store_n(&no_answer_ns, kmes_clock_monotonic_ns(), __ATOMIC_RELAXED);
    return error;
}

/* Returns the result while there is no answer. */
static int unanswered(struct lease_question* question) {
    const __u64 age_ns = kmes_clock_monotonic_ns() - question->asked_ns;

    if (age_ns > ASKS_AGAIN_NS) end_question(question);
    if (age_ns > NS_PER_SECOND) question->last_error = -ETIMEDOUT;
    return question->last_error ? question->last_error : -EINPROGRESS;
}

bool kmes_lease_is_asking(const struct kmes_lease* lease) {
    return lease->question.fd >= 0;
}

/* The answer on a connection that a child has inherited is for its parent. */
int kmes_lease_ask(struct kmes_lease* lease, __u32 cpu, struct kmes_socket_identity* identity) {
    struct lease_question* question = &lease->question;
    int error;

    if (question->fd >= 0 && (question->process != getpid() ||
                              !kmes_fd_is(question->fd, question->device, question->inode)))
        end_question(question);
    if (question->fd >= 0) {
        error = kmes_socket_take_identity(question->fd, 0, identity);
    } else {
        error = begin_question(question, cpu);
        if (!error) error = take_first(question, identity);
    }
    if (error == -EINPROGRESS) return unanswered(question);
    end_question(question);
    question->last_error = error;
    return error;
}

/* -- Holders ----------------------------------------------------------------------------------- */

struct kmes_lease* kmes_lease_hold(struct kmes_lease* lease) {
    if (lease) lease->holders++;
    return lease;
}

void kmes_lease_drop(struct kmes_lease* lease) {
    if (!lease || --lease->holders > 0) return;
    if (is_still_ours(lease)) close(lease->fd);
    end_question(&lease->question);
    free(lease);
}
