/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reference consumer of one CPU's events: the drain loop, the sleep and the change of buffers
 * (5.1.8 with E1 to E4, E6, E7, E9, E11, E12, E15, E17, E19 to E21, E24). Knows no producer code:
 * what it is given is a mapping, and a function that attaches to a newer one.
 *
 * Everything in a mapping is taken as hostile: whatever stands there, the reader stays inside the
 * mapping, ends every call, and never moves back. One reader is used by one thread at a time.
 *
 *      look:  write_pos, tail_pos        nothing there -> generation changed? -> the newer buffer
 *       ^         |                                             | no
 *       |     copy header, check bounds (E7)                  sleep (kmes_reader_wait)
 *       |     copy event, fence (E4)
 *       |         |
 *       +---- tail_pos again: passed us -> discard, move to it, look again (E20)
 *                 |
 *             deliver the copy (E6)
 */
#ifndef KMES_READER_H
#define KMES_READER_H

#include "kmes/abi.h"
#include "kmes/event.h"
#include "kmes/platform.h"

KMES_EXTERN_C_BEGIN

/* One buffer, mapped by the attach function. */
struct kmes_mapping {
    void* base;         /* as 5.1.5 lays it out, readable and, for need_wake, writable */
    __u64 mapped_bytes; /* 4096 + 2 x capacity */
    __u64 device;       /* st_dev and st_ino of the fd: say which buffer it is (E19) */
    __u64 inode;
    __u64 session;      /* which producer: sequence numbers of two sessions have nothing in common
                           (E25); always 0 where there is only one, as in a kernel. Any other value
                           says that the producer is a process, which may be killed */
    bool needs_barrier; /* the producer has no full fence of its own: the reader executes the
                           platform's barrier before each sleep (SLEEP_BARRIER in order.h) */
    void* owner;        /* for the attach functions alone */
};

/*
 * How a reader gets at buffers. All three are called from inside the reader's calls, never two at a
 * time. `attach` maps the buffer that the CPU's producer writes to now; `identify` only says which
 * one that is (device, inode, session); both return 0 or a negative error number, which the reader
 * hands on. `detach` unmaps and closes.
 */
struct kmes_attach_functions {
    int (*attach)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    int (*identify)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    void (*detach)(void* context, struct kmes_mapping* mapping);
    void* context;
};

/* Who else may sleep on the same buffer (E12). */
enum kmes_sharing {
    KMES_EXCLUSIVE, /* nobody: need_wake is cleared, as 5.1.8.2 says */
    KMES_SHARED,    /* somebody may: need_wake is never cleared, and every sleep has a limit */
};

/* Up to which event a reader has delivered, for another reader that goes on from there. Zero: none
 * was delivered. */
struct kmes_reader_place {
    __u64 session;
    __u64 last_sequence;
    bool is_known;
};

struct kmes_reader_config {
    struct kmes_attach_functions attach_functions;
    /*
     * Whether the CPU's producer still writes to `mapping`, which attach gave: 1 yes, 0 no, or a
     * negative error number where nobody answers. Asked by kmes_reader_wait alone, with the context
     * of attach_functions, and only where mapping->session is not 0 (E25). Optional: without it
     * the reader compares the mapping with what identify says.
     */
    int (*is_current)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    struct kmes_platform* platform; /* for its sleep */
    enum kmes_sharing sharing;
    __u64 shared_limit_ns; /* longest sleep of KMES_SHARED; 0: 100 ms */
    /* Where to go on (kmes_reader_get_place): events of the same session up to this one are not
     * delivered again. For a producer in the kernel it is good until the next boot. */
    struct kmes_reader_place place;
    /* About how many bytes kmes_reader_bulk copies with one check; 0: 6 KiB, which are still in the
     * nearest cache when their events are taken. */
    __u64 bulk_bytes;
    __u32 spin_looks;     /* looks at write_pos before a sleep (5.1.8.2 step 4); 0: none */
    bool stop_on_corrupt; /* E7: corrupt content ends this CPU with -EBADMSG; else it is skipped */
    __u16 cpu_id;
};

struct kmes_reader_statistics {
    __u64 delivered;
    __u64 lost;      /* by the sequence numbers, between delivered events (5.1.9) */
    __u64 laps;      /* times that the tail had passed the read position before a read */
    __u64 torn;      /* reads that were discarded because the tail passed during them */
    __u64 corrupt;   /* times that content was impossible, and not torn (E7) */
    __u64 not_newer; /* events that an older buffer had delivered already (E21) */
    __u64 switches;  /* changes to another buffer */
    __u64 sleeps;
};

/* One CPU's reader. Fields are the reader's own, but for `statistics`. */
struct kmes_reader {
    struct kmes_reader_config config;
    struct kmes_mapping mapping;
    struct kmes_fields shared;
    struct kmes_reader_statistics statistics;
    __u64 capacity;
    __u64 read_pos;
    __u64 generation;      /* the value last seen in this mapping (E15) */
    __u64 last_sequence;   /* of the last delivered event of this CPU, over all buffers (E21) */
    __u64 peeked_sequence; /* of the event in place, between peek and release */
    __u64 peeked_bytes;
    __u64 unasked_ns;   /* slept since the producer was asked for last (E25) */
    int producer_error; /* what the last question got: 0, or the error number of is_current or
                           identify. -ENOSYS: nobody serves now; the reader keeps its buffer */
    bool has_sequence;  /* last_sequence is one */
    bool is_replaced;   /* the CPU's producer writes to another buffer, and nothing here says so */
    bool stopped;       /* corrupt content, and stop_on_corrupt; or it is not open */
};

/* What a call that looks for an event found. Everything below 0 is a negative error number. */
enum kmes_read {
    KMES_READ_EMPTY = 0, /* nothing new now */
    KMES_READ_EVENT = 1,
};

/*
 * Attaches and checks the mapping: 0; -EPROTO where it is no KMES buffer (magic), -EPROTONOSUPPORT
 * for an unknown version, -EINVAL for a capacity that is no power of two or does not fit the
 * mapping (E14), or a data_offset that is not that of the version; or what the attach function
 * said. Reading begins at tail_pos (E11).
 */
int kmes_reader_open(struct kmes_reader* reader, const struct kmes_reader_config* config);

/* Detaches. A reader that was not opened, or is closed, stays so: every call that reads or waits
 * fails with -EBADF then. */
void kmes_reader_close(struct kmes_reader* reader);

/* Up to which event this reader has delivered, also after kmes_reader_close: for the configuration
 * of a reader of the same CPU that goes on there, and delivers none of them again. */
struct kmes_reader_place kmes_reader_get_place(const struct kmes_reader* reader);

/*
 * The next event, copied to `buffer`; `view` points into it. KMES_READ_EVENT; KMES_READ_EMPTY;
 * -EMSGSIZE where it has more than buffer_bytes: view->event_size says how many, nothing is
 * consumed; -EBADMSG for corrupt content (stop_on_corrupt); what attaching to a newer buffer said:
 * nothing is lost, call again. Changes buffers by itself (5.1.8.3).
 */
int kmes_reader_next(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_event_view* view);

/*
 * The next event where it lies, without a copy. E6: what `view` points to may be overwritten at any
 * time. Use it, and then ask kmes_reader_release whether it was whole: only after that yes may
 * anything that was made of it be believed. The lengths in `view` are safe to use before (E7).
 * Returns as kmes_reader_next, never -EMSGSIZE.
 */
int kmes_reader_peek(struct kmes_reader* reader, struct kmes_event_view* view);

/* True: what kmes_reader_peek showed was whole until now. Consumes nothing; repeat it at will. */
bool kmes_reader_peek_is_whole(struct kmes_reader* reader);

/* Ends a peek. True: the event was whole until now, counts as delivered, and is consumed. False: it
 * was overwritten meanwhile; throw away what was made of it. Reading goes on at the tail. */
bool kmes_reader_release(struct kmes_reader* reader);

/* Many events copied with one check. */
struct kmes_bulk {
    const __u8* bytes; /* in the caller's buffer */
    __u64 left_bytes;
};

/*
 * Copies events to `buffer` with one check of the tail: as many as config.bulk_bytes and
 * buffer_bytes have room for, and one at least. Events at or after the new tail are kept, so that a
 * slow reader at the tail is not starved. KMES_READ_EVENT: take them by kmes_bulk_next or
 * kmes_bulk_take before any other call; those that are left then are read again. Else as
 * kmes_reader_next; -EMSGSIZE: *needed_bytes (may be NULL) says what the first event takes.
 */
int kmes_reader_bulk(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_bulk* bulk, __u32* needed_bytes);

/* The next event of a bulk; false at its end. */
bool kmes_bulk_next(struct kmes_reader* reader, struct kmes_bulk* bulk,
                    struct kmes_event_view* view);

/* The next events of a bulk, at most `count`, which are all delivered then; how many: 0 at its end.
 * Costs less for each event than kmes_bulk_next. */
__u32 kmes_bulk_take(struct kmes_reader* reader, struct kmes_bulk* bulk,
                     struct kmes_event_view* views, __u32 count);

/*
 * Sleeps until there may be something new, for at most timeout_ns (KMES_NO_TIMEOUT: for ever).
 * 1: look again; -ETIMEDOUT; -EINTR; -EBADMSG for a reader that corrupt content has stopped
 * (stop_on_corrupt). Call it when a read said KMES_READ_EMPTY (5.1.8.2).
 *
 * A producer that is killed changes nothing in its buffer (E25). So where the session is not 0 the
 * reader sleeps for 1 s at most at a time, and asks after 50 ms of sleep that timed out whether
 * another producer has taken the CPU. If so, the next read drains the old buffer and goes on in the
 * new one, as after a change of generation. While nobody serves it keeps the old buffer, the call
 * times out as before, and reader->producer_error says why.
 */
int kmes_reader_wait(struct kmes_reader* reader, __u64 timeout_ns);

/*
 * A wait in two halves, for a thread that waits for several readers at a time (5.1.8.2). `begin`
 * asks to be woken. 0: the caller sleeps by a shared futex (E17) while *word is `expected`, for
 * limit_ns at most, and then calls `end`. 1: look again, there is nothing to end. Errors as
 * kmes_reader_wait.
 */
struct kmes_wait {
    __u32* word;
    __u32 expected;
    __u64 limit_ns;
};
int kmes_reader_wait_begin(struct kmes_reader* reader, struct kmes_wait* wait);

/* After the sleep. `slept_ns`: how long it found nothing (about 1 ms where that is not known); 0
 * where it was woken. True: another producer has taken the CPU, look again (E25). */
bool kmes_reader_wait_end(struct kmes_reader* reader, __u64 slept_ns);

/* Bytes that are published and not read: any value, where the content is corrupt. */
__u64 kmes_reader_unread_bytes(const struct kmes_reader* reader);

/* Called for every event by kmes_reader_run; `view` is good until it returns. Not 0: stop. */
typedef int (*kmes_event_function)(void* context, const struct kmes_event_view* view);

/*
 * Delivers every event to `function` and sleeps in between, for ever, until `function` returns
 * something other than 0 (handed on), or an error comes that is not -EINTR. `buffer` must take the
 * largest event, or -EMSGSIZE comes.
 */
int kmes_reader_run(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                    kmes_event_function function, void* context);

KMES_EXTERN_C_END

#endif
