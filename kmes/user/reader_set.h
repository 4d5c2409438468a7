/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A reader of all CPUs: one thread delivers the events of every CPU, and sleeps for all of them at
 * a time. C, no exceptions.
 *
 *   struct kmes_reader_set* set;
 *   int error = kmes_reader_set_open(&set, NULL);
 *   while (!error) {
 *       int count = kmes_reader_set_poll(set, KMES_NO_TIMEOUT, on_event, context);
 *       if (count < 0) error = count;
 *   }
 *   kmes_reader_set_close(set);
 *
 * The events of one CPU come in their order. CPUs take turns, so that one whose ring is never empty
 * does not keep the others waiting. A CPU that cannot be read now has an error of its own, and is
 * tried again at intervals of up to 1 s, while the others go on. After a failed change to a newer
 * buffer (5.1.8.3) these intervals are at most 100 ms.
 *
 * One thread at a time uses a set. No function may be called from a signal handler.
 */
#ifndef KMES_USER_READER_SET_H
#define KMES_USER_READER_SET_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

struct kmes_reader_set;

#define KMES_READER_SET_OPTIONS_0_20_BYTES 72u

/* Zero, or NULL in place of the whole, is the default of each field. Later releases add fields at
 * the end, after the padding. */
struct kmes_reader_set_options {
    /* sizeof(struct kmes_reader_set_options) in the program. 0: what release 0.20 has, and nothing
     * more is read. -EINVAL: less than that. -E2BIG: the program sets something that this library
     * does not have, or it is more than a page. */
    __u64 size;
    /* Nobody else sleeps on these rings: the caller promises it (E12). The default is safe with any
     * number of consumers; each event then costs the producer a wake once somebody has slept. */
    bool is_exclusive;
    /* Maps everything read-only. The set never asks for a wake: it looks every 10 ms, and the
     * producer does nothing for it. By the socket it has a lease like any other. -EINVAL with
     * is_exclusive or `configure`. */
    bool is_read_only;
    /* kmes_reader_set_wait and _poll return when so many bytes are unread in all, or so many ns
     * after they have seen the first of them, or when a ring is a quarter full. Both or neither is
     * set, else -EINVAL. The producer wakes nobody meanwhile. */
    __u64 watermark_bytes;
    __u64 watermark_ns;
    /* Fills the configuration of each reader: kmes_reader_by_libkmes is the default. `cpus`: how
     * many there are, or a negative error number. Both or neither. */
    void (*configure)(void* context, struct kmes_reader_config* config, __u16 cpu_id);
    int (*cpus)(void* context);
    void* context;
    /* One for each CPU, `places` of them: where a set of an earlier time has left off
     * (kmes_reader_set_get_place, kmes_places_read). CPUs beyond that start at the oldest event. */
    const struct kmes_reader_place* place;
    unsigned places;
};

KMES_STATIC_ASSERT(sizeof(struct kmes_reader_set_options) >= KMES_READER_SET_OPTIONS_0_20_BYTES,
                   "the options never shrink");

/*
 * Attaches to all CPUs. 0, also where some of them cannot be read now; what kmes_cpus_by_libkmes
 * says; -ENOMEM; the error of CPU 0 where none can be read. *set is NULL after an error. The number
 * of CPUs stays what it is now.
 */
int kmes_reader_set_open(struct kmes_reader_set** set,
                         const struct kmes_reader_set_options* options);

/* Detaches and frees. NULL is nothing. */
void kmes_reader_set_close(struct kmes_reader_set* set);

unsigned kmes_reader_set_cpus(const struct kmes_reader_set* set);

/* Why a CPU is not read now, a negative error number; else 0. -EINVAL: there is no such CPU. */
int kmes_reader_set_error(const struct kmes_reader_set* set, unsigned cpu);

/* Up to which event of a CPU the set has delivered; zero for a CPU that is not there. */
struct kmes_reader_place kmes_reader_set_get_place(const struct kmes_reader_set* set, unsigned cpu);

/* Whether a CPU goes on at its place of the options. */
enum kmes_resumed {
    KMES_RESUMED_NOT_YET, /* it could not be attached to until now */
    KMES_RESUMED_NO_PLACE,
    KMES_RESUMED_GOES_ON,     /* lost_before of its first event is what was lost in between */
    KMES_RESUMED_NEW_SESSION, /* another producer: it begins at the oldest event, and nobody knows
                                 how many events of the earlier producer were lost */
};

/*
 * What has become of a CPU's place when the set first attached to it; KMES_RESUMED_NO_PLACE for a
 * CPU that is not there. A producer in a kernel has no sessions. There it is another producer where
 * the kernel was booted again (kmes_places_read), or where the ring's last event has a lower
 * sequence number than the place. A module that was loaded again, and has published more events
 * than the earlier one since, cannot be told from it.
 */
enum kmes_resumed kmes_reader_set_resumed(const struct kmes_reader_set* set, unsigned cpu);

/* The statistics of one CPU, over all its buffers; zeros for a CPU that is not there. */
struct kmes_reader_statistics kmes_reader_set_statistics(const struct kmes_reader_set* set,
                                                         unsigned cpu);

/* The generation of the buffer that the set reads on a CPU, as it was when the set began to read it
 * (5.1.8.3); 0 for a CPU that is not there, or was never read. */
__u64 kmes_reader_set_generation(const struct kmes_reader_set* set, unsigned cpu);

/*
 * The next event of any CPU; `view` points to a copy that is good until the next call for this set.
 * KMES_READ_EVENT; KMES_READ_EMPTY: no CPU has one now; -ENOMEM: no room for an event of its size,
 * nothing is consumed.
 */
int kmes_reader_set_next(struct kmes_reader_set* set, struct kmes_event_view* view);

/* The next event where it lies. As kmes_reader_peek and the functions after it: what `view` shows
 * is to be believed only after kmes_reader_set_release has said true (E6). */
int kmes_reader_set_peek(struct kmes_reader_set* set, struct kmes_event_view* view);
bool kmes_reader_set_peek_is_whole(struct kmes_reader_set* set);
bool kmes_reader_set_release(struct kmes_reader_set* set);

/*
 * Delivers what is there to `function`, at most `most` events (0: until no CPU has any). How many
 * were delivered, or a negative error number: what `function` has returned, or -ENOMEM. Where
 * `function` returns something other than 0 no more events come; the one that it was given is
 * consumed, and the next call goes on after it.
 */
int kmes_reader_set_consume(struct kmes_reader_set* set, unsigned most,
                            kmes_event_function function, void* context);

/*
 * Sleeps until a CPU may have something new, for at most timeout_ns (KMES_NO_TIMEOUT: for ever).
 * 1: look again; -ETIMEDOUT; -EINTR; the error of CPU 0 where every CPU has one when the time is
 * over. Where the kernel cannot wait for several words at a time, and with more than 128 CPUs, it
 * looks every 10 ms.
 */
int kmes_reader_set_wait(struct kmes_reader_set* set, __u64 timeout_ns);

/* kmes_reader_set_wait, and kmes_reader_set_consume without a limit. How many were delivered: 0
 * where the time is over; or the error of either. */
int kmes_reader_set_poll(struct kmes_reader_set* set, __u64 timeout_ns,
                         kmes_event_function function, void* context);

/*
 * A descriptor for poll, epoll and event loops, which is readable while a CPU has something unread.
 * The first call makes it, and a thread that waits for the set. The descriptor belongs to the set:
 * do not read it, write it or close it. A negative error number: EMFILE, ENFILE, ENOMEM; EAGAIN
 * where no thread can be made.
 *
 *   struct epoll_event event = {.events = EPOLLIN};
 *   epoll_ctl(epoll, EPOLL_CTL_ADD, kmes_reader_set_fd(set), &event);
 *   while (epoll_wait(epoll, &event, 1, -1) >= 0)
 *       kmes_reader_set_consume(set, 0, on_event, context);
 *
 * It is readable at first. It becomes unreadable only in a call of this set that finds every CPU
 * empty: _next and _peek return KMES_READ_EMPTY, _consume returns because no CPU has any, _wait
 * does not return 1. Each event after that call makes it readable, also one that comes before the
 * call returns. An edge-triggered loop must therefore read until KMES_READ_EMPTY. It may be
 * readable without an event after a change of buffers, or where a producer has ended:
 * kmes_reader_set_error tells. With a watermark it becomes readable as kmes_reader_set_wait
 * returns.
 *
 * All functions of the set may be used beside it. They may wait for the thread while that attaches,
 * or asks a producer that does not answer; so may fork. The thread blocks all signals. It sleeps as
 * kmes_reader_set_wait does, and ends in kmes_reader_set_close.
 *
 * fork: the child reads its copy of the set without the descriptor, which is closed in the child;
 * it may call this function for a descriptor of its own.
 */
int kmes_reader_set_fd(struct kmes_reader_set* set);

KMES_EXTERN_C_END

#endif
