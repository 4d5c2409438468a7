/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reference consumer of one CPU's events: the drain loop, the sleep and the change of buffers
 * (5.1.8 with E1 to E4, E6, E7, E9, E11, E12, E15, E17, E19 to E21, E24). It uses no producer code.
 * Its input is a mapping, and a function that attaches to a newer buffer.
 *
 * The content of a mapping is hostile. Whatever it is, the reader stays inside the mapping, returns
 * from every call, and never moves its position back. At most one thread uses a reader at a time.
 *
 *     load:   write_pos, tail_pos        no event -> generation changed? -> the newer buffer
 *       ^         |                                             | no
 *       |     copy header, check bounds (E7)                  sleep (kmes_reader_wait)
 *       |     copy event, fence (E4)
 *       |         |
 *       +---- tail_pos again: past the event -> discard, continue at the tail (E20)
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
    void* base;         /* with the layout of 5.1.5; readable, and writable for need_wake */
    __u64 mapped_bytes; /* KMES_METADATA_BYTES + 2 x capacity */
    __u64 device;       /* st_dev and st_ino of the fd identify the buffer (E19) */
    __u64 inode;
    __u64 session;       /* identifies the producer; the sequence numbers of two sessions are
                            unrelated (E25). 0: a kernel, which has only one. Any other value: a
                            process, which may be killed, and numbers its events from 1 on */
    bool needs_barrier;  /* the producer executes no full fence; the reader executes the platform's
                            barrier before each sleep (SLEEP_BARRIER in order.h) */
    void* owner;         /* for the attach functions alone */
    __u64 next_sequence; /* identify: the number of the CPU's next event. The reader counts what is
                            lost from there on, if its ring is empty. 0: unknown */
};

/*
 * How a reader obtains buffers. The reader calls these functions from its own calls, never two at a
 * time. `attach` maps the CPU's current buffer. `identify` only identifies it (device, inode,
 * session). Both return 0 or a negative error number, which the reader returns to its caller.
 * `detach` unmaps and closes.
 */
struct kmes_attach_functions {
    int (*attach)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    int (*identify)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    void (*detach)(void* context, struct kmes_mapping* mapping);
    void* context;
};

/* Whether other consumers may sleep on the same buffer (E12). */
enum kmes_sharing {
    KMES_EXCLUSIVE, /* no: the reader clears need_wake, as 5.1.8.2 says */
    KMES_SHARED,    /* yes: the reader never clears need_wake, and every sleep has a limit */
};

/* The last event that a reader has delivered, or the event before those that it will deliver.
 * Another reader can continue after it. All zero: unknown, because the ring was empty. */
struct kmes_reader_place {
    __u64 session;
    __u64 last_sequence;
    bool is_known;
};

struct kmes_reader_config {
    struct kmes_attach_functions attach_functions;
    /*
     * Returns 1 if the CPU's producer still writes to `mapping`, which attach returned, 0 if not,
     * or a negative error number if no producer answers. Only kmes_reader_wait calls it, with the
     * context of attach_functions, and only if mapping->session is not 0 (E25). Optional: without
     * it the reader compares the mapping with the result of identify.
     */
    int (*is_current)(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    struct kmes_platform* platform; /* for its sleep */
    enum kmes_sharing sharing;
    __u64 shared_limit_ns; /* longest sleep of KMES_SHARED; 0: 100 ms */
    /* Where to continue (kmes_reader_get_place): the reader does not deliver events of the same
     * session up to this one again. For a kernel producer the place is valid until the next boot.
     */
    struct kmes_reader_place place;
    /* The approximate number of bytes that kmes_reader_bulk copies with one check. 0: 6 KiB, which
     * are still in the first-level cache when the caller takes the events. */
    __u64 bulk_bytes;
    __u32 spin_looks;     /* checks of write_pos before a sleep (5.1.8.2 step 4); 0: none */
    bool stop_on_corrupt; /* E7: corrupt content ends this CPU with -EBADMSG; false: skip it */
    __u16 cpu_id;         /* the CPU of the attach functions, and of each view */
};

struct kmes_reader_statistics {
    __u64 delivered;
    __u64 lost;      /* gaps in the sequence numbers of delivered events (5.1.9), and events that
                        were overwritten after the attach and before the first delivery */
    __u64 laps;      /* reads that began with the tail past the read position */
    __u64 torn;      /* copies discarded because the tail passed the event during the copy */
    __u64 corrupt;   /* impossible content that was not torn (E7) */
    __u64 not_newer; /* events that were already delivered from an older buffer (E21) */
    __u64 switches;  /* changes to another buffer */
    __u64 sleeps;
};

/* One CPU's reader. All fields but `statistics` are private. */
struct kmes_reader {
    struct kmes_reader_config config;
    struct kmes_mapping mapping;
    struct kmes_fields shared;
    struct kmes_reader_statistics statistics;
    __u64 capacity;
    __u64 read_pos;
    __u64 generation;      /* the value last seen in this mapping (E15) */
    __u64 last_sequence;   /* of the last delivered event of this CPU, over all buffers (E21).
                              Before the first delivery: the number before the first event that
                              counts as lost if it is overwritten */
    __u64 peeked_sequence; /* of the event in place, between peek and release */
    __u64 peeked_bytes;
    __u64 unasked_ns;   /* time slept since the last check for the producer (E25) */
    int producer_error; /* result of the last check: 0, or the error number of is_current or
                           identify. -ENOSYS: no producer serves; the reader keeps its buffer */
    bool has_sequence;  /* last_sequence is valid */
    bool is_replaced;   /* a new producer writes to another buffer; this buffer does not show it */
    bool stopped;       /* corrupt content with stop_on_corrupt; or the reader is not open */
};

/* The result of a call that reads. A value below 0 is a negative error number. */
enum kmes_read {
    KMES_READ_EMPTY = 0, /* no new event */
    KMES_READ_EVENT = 1,
};

/*
 * Attaches and checks the mapping. Returns 0, or the error of the attach function, or:
 *   -EPROTO           the magic is wrong: the mapping is not a KMES buffer
 *   -EPROTONOSUPPORT  the version is unknown
 *   -EINVAL           the capacity is not a power of two or does not fit the mapping (E14), or
 *                     data_offset is not that of the version
 * Reading begins at tail_pos (E11). Events that are overwritten after the attach are counted as
 * lost, also before the first delivered event. The reader needs their first number. It takes it
 * from the oldest event, or from the attach functions (next_sequence). It is 1 for an empty ring of
 * a kernel that was never written. For another empty ring it is unknown without next_sequence. Then
 * the count begins at the first delivered event.
 */
int kmes_reader_open(struct kmes_reader* reader, const struct kmes_reader_config* config);

/* Detaches. On a reader that is not open this does nothing. After it, every call that reads or
 * waits fails with -EBADF. */
void kmes_reader_close(struct kmes_reader* reader);

/* Returns the last event that this reader has delivered, also after kmes_reader_close. A new reader
 * of the same CPU that has it in its configuration continues after that event. Before the first
 * delivered event it is the one before the events of this reader. */
struct kmes_reader_place kmes_reader_get_place(const struct kmes_reader* reader);

/*
 * Copies the next event to `buffer`; `view` points into the copy. Attaches to a newer buffer where
 * necessary (5.1.8.3). Returns KMES_READ_EVENT, KMES_READ_EMPTY, or:
 *   -EMSGSIZE  the event is larger than buffer_bytes. view->event_size is its size; the event is
 *              not consumed
 *   -EBADMSG   corrupt content (stop_on_corrupt)
 *   other      an attach to a newer buffer failed. No event is lost; call again
 */
int kmes_reader_next(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_event_view* view);

/*
 * The next event in place, without a copy. The producer may overwrite the bytes of `view` at any
 * time (E6). Read them first, then call kmes_reader_release: trust a result that was computed from
 * these bytes only if it returns true. The lengths in `view` are safe to use before that (E7).
 * Returns as kmes_reader_next, but never -EMSGSIZE.
 */
int kmes_reader_peek(struct kmes_reader* reader, struct kmes_event_view* view);

/* Checks the event of kmes_reader_peek once more. True: it has not been overwritten so far, and the
 * caller may check it again. False: it was overwritten, or there is none. The peek is over then,
 * and reading continues at the tail. */
bool kmes_reader_peek_is_whole(struct kmes_reader* reader);

/* Ends a peek. True: the event was not overwritten so far. It is consumed and counts as delivered.
 * False: it was overwritten. Discard every result from its bytes; reading continues at the tail. */
bool kmes_reader_release(struct kmes_reader* reader);

/* Events that were copied together, with one check of the tail. */
struct kmes_bulk {
    const __u8* bytes; /* in the caller's buffer */
    __u64 left_bytes;
};

/*
 * Copies events to `buffer` with one check of the tail: as many as fit into config.bulk_bytes and
 * buffer_bytes, and at least one. If the tail passes some of them during the copy, the others are
 * kept, so a slow reader makes progress. After KMES_READ_EVENT take the events by kmes_bulk_next or
 * kmes_bulk_take before any other call; a later read returns events that were not taken again.
 * Other results as kmes_reader_next. For -EMSGSIZE, *needed_bytes is the size of the first event;
 * needed_bytes may be NULL.
 */
int kmes_reader_bulk(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_bulk* bulk, __u32* needed_bytes);

/* Takes the next event of a bulk. False at the end of the bulk. */
bool kmes_bulk_next(struct kmes_reader* reader, struct kmes_bulk* bulk,
                    struct kmes_event_view* view);

/* Takes the next events of a bulk, at most `count`; all of them count as delivered. Returns their
 * number, 0 at the end of the bulk. Costs less for each event than kmes_bulk_next. */
__u32 kmes_bulk_take(struct kmes_reader* reader, struct kmes_bulk* bulk,
                     struct kmes_event_view* views, __u32 count);

/*
 * Sleeps until a new event is possible, for at most timeout_ns (KMES_NO_TIMEOUT: no limit). Call it
 * after a read returned KMES_READ_EMPTY (5.1.8.2). Returns 1 if the caller must read again,
 * -ETIMEDOUT, -EINTR, or -EBADMSG if corrupt content has stopped the reader (stop_on_corrupt).
 *
 * A killed producer leaves its buffer unchanged (E25). If the session is not 0, the reader
 * therefore sleeps at most 1 s at a time. After 50 ms of sleep that timed out it checks for another
 * producer of the CPU. If there is one, the next read drains the old buffer and continues in the
 * new one, as after a change of generation. While no producer serves, the reader keeps the old
 * buffer, the call times out as before, and reader->producer_error is the reason.
 */
int kmes_reader_wait(struct kmes_reader* reader, __u64 timeout_ns);

/*
 * A wait in two halves, for a thread that waits for several readers (5.1.8.2). `begin` asks the
 * producer for a wake. If it returns 0, the caller waits on the shared futex *word (E17) with the
 * value `expected`, for at most limit_ns, and then calls `end`. If it returns 1, the caller reads
 * again and does not call `end`. Errors as kmes_reader_wait.
 */
struct kmes_wait {
    __u32* word;
    __u32 expected;
    __u64 limit_ns;
};
int kmes_reader_wait_begin(struct kmes_reader* reader, struct kmes_wait* wait);

/* After the sleep. `slept_ns` is the length of a sleep that timed out (about 1 ms if unknown), and
 * 0 after a wake. True if another producer has taken the CPU: the caller reads again (E25). */
bool kmes_reader_wait_end(struct kmes_reader* reader, __u64 slept_ns);

/* Published bytes that are not yet read. Any value if the content is corrupt. */
__u64 kmes_reader_unread_bytes(const struct kmes_reader* reader);

/* kmes_reader_run calls it for every event; `view` is valid until it returns. A result other than 0
 * ends the run. */
typedef int (*kmes_event_function)(void* context, const struct kmes_event_view* view);

/*
 * Delivers every event to `function`, and sleeps while there is none. Returns when `function`
 * returns another value than 0, with that value, or at an error other than -EINTR. An event that is
 * larger than buffer_bytes ends it with -EMSGSIZE.
 */
int kmes_reader_run(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                    kmes_event_function function, void* context);

KMES_EXTERN_C_END

#endif
