// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The handle of a set: an eventfd, and a thread that makes it readable. See reader_set.h.
 *
 * The readers have one owner at a time.
 *
 *   caller   the handle is readable, and the thread accesses nothing
 *   thread   the handle is not readable; the thread asks for wakes and sleeps for all CPUs. The
 *            caller may check under the lock
 *
 * Only a check of the caller that finds no event gives the readers to the thread. The check makes
 * the handle unreadable before the thread asks each CPU for a wake and checks it again (5.1.8.2).
 * So an event at any time after the check makes the handle readable. The caller or the thread finds
 * the next event, and the readers then return to the caller.
 *
 * The thread sleeps without the lock. Meanwhile a check of the caller may unmap a buffer whose word
 * the thread sleeps on. This is safe: the thread only passes the address to the kernel, and its own
 * word ends the sleep.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmes/user/fork_lock.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/reader_set_parts.h"
#include "kmes/user/uncancelled.h"

enum owner { OWNER_CALLER, OWNER_THREAD };

struct kmes_set_handle {
    struct kmes_reader_set* set;
    struct kmes_set_handle* next; /* of all handles of this process, for fork */
    struct kmes_futex_wait* words;
    pthread_t thread;
    __u32 lock; /* for all fields below, and for the readers while the thread owns them */
    enum owner owner;
    __u32 changes; /* the word that ends a sleep of the thread */
    bool is_closing;
    bool is_mine;            /* only for the caller, without the lock: the caller is the owner */
    bool is_of_child;        /* a child of fork has neither thread nor descriptor */
    bool is_locked_for_fork; /* during a fork: it took the lock */
    __u64 device;
    __u64 inode;
    int fd;
};

/* -- The lock ---------------------------------------------------------------------------------- */

/*
 * A fork must wait for this lock. The thread may just be changing a buffer, and the child continues
 * with these readers. The child could not repair them: fork copies one page after the other while
 * the thread goes on, so nothing in the memory of the child says what is whole.
 *
 * But the lock is held during an attach of up to 30 s. Its holder therefore does not block signals,
 * and a handler may fork during the call that it has interrupted. The lock names its holder in the
 * word that takes it, so that this fork does not wait for its own thread. The interrupted call
 * continues in the parent and in the child.
 */
#define HAS_WAITERS 0x80000000u /* beside the number of the holder; 0: the lock is free */

static __u32 this_thread(void) {
    return (__u32)syscall(SYS_gettid);
}

static bool is_locked_here(const struct kmes_set_handle* handle) {
    return (__atomic_load_n(&handle->lock, __ATOMIC_RELAXED) & ~HAS_WAITERS) == this_thread();
}

static bool change_lock(struct kmes_set_handle* handle, __u32* seen, __u32 wanted) {
    return __atomic_compare_exchange_n(&handle->lock, seen, wanted, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void lock(struct kmes_set_handle* handle) {
    const __u32 self = this_thread();
    __u32 seen = 0;

    if (change_lock(handle, &seen, self)) return;
    for (;;) {
        if (seen == 0) {
            /* Others may still wait. */
            if (change_lock(handle, &seen, self | HAS_WAITERS)) return;
        } else if ((seen & HAS_WAITERS) || change_lock(handle, &seen, seen | HAS_WAITERS)) {
            kmes_futex_wait(&handle->lock, seen | HAS_WAITERS, KMES_NO_TIMEOUT);
            seen = __atomic_load_n(&handle->lock, __ATOMIC_RELAXED);
        }
    }
}

static void unlock(struct kmes_set_handle* handle) {
    if (__atomic_exchange_n(&handle->lock, 0, __ATOMIC_RELEASE) & HAS_WAITERS)
        kmes_futex_wake_all(&handle->lock);
}

/* -- The descriptor ---------------------------------------------------------------------------- */

static bool is_still_ours(const struct kmes_set_handle* handle) {
    return kmes_fd_is(handle->fd, handle->device, handle->inode);
}

static void make_readable(const struct kmes_set_handle* handle) {
    const __u64 one = 1;

    if (is_still_ours(handle)) (void)!write(handle->fd, &one, sizeof(one));
}

static void make_unreadable(const struct kmes_set_handle* handle) {
    __u64 count;

    if (is_still_ours(handle)) (void)!read(handle->fd, &count, sizeof(count));
}

static int open_descriptor(struct kmes_set_handle* handle) {
    struct stat status;

    handle->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* the caller owns the readers */
    if (handle->fd < 0) return -errno;
    if (fstat(handle->fd, &status) != 0) return -errno;
    handle->device = status.st_dev;
    handle->inode = status.st_ino;
    return 0;
}

/* -- The thread. All of this is called, and returns, with the lock. ---------------------------- */

static void end_sleep(struct kmes_set_handle* handle) {
    __atomic_store_n(&handle->changes, handle->changes + 1, __ATOMIC_RELAXED);
    kmes_futex_wake_all(&handle->changes);
}

static bool is_at_work(const struct kmes_set_handle* handle) {
    return handle->owner == OWNER_THREAD && !handle->is_closing;
}

/* Opens the CPUs with an error again, when their time has come. True: there is an event. */
static bool try_again(struct kmes_reader_set* set) {
    bool is_found = false;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct kmes_set_cpu* cpu = &set->cpu[i];
        struct kmes_event_view view;
        int found;

        if (!cpu->error || !kmes_set_is_readable(cpu)) continue;
        found = kmes_set_peek(cpu, &view);
        kmes_set_note_result(cpu, found);
        if (found == KMES_READ_EVENT) is_found = true;
    }
    return is_found;
}

/* False: the caller has taken the readers meanwhile. */
static bool wait_for_watermark(struct kmes_set_handle* handle) {
    struct kmes_reader_set* set = handle->set;
    const __u64 end_ns = kmes_set_deadline_ns(set->options.watermark_ns);
    const __u32 before = handle->changes;

    while (!kmes_set_is_enough(set)) {
        const __u64 step_ns = kmes_set_watermark_step_ns(set, end_ns);

        if (!step_ns) break;
        unlock(handle);
        kmes_futex_wait(&handle->changes, before, step_ns);
        lock(handle);
        if (!is_at_work(handle) || handle->changes != before) return false;
    }
    return true;
}

/* One sleep for all CPUs. True: there is an event. */
static bool watch_once(struct kmes_set_handle* handle) {
    struct kmes_reader_set* set = handle->set;
    struct kmes_set_sleep sleep = {handle->words, 1, KMES_NO_TIMEOUT};
    const __u32 before = handle->changes;
    int result;

    if (try_again(set)) return true;
    handle->words[0].word = &handle->changes;
    handle->words[0].expected = before;
    if (kmes_set_begin_waits(set, &sleep)) {
        kmes_set_end_waits(set, 0);
        return !set->options.watermark_bytes || wait_for_watermark(handle);
    }
    unlock(handle);
    result = kmes_set_sleep_on(&sleep);
    lock(handle);
    if (is_at_work(handle)) {
        __u64 slept_ns = kmes_set_slept_ns(&sleep, result);

        /* A caller that checks all the time must not keep the thread from asking for the producer
         * (E25). */
        if (handle->changes != before) slept_ns = KMES_SET_NS_PER_MS;
        kmes_set_end_waits(set, slept_ns);
    }
    return false; /* the next call checks each CPU: a spurious wake does not reach the handle */
}

static void* watch(void* argument) {
    struct kmes_set_handle* handle = (struct kmes_set_handle*)argument;

    lock(handle);
    while (!handle->is_closing) {
        if (handle->owner == OWNER_CALLER) {
            const __u32 before = handle->changes;

            unlock(handle);
            kmes_futex_wait(&handle->changes, before, KMES_NO_TIMEOUT);
            lock(handle);
        } else if (watch_once(handle) && is_at_work(handle)) {
            handle->owner = OWNER_CALLER;
            make_readable(handle);
        }
    }
    unlock(handle);
    return NULL;
}

/* -- fork -------------------------------------------------------------------------------------- */

/* A child has the memory of all handles and none of their threads. */
static struct kmes_fork_lock all_lock = KMES_FORK_LOCK_INITIALIZER;
static struct kmes_set_handle* all_handles;

static void lock_all(void) {
    struct kmes_set_handle* handle;

    kmes_fork_lock_take(&all_lock);
    for (handle = all_handles; handle; handle = handle->next) {
        /* Otherwise a signal handler forks during a call of this thread. */
        handle->is_locked_for_fork = !is_locked_here(handle);
        if (handle->is_locked_for_fork) lock(handle);
    }
}

static void unlock_all(void) {
    struct kmes_set_handle* handle;

    for (handle = all_handles; handle; handle = handle->next)
        if (handle->is_locked_for_fork) unlock(handle);
    kmes_fork_lock_release(&all_lock);
}

/* Runs before the child can close the descriptor and open another file with its number. The eventfd
 * is shared with the parent, so the child must not change its readability. */
static void give_up_in_child(void) {
    struct kmes_set_handle* handle;

    for (handle = all_handles; handle; handle = handle->next) {
        handle->is_of_child = true;
        handle->lock = 0; /* its holder has another number in the child, or does not exist */
        if (is_still_ours(handle)) close(handle->fd);
    }
    all_handles = NULL;
    kmes_fork_lock_release(&all_lock);
}

KMES_FORK_LOCK_SETUP_LAST static void watch_forks(void) {
    pthread_atfork(lock_all, unlock_all, give_up_in_child);
}

static void enlist(struct kmes_set_handle* handle) {
    kmes_fork_lock_take(&all_lock);
    handle->next = all_handles;
    all_handles = handle;
    kmes_fork_lock_release(&all_lock);
}

/* The list of a child is empty. Its only thread may just be here. */
static void delist(struct kmes_set_handle* handle) {
    struct kmes_set_handle** at;

    kmes_fork_lock_take(&all_lock);
    for (at = &all_handles; *at && *at != handle;) at = &(*at)->next;
    if (*at) *at = handle->next;
    kmes_fork_lock_release(&all_lock);
}

/* -- Open and close ---------------------------------------------------------------------------- */

static void free_handle(struct kmes_set_handle* handle) {
    if (handle->fd >= 0 && !handle->is_of_child && is_still_ours(handle)) close(handle->fd);
    free(handle->words);
    free(handle);
}

/* All signals are blocked: the handlers of the program run in its own threads. No handler forks
 * between the two steps either. A fork of another thread finds a handle without a thread. */
static int start_thread(struct kmes_set_handle* handle) {
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    enlist(handle);
    error = pthread_create(&handle->thread, NULL, watch, handle);
    if (error) delist(handle);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int make_handle(struct kmes_reader_set* set, struct kmes_set_handle** made) {
    struct kmes_set_handle* handle = (struct kmes_set_handle*)calloc(1, sizeof(*handle));
    int error;

    if (!handle) return -ENOMEM;
    handle->set = set;
    handle->fd = -1;
    handle->owner = OWNER_CALLER;
    handle->is_mine = true;
    handle->words =
        (struct kmes_futex_wait*)calloc(KMES_FUTEX_WAIT_ANY_MAX, sizeof(*handle->words));
    error = handle->words ? open_descriptor(handle) : -ENOMEM;
    if (!error) error = start_thread(handle);
    if (error)
        free_handle(handle);
    else
        *made = handle;
    return error;
}

/* In a child of fork, or after closefrom. */
static bool is_lost(const struct kmes_set_handle* handle) {
    return handle->is_of_child || !is_still_ours(handle);
}

int kmes_reader_set_fd(struct kmes_reader_set* set) {
    KMES_UNCANCELLED;
    int error;

    if (set->handle && is_lost(set->handle)) kmes_set_close_handle(set);
    if (!set->handle) {
        error = make_handle(set, &set->handle);
        if (error) return error;
    }
    return set->handle->fd;
}

void kmes_set_close_handle(struct kmes_reader_set* set) {
    struct kmes_set_handle* handle = set->handle;

    if (!handle) return;
    set->handle = NULL;
    if (!handle->is_of_child) {
        lock(handle);
        handle->is_closing = true;
        end_sleep(handle);
        unlock(handle);
        pthread_join(handle->thread, NULL);
        kmes_set_end_waits(set, 0); /* those of the thread */
        delist(handle);
    }
    free_handle(handle);
}

/* -- The calls of the set ---------------------------------------------------------------------- */

static bool is_absent(const struct kmes_set_handle* handle) {
    return !handle || handle->is_of_child;
}

/* Called with the lock. */
static void take_readers(struct kmes_set_handle* handle) {
    handle->owner = OWNER_CALLER;
    handle->is_mine = true;
    kmes_set_end_waits(handle->set, 0);
    end_sleep(handle);
    make_readable(handle);
}

static void give_readers(struct kmes_set_handle* handle) {
    lock(handle);
    make_unreadable(handle);
    handle->owner = OWNER_THREAD;
    handle->is_mine = false;
    end_sleep(handle);
    unlock(handle);
}

/* True: the thread is the owner, and is locked out. */
static bool lock_out(struct kmes_set_handle* handle) {
    if (is_absent(handle) || handle->is_mine) return false;
    lock(handle);
    if (handle->owner == OWNER_THREAD) return true;
    handle->is_mine = true;
    unlock(handle);
    return false;
}

bool kmes_set_enter_scan(struct kmes_reader_set* set) {
    return lock_out(set->handle);
}

void kmes_set_leave_scan(struct kmes_reader_set* set, bool is_locked, int found) {
    struct kmes_set_handle* handle = set->handle;

    if (is_absent(handle)) return;
    if (!is_locked) {
        if (found == KMES_READ_EMPTY) give_readers(handle);
        return;
    }
    if (found != KMES_READ_EMPTY)
        take_readers(handle);
    else
        end_sleep(handle); /* the check may have changed a buffer, or the time of a retry */
    unlock(handle);
}

void kmes_set_enter_wait(struct kmes_reader_set* set) {
    if (!lock_out(set->handle)) return;
    take_readers(set->handle);
    unlock(set->handle);
}

void kmes_set_leave_wait(struct kmes_reader_set* set, bool is_over) {
    if (!is_absent(set->handle) && is_over) give_readers(set->handle);
}

void kmes_set_lock(const struct kmes_reader_set* set) {
    struct kmes_set_handle* handle = set->handle;

    if (!is_absent(handle) && !handle->is_mine) lock(handle);
}

void kmes_set_unlock(const struct kmes_reader_set* set) {
    struct kmes_set_handle* handle = set->handle;

    if (!is_absent(handle) && !handle->is_mine) unlock(handle);
}
