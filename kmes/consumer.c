// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The drain loop: 5.1.8.1 with E4, E6, E7, E20, E21, E24, E26, in three forms (a copy, in place,
 * bulk). Barriers carry the labels of kmes/order.h, which has the index of pairs.
 */
#include "kmes/order.h"
#include "kmes/reader_parts.h"

#define KMES_BULK_BYTES (6u << 10)

/* 5.1.8.3, after the reader has drained its buffer. Also for a killed producer, which leaves the
 * buffer unchanged (E25). Returns 1 if the caller must check again, 0 if there is no newer buffer,
 * or an error. */
static KMES_NOINLINE int follow_generation(struct kmes_reader* reader) {
    /* LOAD_GENERATION pairs with GENERATION (E24): a later load of write_pos returns the last one
     * of this buffer. */
    __u64 generation = kmes_load_acquire_u64(reader->shared.generation, KMES_ORDER_LOAD_GENERATION);
    int error;

    if (generation == reader->generation && !reader->is_replaced)
        return 0; /* E9, E15: any difference from the first loaded value counts */
    if (reader->read_pos <
        kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_FROZEN_WRITE_POS))
        return 1; /* E10: events that the new buffer may lack are still here */
    error = kmes_reader_switch(reader, generation);
    return error ? error : 1;
}

/* Returns the error of a reader that has stopped. */
int kmes_reader_stop_error(const struct kmes_reader* reader) {
    return reader->mapping.base ? -EBADMSG : -EBADF;
}

/* The steps of every event are inline in each of the three forms: a header that is passed by its
 * address goes through memory. */

/* 5.1.8.1 steps 1 to 3: sets *available_bytes to the published bytes after the read position, which
 * is not lapped. write_pos is loaded before tail_pos, so no race of a correct producer gives more
 * bytes than the capacity (E26). */
static KMES_ALWAYS_INLINE int load_positions(struct kmes_reader* reader, __u64* available_bytes) {
    for (;;) {
        __u64 write_pos, tail_pos;
        int follow;

        if (reader->stopped) return kmes_reader_stop_error(reader);
        write_pos = kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_LOAD_WRITE_POS);
        if (reader->read_pos >= write_pos) { /* E20: not only equal */
            follow = follow_generation(reader);
            if (follow > 0) continue;
            return follow; /* 0 is KMES_READ_EMPTY */
        }
        tail_pos = kmes_load_acquire_u64(reader->shared.tail_pos, KMES_ORDER_LOAD_TAIL);
        if (reader->read_pos >= tail_pos) {
            *available_bytes = write_pos - reader->read_pos;
            return KMES_READ_EVENT;
        }
        reader->statistics.laps++;
        reader->read_pos = tail_pos; /* E20: and back to step 1, the buffer may be empty */
    }
}

/*
 * 5.1.8.1 step 5: true if no byte at or after the read position has been overwritten so far.
 * Otherwise the read position moves to the tail. DATA_FENCE pairs with TAIL_FENCE (E4): the data is
 * read before the tail.
 */
static KMES_ALWAYS_INLINE bool recheck_tail(struct kmes_reader* reader) {
    __u64 tail_pos;

    kmes_fence_acquire(KMES_ORDER_DATA_FENCE);
    tail_pos = kmes_load_relaxed_u64(reader->shared.tail_pos, KMES_ORDER_RECHECK_TAIL);
    if (KMES_LIKELY(tail_pos <= reader->read_pos)) return true;
    reader->statistics.torn++;
    reader->read_pos = tail_pos;
    return false;
}

static void read_data(const struct kmes_reader* reader, void* to, __u64 bytes) {
    kmes_copy_out(to, reader->shared.data, reader->capacity, reader->read_pos, bytes,
                  KMES_ORDER_READ_DATA);
}

static void read_header(const struct kmes_reader* reader, __u64 pos,
                        struct kmes_event_header* header) {
    struct kmes_event_words words;

    kmes_copy_out_words(words.word, reader->shared.data, reader->capacity, pos, sizeof(*header),
                        KMES_ORDER_READ_DATA);
    kmes_event_header_from(header, &words);
}

/*
 * 5.1.8.1 steps 1 to 4 for the header alone. The header is sound, so its lengths are safe to use
 * (E7). It may be torn until recheck_tail returns true.
 */
static KMES_ALWAYS_INLINE int find_event(struct kmes_reader* reader,
                                         struct kmes_event_header* header, __u64* available_bytes) {
    for (;;) {
        int found = load_positions(reader, available_bytes);

        if (found != KMES_READ_EVENT) return found;
        /* E26: here the read position is at or after the tail, and no producer publishes more than
         * the capacity after its tail. A reader that trusted such a write_pos would read old events
         * of the ring again. */
        if (KMES_LIKELY(*available_bytes <= reader->capacity)) {
            read_header(reader, reader->read_pos, header);
            if (KMES_LIKELY(kmes_event_check(header, *available_bytes) == KMES_EVENT_IS_SOUND))
                return KMES_READ_EVENT;
        }
        if (!recheck_tail(reader)) continue;
        reader->statistics.corrupt++;
        if (reader->config.stop_on_corrupt)
            reader->stopped = true;
        else
            reader->read_pos += *available_bytes; /* to write_pos: never back, never a loop */
    }
}

/*
 * Returns the number of the oldest event, as a read would find it, and 0 if there is none or its
 * content is impossible. *write_pos: the value that was loaded last. Each load of write_pos comes
 * before the one of the tail, as in find_event (E26), and the fence is that of recheck_tail (E4).
 */
static __u64 find_oldest(const struct kmes_reader* reader, __u64* write_pos) {
    __u64 pos = reader->read_pos;

    for (;;) {
        struct kmes_event_header header;
        __u64 sequence = 0;
        __u64 tail_pos;

        *write_pos = kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_LOAD_WRITE_POS);
        if (pos >= *write_pos) return 0;
        if (*write_pos - pos <= reader->capacity) {
            read_header(reader, pos, &header);
            if (kmes_event_check(&header, *write_pos - pos) == KMES_EVENT_IS_SOUND)
                sequence = header.sequence;
        }
        kmes_fence_acquire(KMES_ORDER_DATA_FENCE);
        tail_pos = kmes_load_relaxed_u64(reader->shared.tail_pos, KMES_ORDER_RECHECK_TAIL);
        if (tail_pos <= pos) return sequence;
        pos = tail_pos;
    }
}

/* If the oldest event is later than the next event at the attach, the events between are lost. */
void kmes_reader_begin_count(struct kmes_reader* reader, __u64 next_sequence) {
    __u64 write_pos;
    __u64 oldest = find_oldest(reader, &write_pos);

    if (write_pos == 0 && !next_sequence && !reader->mapping.session &&
        reader->generation == KMES_FIRST_GENERATION)
        oldest = 1; /* 5.1.2: nothing was emitted, or the hand-over would have brought it here */
    if (oldest && (!next_sequence || oldest < next_sequence)) next_sequence = oldest;
    reader->has_sequence = next_sequence != 0;
    reader->last_sequence = next_sequence ? next_sequence - 1 : 0;
}

/* E21: the reader does not deliver an event again that an older buffer had. */
static bool is_newer(const struct kmes_reader* reader, __u64 sequence) {
    return !reader->has_sequence || sequence > reader->last_sequence;
}

/* 5.1.9: sequence numbers that are missing between two delivered events are lost events. */
static __u64 lost_before(const struct kmes_reader* reader, __u64 sequence) {
    return reader->has_sequence ? sequence - reader->last_sequence - 1 : 0;
}

/* 5.1.8.1 step 6. */
static void deliver(struct kmes_reader* reader, __u64 sequence) {
    reader->statistics.delivered++;
    reader->statistics.lost += lost_before(reader, sequence);
    reader->last_sequence = sequence;
    reader->has_sequence = true;
}

/* Fills the view of a sound event at `body`. The CPU is that of the ring: the header is written by
 * a producer, which could name another CPU. */
static KMES_ALWAYS_INLINE void fill_view(const struct kmes_reader* reader,
                                         struct kmes_event_view* view,
                                         const struct kmes_event_header* header, const __u8* body) {
    kmes_event_view_from(view, header, body);
    view->cpu_id = reader->config.cpu_id;
    view->lost_before = lost_before(reader, header->sequence);
}

static void pass_not_newer(struct kmes_reader* reader, __u32 event_bytes) {
    reader->statistics.not_newer++;
    reader->read_pos += event_bytes;
}

int kmes_reader_next(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_event_view* view) {
    reader->peeked_bytes = 0; /* this ends a peek */
    for (;;) {
        struct kmes_event_header header;
        __u64 available_bytes = 0;
        bool fits;
        int found = find_event(reader, &header, &available_bytes);

        if (found != KMES_READ_EVENT) return found;
        fits = header.event_size <= buffer_bytes;
        if (fits) read_data(reader, buffer, header.event_size);
        if (!recheck_tail(reader)) continue;
        if (!is_newer(reader, header.sequence)) {
            pass_not_newer(reader, header.event_size);
            continue;
        }
        if (!fits) {
            view->event_size = header.event_size;
            return -EMSGSIZE;
        }
        kmes_data_is_valid(reader->shared.data, reader->read_pos, header.event_size,
                           KMES_ORDER_VALID_DATA);
        fill_view(reader, view, &header, (const __u8*)buffer);
        deliver(reader, header.sequence);
        reader->read_pos += header.event_size;
        return KMES_READ_EVENT;
    }
}

int kmes_reader_peek(struct kmes_reader* reader, struct kmes_event_view* view) {
    for (;;) {
        struct kmes_event_header header;
        __u64 available_bytes = 0;
        int found = find_event(reader, &header, &available_bytes);

        reader->peeked_bytes = 0;
        if (found != KMES_READ_EVENT) return found;
        if (!is_newer(reader, header.sequence)) {
            if (recheck_tail(reader)) pass_not_newer(reader, header.event_size);
            continue;
        }
        fill_view(reader, view, &header,
                  reader->shared.data + (reader->read_pos & (reader->capacity - 1)));
        reader->peeked_sequence = header.sequence;
        reader->peeked_bytes = header.event_size;
        return KMES_READ_EVENT;
    }
}

bool kmes_reader_peek_is_whole(struct kmes_reader* reader) {
    if (!reader->peeked_bytes) return false;
    if (recheck_tail(reader)) return true;
    reader->peeked_bytes = 0;
    return false;
}

bool kmes_reader_release(struct kmes_reader* reader) {
    if (!kmes_reader_peek_is_whole(reader)) return false;
    kmes_data_is_valid(reader->shared.data, reader->read_pos, reader->peeked_bytes,
                       KMES_ORDER_VALID_DATA);
    deliver(reader, reader->peeked_sequence);
    reader->read_pos += reader->peeked_bytes;
    reader->peeked_bytes = 0;
    return true;
}

/*
 * Returns the bytes that a bulk copies. `available_bytes` are published, `room` is the size of the
 * caller's buffer, and the first event has `first_bytes`. If the copy ends inside an event, the
 * next bulk copies that event again. If all events have one size, this does not happen.
 */
static __u64 bulk_bytes(const struct kmes_reader* reader, __u64 first_bytes, __u64 available_bytes,
                        __u64 room) {
    __u64 bytes = reader->config.bulk_bytes ? reader->config.bulk_bytes : KMES_BULK_BYTES;

    if (bytes < first_bytes) bytes = first_bytes;
    if (bytes > room) bytes = room;
    if (bytes >= available_bytes) return available_bytes; /* write_pos is a boundary */
    return bytes - bytes % first_bytes;
}

/* Copies up to `bytes` bytes from the read position, and discards those that the tail has passed
 * during the copy. *kept points to the rest. Returns its size. */
static __u64 copy_and_keep(struct kmes_reader* reader, __u8* buffer, __u64 bytes,
                           const __u8** kept) {
    __u64 from = reader->read_pos;
    __u64 passed;

    read_data(reader, buffer, bytes);
    if (!recheck_tail(reader) && reader->read_pos - from >= bytes) return 0;
    passed = reader->read_pos - from; /* the tail is a boundary: an event begins there */
    kmes_data_is_valid(reader->shared.data, reader->read_pos, bytes - passed,
                       KMES_ORDER_VALID_DATA);
    *kept = buffer + passed;
    return bytes - passed;
}

int kmes_reader_bulk(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                     struct kmes_bulk* bulk, __u32* needed_bytes) {
    reader->peeked_bytes = 0; /* this ends a peek */
    for (;;) {
        struct kmes_event_header header;
        __u64 available_bytes = 0;
        int found = find_event(reader, &header, &available_bytes);

        if (found != KMES_READ_EVENT) return found;
        if (header.event_size > buffer_bytes) {
            if (!recheck_tail(reader)) continue;
            if (!is_newer(reader, header.sequence)) {
                pass_not_newer(reader, header.event_size);
                continue;
            }
            if (needed_bytes) *needed_bytes = header.event_size;
            return -EMSGSIZE;
        }
        bulk->left_bytes = copy_and_keep(
            reader, (__u8*)buffer,
            bulk_bytes(reader, header.event_size, available_bytes, buffer_bytes), &bulk->bytes);
        if (bulk->left_bytes) return KMES_READ_EVENT;
    }
}

/* The copy may end in an event, or in a header. The read position advances event by event, so a
 * caller that stops early loses none. */
static KMES_ALWAYS_INLINE bool next_of_bulk(struct kmes_reader* reader, __u16 cpu_id,
                                            struct kmes_bulk* bulk, struct kmes_event_view* view) {
    while (bulk->left_bytes >= KMES_EVENT_MIN_BYTES) {
        const __u8* event = bulk->bytes;
        struct kmes_event_header header;

        kmes_event_header_load(&header, event);
        if (KMES_UNLIKELY(kmes_event_check(&header, bulk->left_bytes) != KMES_EVENT_IS_SOUND))
            break;
        bulk->bytes += header.event_size;
        bulk->left_bytes -= header.event_size;
        reader->read_pos += header.event_size;
        if (KMES_UNLIKELY(!is_newer(reader, header.sequence))) {
            reader->statistics.not_newer++;
            continue;
        }
        kmes_event_view_from(view, &header, event);
        view->cpu_id = cpu_id;
        view->lost_before = lost_before(reader, header.sequence);
        deliver(reader, header.sequence);
        return true;
    }
    bulk->left_bytes = 0;
    return false;
}

bool kmes_bulk_next(struct kmes_reader* reader, struct kmes_bulk* bulk,
                    struct kmes_event_view* view) {
    return next_of_bulk(reader, reader->config.cpu_id, bulk, view);
}

__u32 kmes_bulk_take(struct kmes_reader* reader, struct kmes_bulk* bulk,
                     struct kmes_event_view* views, __u32 count) {
    struct kmes_bulk left = *bulk; /* kept in registers */
    const __u16 cpu_id = reader->config.cpu_id;
    __u32 taken = 0;

    while (taken < count && next_of_bulk(reader, cpu_id, &left, &views[taken])) taken++;
    *bulk = left;
    return taken;
}
