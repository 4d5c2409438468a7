/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A reader of all CPUs: one thread delivers the events of every CPU, and sleeps on all of them at
 * once. C, no exceptions.
 *
 *   struct kmes_reader_set* set;
 *   int error = kmes_reader_set_open(&set, NULL);
 *   while (!error) {
 *       int count = kmes_reader_set_poll(set, KMES_NO_TIMEOUT, on_event, context);
 *       if (count < 0) error = count;
 *   }
 *   kmes_reader_set_close(set);
 *
 * The events of one CPU come in their order. CPUs take turns, so a CPU whose ring is never empty
 * does not starve the others. The cpu_id of a view is the CPU of the ring, whatever the header of
 * the event says. A CPU that cannot be read has its own error and is tried again at intervals of up
 * to 1 s. The other CPUs continue. After a failed change to a newer buffer (5.1.8.3) these
 * intervals are at most 100 ms.
 *
 * A process that does not answer (SIGSTOP) delays a call by 10 ms, at most once a second in the
 * whole program. Its answer counts in a later call. Only kmes_reader_set_open waits for it, for at
 * most 30 s. CPUs that are not attached then are attached in later calls.
 *
 * At most one thread uses a set at a time. A signal handler may call no function of it.
 */
#ifndef KMES_USER_READER_SET_H
#define KMES_USER_READER_SET_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

struct kmes_reader_set;

#define KMES_READER_SET_OPTIONS_0_20_BYTES 72u

/* A field that is zero has its default; NULL for the whole means all defaults. Later releases add
 * fields at the end, after the padding. */
struct kmes_reader_set_options {
    /* sizeof(struct kmes_reader_set_options) in the program. 0 means the size of release 0.20;
     * nothing past it is read. -EINVAL: the size is less than that. -E2BIG: the program sets a
     * field that this library lacks, or the size is more than a page. */
    __u64 size;
    /* The caller promises that no other consumer sleeps on these rings (E12). The default is safe
     * with any number of consumers. Each event then costs the producer a wake once a consumer has
     * slept. */
    bool is_exclusive;
    /* Maps everything read-only. The set never asks for a wake: it checks every 10 ms, at no cost
     * to the producer. By the socket it has a lease like any other. -EINVAL with is_exclusive or
     * `configure`. */
    bool is_read_only;
    /* kmes_reader_set_wait and _poll return when the unread bytes of all CPUs reach
     * watermark_bytes, or when a ring is a quarter full. They also return so many ns after they
     * have seen the first unread byte. Set both fields or neither, otherwise -EINVAL. The producer
     * sends no wake meanwhile. */
    __u64 watermark_bytes;
    __u64 watermark_ns;
    /* Fills the configuration of each reader, whose cpu_id is set before the call;
     * kmes_reader_by_libkmes is the default. `cpus` returns the number of CPUs, or a negative error
     * number. Set both or neither. */
    void (*configure)(void* context, struct kmes_reader_config* config, __u16 cpu_id);
    int (*cpus)(void* context);
    void* context;
    /* One place for each CPU, `places` of them: where an earlier set stopped
     * (kmes_reader_set_get_place, kmes_places_read). Further CPUs start at the oldest event. */
    const struct kmes_reader_place* place;
    unsigned places;
};

KMES_STATIC_ASSERT(sizeof(struct kmes_reader_set_options) >= KMES_READER_SET_OPTIONS_0_20_BYTES,
                   "the options never shrink");

/*
 * Attaches to all CPUs. Returns 0, even if some of them cannot be read now. Errors are those of
 * kmes_cpus_by_libkmes, -ENOMEM, and the error of CPU 0 if none can be read. *set is NULL after an
 * error. The number of CPUs is constant for the set.
 */
int kmes_reader_set_open(struct kmes_reader_set** set,
                         const struct kmes_reader_set_options* options);

/* Detaches and frees. NULL has no effect. A function that _consume or _poll calls may close the
 * set. That call then touches nothing of it, and returns -EBADF or the negative result of the
 * function. */
void kmes_reader_set_close(struct kmes_reader_set* set);

unsigned kmes_reader_set_cpus(const struct kmes_reader_set* set);

/* Returns the negative error number of a CPU that cannot be read now, otherwise 0. -EINVAL: no such
 * CPU. -ENOSYS: no producer serves. If it was killed, its events can still be read. A set finds
 * that out by waits in which no event comes, each CPU about once a second. -ETIMEDOUT: a process
 * has not answered for a second. The set checks for its answer in later calls. */
int kmes_reader_set_error(const struct kmes_reader_set* set, unsigned cpu);

/* Returns the last event of a CPU that the set has delivered, or the one before its first event;
 * zero for a CPU that does not exist. */
struct kmes_reader_place kmes_reader_set_get_place(const struct kmes_reader_set* set, unsigned cpu);

/* The result for a CPU's place in the options. */
enum kmes_resumed {
    KMES_RESUMED_NOT_YET, /* no attach has succeeded so far */
    KMES_RESUMED_NO_PLACE,
    KMES_RESUMED_GOES_ON,     /* continues; lost_before of its first event counts the events lost in
                                 between */
    KMES_RESUMED_NEW_SESSION, /* another producer: starts at the oldest event. If it is a process,
                                 lost_before of its first event counts what that producer emitted
                                 before; if it is a kernel, what was lost since the attach. The loss
                                 at the earlier producer is unknown */
};

/*
 * Returns the result for a CPU's place at the first attach; KMES_RESUMED_NO_PLACE for a CPU that
 * does not exist. A producer in a kernel has no sessions. The set recognises another kernel
 * producer if the kernel has booted again (kmes_places_read). It also does so if the ring's last
 * event has a lower sequence number than the place, or if the ring is empty. It cannot recognise a
 * reloaded module that has published more events than the earlier one since.
 */
enum kmes_resumed kmes_reader_set_resumed(const struct kmes_reader_set* set, unsigned cpu);

/* Returns the statistics of one CPU, over all its buffers; zeros for a CPU that does not exist. */
struct kmes_reader_statistics kmes_reader_set_statistics(const struct kmes_reader_set* set,
                                                         unsigned cpu);

/* Returns the generation of the buffer that the set reads on a CPU, as loaded when the set began to
 * read it (5.1.8.3). 0 for a CPU that does not exist, or was never read. */
__u64 kmes_reader_set_generation(const struct kmes_reader_set* set, unsigned cpu);

/* The buffer of an event. Later releases add fields at the end. */
struct kmes_reader_buffer {
    __u64 session;    /* of its producer, as in struct kmes_mapping */
    __u64 generation; /* as loaded when the set began to read the buffer (5.1.8.3) */
    __u64 switches;   /* changes of buffers of this CPU before it, as in the statistics; another
                         value than at the previous event of the CPU: another buffer */
};

/*
 * Returns the buffer of the last event of a CPU that the set has returned, delivered or not; zeros
 * before the first event. NULL: no such CPU. The pointer is valid until the set is closed, and a
 * call that returns an event of the CPU changes its content. It takes no lock, so it is cheap for
 * each event, also inside the event function.
 */
const struct kmes_reader_buffer* kmes_reader_set_buffer(const struct kmes_reader_set* set,
                                                        unsigned cpu);

/*
 * Returns the next event of any CPU. `view` points to a copy that is valid until the next call for
 * this set. The result is KMES_READ_EVENT, KMES_READ_EMPTY if no CPU has an event, or -ENOMEM.
 * After -ENOMEM there is no memory for an event of this size, which is not consumed.
 */
int kmes_reader_set_next(struct kmes_reader_set* set, struct kmes_event_view* view);

/* Returns the next event in place. As kmes_reader_peek and its related functions: trust the content
 * of `view` only after kmes_reader_set_release has returned true (E6). */
int kmes_reader_set_peek(struct kmes_reader_set* set, struct kmes_event_view* view);
bool kmes_reader_set_peek_is_whole(struct kmes_reader_set* set);
bool kmes_reader_set_release(struct kmes_reader_set* set);

/*
 * Delivers available events to `function`, at most `most` (0: until every CPU is empty). Returns
 * the number of delivered events, -ENOMEM, or a negative result of `function`. If `function`
 * returns another value than 0, the call ends. The event of that invocation is consumed, and the
 * next call continues after it. -EBADF: `function` has closed the set.
 */
int kmes_reader_set_consume(struct kmes_reader_set* set, unsigned most,
                            kmes_event_function function, void* context);

/*
 * Sleeps until a CPU may have a new event, for at most timeout_ns (KMES_NO_TIMEOUT: no limit).
 * Returns 1 if the caller must read again, -ETIMEDOUT, -EINTR, or the error of CPU 0 if every CPU
 * has an error at the timeout. It checks every 10 ms with more than 128 CPUs, and if the kernel
 * cannot wait for several words at once. A producer that does not answer delays the return by up to
 * a second if it gave no lease of a CPU (libkmes.h).
 */
int kmes_reader_set_wait(struct kmes_reader_set* set, __u64 timeout_ns);

/* kmes_reader_set_wait, then kmes_reader_set_consume without a limit. Returns the number of
 * delivered events (0 after the timeout), or the error of either. */
int kmes_reader_set_poll(struct kmes_reader_set* set, __u64 timeout_ns,
                         kmes_event_function function, void* context);

/*
 * Returns a descriptor for poll, epoll and event loops, which is readable while a CPU has unread
 * events. The first call makes it, and a thread that waits for the set. The descriptor belongs to
 * the set: do not read it, write it or close it. After closefrom, the next call makes another one.
 * Errors, as negative numbers: EMFILE, ENFILE, ENOMEM, and EAGAIN if no thread can be made.
 *
 *   struct epoll_event event = {.events = EPOLLIN};
 *   epoll_ctl(epoll, EPOLL_CTL_ADD, kmes_reader_set_fd(set), &event);
 *   while (epoll_wait(epoll, &event, 1, -1) >= 0)
 *       kmes_reader_set_consume(set, 0, on_event, context);
 *
 * It is readable at first. It becomes unreadable only in a call of this set that finds every CPU
 * empty. This is a _next or _peek that returns KMES_READ_EMPTY, or a _wait that does not return 1.
 * It is also a _consume that returns because no CPU has an event. Each event after that call makes
 * it readable, even if it comes before the call returns. An edge-triggered loop must therefore read
 * until KMES_READ_EMPTY. It may be readable without an event after a change of buffers, or after
 * the end of a producer; kmes_reader_set_error distinguishes them. With a watermark it becomes
 * readable when kmes_reader_set_wait would return.
 *
 * All functions of the set may be used together with it. They and fork may wait for the thread
 * while it attaches, or asks for a producer. The thread blocks all signals.
 * It sleeps as kmes_reader_set_wait does, and ends in kmes_reader_set_close.
 */
int kmes_reader_set_fd(struct kmes_reader_set* set);

KMES_EXTERN_C_END

#endif
