/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The events of all CPUs in the order of their time. C, no exceptions.
 *
 *   struct kmes_merge* merge;
 *   struct kmes_merge_options options = {.hold_ns = 10000000};
 *   int error = kmes_merge_open(&merge, set, &options);
 *   while (!error) {
 *       int count = kmes_merge_poll(merge, KMES_NO_TIMEOUT, on_event, context);
 *       if (count < 0) error = count;
 *   }
 *   kmes_merge_close(merge);
 *
 * An event comes at once where every CPU has a later one. Else a CPU that is empty may still
 * publish an earlier one, and the event is held until one of these is true:
 *
 *   - it is older than hold_ns by its timestamp, and every empty CPU was checked since;
 *   - it has been in here for hold_ns, and every empty CPU was checked since;
 *   - most_bytes are held.
 *
 * So an idle CPU, or one with an error, delays others by at most hold_ns. Where each event is
 * published within hold_ns of its timestamp, and fewer than most_bytes are held, the order is that
 * of the timestamps. Equal ones come in the order of their CPUs. The events of one CPU always come
 * in the order of their sequence numbers.
 *
 * An event that comes too late for its place is delivered at once, as out of order. So is the event
 * before which the clock of its CPU went back. Where it went back by more than hold_ns, the order
 * begins anew with that event; else the event keeps its place after the one before it.
 *
 * Nothing that a reader delivered is lost or repeated. One thread at a time uses a merge and its
 * set.
 */
#ifndef KMES_USER_MERGE_H
#define KMES_USER_MERGE_H

#include "kmes/user/reader_set.h"

KMES_EXTERN_C_BEGIN

struct kmes_merge;

/* Zero, or NULL in place of the whole, is the default of each field. */
struct kmes_merge_options {
    __u64 hold_ns; /* 0: 10 ms */
    /* Memory of events that are held; 0: 4 MiB. Beyond it each CPU has one bulk more, of up to
     * 16 KiB of events or one event, with 2.5 times as much for the views of small ones. */
    __u64 most_bytes;
};

struct kmes_merge_statistics {
    __u64 delivered;
    __u64 out_of_order; /* of those: with an earlier timestamp than one before it */
    __u64 forced;       /* of those: delivered early, because of most_bytes */
    __u64 held_bytes;   /* now */
};

/* 0, -ENOMEM. The set is the caller's, and is closed after the merge. Nobody else reads it. */
int kmes_merge_open(struct kmes_merge** merge, struct kmes_reader_set* set,
                    const struct kmes_merge_options* options);

/* Frees. The events that are held are dropped: see kmes_merge_flush. NULL is nothing. */
void kmes_merge_close(struct kmes_merge* merge);

/* The next event; `view` points to a copy that is good until the next call for this merge.
 * KMES_READ_EVENT; KMES_READ_EMPTY: none is due now; -ENOMEM: nothing is lost, call again.
 * *is_out_of_order (may be NULL): its timestamp is lower than one before it. */
int kmes_merge_next(struct kmes_merge* merge, struct kmes_event_view* view, bool* is_out_of_order);

/* Until no event is held, each one is due. They come in their order. */
void kmes_merge_flush(struct kmes_merge* merge);

/* How long until an event that is held is due, for an event loop that waits for the descriptor of
 * the set; KMES_NO_TIMEOUT: none is held. */
__u64 kmes_merge_due_ns(const struct kmes_merge* merge);

/* As kmes_reader_set_wait, and 1 also where an event that is held has become due. */
int kmes_merge_wait(struct kmes_merge* merge, __u64 timeout_ns);

/* Not 0: stop, as kmes_event_function. */
typedef int (*kmes_merge_function)(void* context, const struct kmes_event_view* view,
                                   bool is_out_of_order);

/* Waits, and delivers every event that is due. As kmes_reader_set_poll: a result of `function` that
 * is negative is returned, and the next call goes on after that event. */
int kmes_merge_poll(struct kmes_merge* merge, __u64 timeout_ns, kmes_merge_function function,
                    void* context);

/* Up to which event of a CPU the merge has delivered: use it in place of kmes_reader_set_get_place,
 * which counts events that are held. */
struct kmes_reader_place kmes_merge_get_place(const struct kmes_merge* merge, unsigned cpu);

struct kmes_merge_statistics kmes_merge_get_statistics(const struct kmes_merge* merge);

KMES_EXTERN_C_END

#endif
