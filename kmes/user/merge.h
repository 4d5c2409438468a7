/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The events of all CPUs in the order of their timestamps. C, no exceptions.
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
 * An event is due at once if every CPU has a later one. Otherwise an empty CPU may still publish an
 * earlier event, so the merge holds the event until one of these is true:
 *
 *   - it is older than hold_ns by its timestamp, and every empty CPU was checked since;
 *   - the merge has held it for hold_ns, and every empty CPU was checked since;
 *   - most_bytes are held.
 *
 * An idle CPU, or a CPU with an error, thus delays others by at most hold_ns. The order is that of
 * the timestamps if each event is published within hold_ns of its timestamp and fewer than
 * most_bytes are held. Equal timestamps come in the order of their CPUs. The events of one CPU
 * always come in the order of their sequence numbers.
 *
 * An event that comes too late for its place is delivered at once, as out of order. The same holds
 * for an event whose timestamp is below that of the event before it on the same CPU. If the clock
 * of the CPU went back by more than hold_ns, the order restarts with that event. Held events of
 * other CPUs from before the step precede it. Otherwise the event keeps its place after the one
 * before it. The order restarts at most once in each hold_ns.
 *
 * The merge neither loses nor repeats an event that a reader delivered. The cpu_id of a view is the
 * CPU of the ring. At most one thread uses a merge and its set at a time.
 */
#ifndef KMES_USER_MERGE_H
#define KMES_USER_MERGE_H

#include "kmes/user/reader_set.h"

KMES_EXTERN_C_BEGIN

struct kmes_merge;

/* A field that is zero has its default; NULL for the whole means all defaults. */
struct kmes_merge_options {
    __u64 hold_ns; /* 0: 10 ms */
    /* Memory of held events; 0: 4 MiB. In addition each CPU has one bulk: up to 16 KiB of events,
     * or one event. The views of small events take 2.5 times as much. */
    __u64 most_bytes;
};

struct kmes_merge_statistics {
    __u64 delivered;
    __u64 out_of_order; /* part of `delivered`: too late for its place, see kmes_merge_next */
    __u64 forced;       /* part of `delivered`: delivered early, because of most_bytes */
    __u64 held_bytes;   /* now */
};

/* 0, -ENOMEM. The set belongs to the caller, who closes it after the merge. Nothing else may read
 * from it. */
int kmes_merge_open(struct kmes_merge** merge, struct kmes_reader_set* set,
                    const struct kmes_merge_options* options);

/* Frees. Drops the held events: see kmes_merge_flush. NULL has no effect. A function that
 * kmes_merge_poll calls may close the merge, and then its set. That call then returns -EBADF or the
 * negative result of the function. */
void kmes_merge_close(struct kmes_merge* merge);

/* Returns the next event. `view` points to a copy that is valid until the next call for this merge.
 * The result is KMES_READ_EVENT, KMES_READ_EMPTY if no event is due now, or -ENOMEM. After -ENOMEM
 * no event is lost; call again. *is_out_of_order (may be NULL) is true if the timestamp is below
 * that of an earlier event. It is also true if the order restarted after the event was stamped. */
int kmes_merge_next(struct kmes_merge* merge, struct kmes_event_view* view, bool* is_out_of_order);

/* Makes every held event due, in their order, until none is held. */
void kmes_merge_flush(struct kmes_merge* merge);

/* Returns the time until a held event is due, for an event loop that waits for the descriptor of
 * the set. KMES_NO_TIMEOUT: none is held. */
__u64 kmes_merge_due_ns(const struct kmes_merge* merge);

/* As kmes_reader_set_wait, and also returns 1 if a held event has become due. */
int kmes_merge_wait(struct kmes_merge* merge, __u64 timeout_ns);

/* A result other than 0 ends the call, as for kmes_event_function. */
typedef int (*kmes_merge_function)(void* context, const struct kmes_event_view* view,
                                   bool is_out_of_order);

/* Waits, and delivers every event that is due. As kmes_reader_set_poll: it returns a negative
 * result of `function`, and the next call continues after that event. */
int kmes_merge_poll(struct kmes_merge* merge, __u64 timeout_ns, kmes_merge_function function,
                    void* context);

/* Returns the last event of a CPU that the merge has delivered. Use it instead of
 * kmes_reader_set_get_place, which counts held events. */
struct kmes_reader_place kmes_merge_get_place(const struct kmes_merge* merge, unsigned cpu);

/* As kmes_reader_set_buffer, for the last event of a CPU that the merge has delivered. The pointer
 * is valid until the merge is closed. */
const struct kmes_reader_buffer* kmes_merge_buffer(const struct kmes_merge* merge, unsigned cpu);

struct kmes_merge_statistics kmes_merge_get_statistics(const struct kmes_merge* merge);

KMES_EXTERN_C_END

#endif
