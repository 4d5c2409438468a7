/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts that the files of the reader of all CPUs share. reader_set.c opens and reads,
 * reader_set_sleep.c waits, and reader_set_handle.c makes the descriptor readable. They are
 * private.
 */
#ifndef KMES_USER_READER_SET_PARTS_H
#define KMES_USER_READER_SET_PARTS_H

#include "kmes/user/futex.h"
#include "kmes/user/object_life.h"
#include "kmes/user/reader_set.h"

KMES_EXTERN_C_BEGIN

#define KMES_SET_NS_PER_MS 1000000ull

struct kmes_set_cpu {
    struct kmes_reader_config config;
    struct kmes_reader reader;
    struct kmes_reader_buffer buffer;    /* of the last event; only for the caller's thread */
    struct kmes_pending_attach* pending; /* of a read that must not wait for the producer */
    __u64 retry_at_ns;
    __u64 retry_ns; /* the last interval */
    int error;
    enum kmes_resumed resumed;
    bool is_open;
    bool is_asked; /* kmes_reader_wait_begin was called, and its end was not */
};

struct kmes_set_handle;

struct kmes_reader_set {
    struct kmes_reader_set_options options;
    struct kmes_object_life* life;
    struct kmes_set_handle* handle; /* NULL: kmes_reader_set_fd was not called */
    struct kmes_futex_wait* words;
    __u8* buffer;
    __u64 buffer_bytes;
    __u64 slept_at_ns;     /* the end of the caller's last sleep */
    unsigned asks_first;   /* the CPU that asks for its producer before the others */
    struct kmes_bulk bulk; /* of the CPU that has its turn; events may be left */
    unsigned taken;        /* in this turn */
    unsigned turn;
    unsigned cpus;
    bool is_peeked;
    struct kmes_set_cpu cpu[];
};

/* -- reader_set.c ------------------------------------------------------------------------------ */

/* Records the result of a call for the CPU's reader. An error delays the next attempt. */
void kmes_set_note_result(struct kmes_set_cpu* cpu, int result);

/* Opens the CPU if it is not open. False: it must not be tried again yet. */
bool kmes_set_is_readable(struct kmes_set_cpu* cpu);

/* False: every CPU has an error. */
bool kmes_set_is_any_readable(const struct kmes_reader_set* set);

/* As kmes_reader_bulk, into the buffer of the set, which grows with the events. -EMSGSIZE: no
 * memory for the next event. -EINPROGRESS: as kmes_set_peek. */
int kmes_set_read_bulk(struct kmes_reader_set* set, struct kmes_set_cpu* cpu,
                       struct kmes_bulk* bulk);

/* As kmes_reader_peek. -EINPROGRESS: the producer has not answered an attach so far. */
int kmes_set_peek(struct kmes_set_cpu* cpu, struct kmes_event_view* view);

/* Records the buffer of an event that the CPU's reader has returned. */
void kmes_set_note_buffer(struct kmes_set_cpu* cpu);

/* -- reader_set_sleep.c ------------------------------------------------------------------------ */

/* The words and the limit of one sleep. */
struct kmes_set_sleep {
    struct kmes_futex_wait* words;
    unsigned count;
    __u64 limit_ns;
};

/* Asks every CPU for a wake, and adds its word. True: there is an event, read again.
 * kmes_set_end_waits follows in both cases. */
bool kmes_set_begin_waits(struct kmes_reader_set* set, struct kmes_set_sleep* sleep);

/* Sleeps as kmes_futex_wait, on all words. */
int kmes_set_sleep_on(struct kmes_set_sleep* sleep);

/* Call it after the sleep. True: read again. */
bool kmes_set_end_waits(struct kmes_reader_set* set, __u64 slept_ns);

/* Returns the length of a fruitless sleep with this result (for kmes_reader_wait_end). */
__u64 kmes_set_slept_ns(const struct kmes_set_sleep* sleep, int result);

/* True if the unread bytes have reached the watermark, or if nothing is unread. */
bool kmes_set_is_enough(const struct kmes_reader_set* set);

/* Returns the end of a timeout that begins now; KMES_NO_TIMEOUT: never. */
__u64 kmes_set_deadline_ns(__u64 timeout_ns);

/* Returns the remaining time until it. */
__u64 kmes_set_left_ns(__u64 deadline_ns);

/* Returns the time until the next check of the watermark; 0: its time is over. */
__u64 kmes_set_watermark_step_ns(const struct kmes_reader_set* set, __u64 end_ns);

/* -- reader_set_handle.c ----------------------------------------------------------------------- */

/*
 * Called around each check for an event. `enter` returns true if the thread of the handle owns the
 * readers: it is locked out until `leave`. `found` is the result of the check.
 */
bool kmes_set_enter_scan(struct kmes_reader_set* set);
void kmes_set_leave_scan(struct kmes_reader_set* set, bool is_locked, int found);

/* Called around a wait of the caller. `is_over`: the wait found nothing. */
void kmes_set_enter_wait(struct kmes_reader_set* set);
void kmes_set_leave_wait(struct kmes_reader_set* set, bool is_over);

/* Called around a read-only access to the readers. */
void kmes_set_lock(const struct kmes_reader_set* set);
void kmes_set_unlock(const struct kmes_reader_set* set);

/* Ends the thread and closes the descriptor. */
void kmes_set_close_handle(struct kmes_reader_set* set);

KMES_EXTERN_C_END

#endif
