/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A lock that fork takes, so that a child finds it free and its data consistent (pthread_atfork).
 * While a thread holds it, the thread runs no signal handler: a handler that forks would wait for
 * its own thread. The thread also ends at no cancellation point. Hold it only for short steps.
 */
#ifndef KMES_USER_FORK_LOCK_H
#define KMES_USER_FORK_LOCK_H

#include <pthread.h>
#include <signal.h>

#include "kmes/user/uncancelled.h"

struct kmes_fork_lock {
    pthread_mutex_t mutex;
    sigset_t signals_before; /* of the thread that holds the mutex, as the next */
    int cancel_before;
};

#define KMES_FORK_LOCK_INITIALIZER {PTHREAD_MUTEX_INITIALIZER, {{0}}, 0}

/*
 * Marks the function that registers the lock with fork. It runs before any thread or signal handler
 * that could fork. fork takes first the lock that was registered last. An attach may call any
 * function of libkmes while it holds the lock of a set, so that lock is registered last.
 */
#define KMES_FORK_LOCK_SETUP __attribute__((constructor(200)))
#define KMES_FORK_LOCK_SETUP_LAST __attribute__((constructor(201)))

static inline void kmes_fork_lock_take(struct kmes_fork_lock* lock) {
    const int cancel_before = kmes_cancel_disable();
    sigset_t all, signals_before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_before);
    pthread_mutex_lock(&lock->mutex);
    lock->signals_before = signals_before;
    lock->cancel_before = cancel_before;
}

static inline void kmes_fork_lock_release(struct kmes_fork_lock* lock) {
    const int cancel_before = lock->cancel_before;
    const sigset_t signals_before = lock->signals_before;

    pthread_mutex_unlock(&lock->mutex);
    pthread_sigmask(SIG_SETMASK, &signals_before, NULL);
    kmes_cancel_restore(&cancel_before);
}

#endif
