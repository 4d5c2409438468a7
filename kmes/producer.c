// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The writer: 5.1.7, one CPU, one event or a batch. It knows no consumer. The only field that it
 * loads and a consumer can write is need_wake. Barriers carry the labels of kmes/order.h, which has
 * the index of pairs.
 *
 * The steps of one event, in the order in which a consumer on another processor may see them:
 *
 *   TAIL            tail_pos moves past the bytes that will be overwritten   (only without room)
 *   TAIL_FENCE      ... before
 *   DATA            the bytes of the event are in the ring
 *   PUBLISH         write_pos moves past them
 *   WAKE_FENCE      ... before                                        (or WAKE_FENCE_LIGHT)
 *   NEED_WAKE       does a consumer ask for a wake?
 *   COUNTER         if so, the counter is incremented, and the wake is queued
 */
#include "kmes/guard.h"
#include "kmes/index.h"
#include "kmes/order.h"
#include "kmes/ring.h"

/* The result for an event over 50 % of the capacity. */
enum too_large {
    TOO_LARGE_USES_NUMBER, /* 5.1.7 step 5: the in-kernel emitter */
    TOO_LARGE_IS_ERROR,    /* event-model.md: the emit calls */
};

void kmes_cpu_init(struct kmes_cpu* cpu, __u16 cpu_id, struct kmes_buffer* buffer,
                   struct kmes_platform* platform, __u64 last_sequence) {
    kmes_zero_private(cpu, sizeof(*cpu));
    cpu->platform = platform;
    cpu->buffer = buffer;
    cpu->cpu_id = cpu_id;
    cpu->sequence = last_sequence;
}

/* 5.1.7 step 8. PUBLISH pairs with LOAD_WRITE_POS, SLEEP_WRITE_POS and FROZEN_WRITE_POS. A reader
 * that loads this write_pos sees all bytes copied in before, and the tail that made room for
 * them. */
void kmes_publish(struct kmes_buffer* buffer) {
    buffer->published = buffer->frontier;
    kmes_store_release_u64(buffer->shared.write_pos, buffer->published, KMES_ORDER_PUBLISH);
}

/*
 * 5.1.7 step 9. WAKE_FENCE pairs with SLEEP_FENCE (E1). The producer stores write_pos before it
 * loads need_wake; the consumer stores need_wake before it loads write_pos. If either fence is
 * missing, both sides can load the old value, on x86-64 too. The consumer then sleeps on a
 * published event. WAKE_FENCE_LIGHT pairs with SLEEP_BARRIER instead.
 */
static void wake_if_asked(struct kmes_cpu* cpu) {
    struct kmes_buffer* buffer = cpu->buffer;

    cpu->wake_owed = false;
    if (KMES_UNLIKELY(cpu->has_light_fence))
        kmes_fence_light(KMES_ORDER_WAKE_FENCE_LIGHT);
    else
        kmes_fence_full(KMES_ORDER_WAKE_FENCE);
    if (KMES_LIKELY(!kmes_load_relaxed_u8(buffer->shared.need_wake, KMES_ORDER_NEED_WAKE))) return;
    buffer->futex_counter++;
    /* COUNTER pairs with SLEEP_COUNTER: a reader that loaded the counter before this store finds
     * another value in its futex_wait (E2). The value comes from the private copy, so that a
     * consumer cannot set it back (E13). */
    kmes_store_release_u32(buffer->shared.futex_counter, buffer->futex_counter, KMES_ORDER_COUNTER);
    cpu->statistics.wakes++;
    kmes_platform_queue_wake(cpu->platform, buffer);
}

/* Publishes the unpublished part of a batch. This happens at the end of the batch, and before the
 * tail reaches that part. E8: tail_pos never reaches write_pos while part of a batch is
 * unpublished. The end of the batch checks need_wake. */
static void publish_pending(struct kmes_cpu* cpu) {
    struct kmes_buffer* buffer = cpu->buffer;

    if (buffer->frontier == buffer->published) return;
    kmes_publish(buffer);
    cpu->wake_owed = true;
}

/*
 * The state of a buffer and its CPU that every event changes. It is in registers between
 * cursor_load and cursor_store. The writer calls these once for an event, or once for several
 * events of a batch. No other code reads the fields while the CPU is inside its critical section.
 */
struct cursor {
    struct kmes_boundary tail;
    struct kmes_boundary frontier;
    __u64 sequence;
};

static inline void cursor_load(struct cursor* cursor, const struct kmes_cpu* cpu) {
    const struct kmes_buffer* buffer = cpu->buffer;

    cursor->tail.pos = buffer->tail;
    cursor->tail.ordinal = buffer->tail_ordinal;
    cursor->frontier.pos = buffer->frontier;
    cursor->frontier.ordinal = buffer->frontier_ordinal;
    cursor->sequence = cpu->sequence;
}

/* Derives the statistics from the distance that the tail and the frontier have moved. */
static inline void cursor_store(const struct cursor* cursor, struct kmes_cpu* cpu) {
    struct kmes_buffer* buffer = cpu->buffer;

    cpu->statistics.overwritten += cursor->tail.ordinal - buffer->tail_ordinal;
    cpu->statistics.events += cursor->frontier.ordinal - buffer->frontier_ordinal;
    cpu->statistics.bytes += cursor->frontier.pos - buffer->frontier;
    buffer->tail = cursor->tail.pos;
    buffer->tail_ordinal = cursor->tail.ordinal;
    buffer->frontier = cursor->frontier.pos;
    buffer->frontier_ordinal = cursor->frontier.ordinal;
    cpu->sequence = cursor->sequence;
}

/* TAIL pairs with LOAD_TAIL. TAIL_FENCE pairs with DATA_FENCE (E5 with E4): a consumer that copied
 * a byte of the next event finds the new tail in its re-check. */
static inline void move_tail(struct kmes_buffer* buffer, __u64 tail) {
    kmes_store_release_u64(buffer->shared.tail_pos, tail, KMES_ORDER_TAIL);
    kmes_fence_release(KMES_ORDER_TAIL_FENCE);
}

void kmes_empty_corrupt(struct kmes_cpu* cpu) {
    struct kmes_buffer* buffer = cpu->buffer;

    publish_pending(cpu);
    cpu->statistics.corrupt++;
    cpu->statistics.overwritten += buffer->frontier_ordinal - buffer->tail_ordinal;
    buffer->tail = buffer->frontier;
    buffer->tail_ordinal = buffer->frontier_ordinal;
    move_tail(buffer, buffer->tail);
}

/* make_room if the tail may pass unpublished events, or if a size in the ring is impossible
 * (E13). */
static KMES_NOINLINE struct cursor make_room_slowly(struct kmes_cpu* cpu, struct cursor cursor,
                                                    bool is_corrupt) {
    cursor_store(&cursor, cpu);
    if (is_corrupt)
        kmes_empty_corrupt(cpu);
    else
        publish_pending(cpu);
    cursor_load(&cursor, cpu);
    return cursor;
}

/* The path of one event is inline down to its copies: a cursor that is passed by its address goes
 * through memory at each step. */

/* 5.1.7 step 6: moves the tail past exactly the events that `event_bytes` bytes at the frontier
 * would overwrite. */
static KMES_ALWAYS_INLINE void make_room(struct kmes_cpu* cpu, struct kmes_buffer* buffer,
                                         struct cursor* cursor, __u64 event_bytes) {
    struct kmes_boundary tail = cursor->tail;

    if (KMES_LIKELY(cursor->frontier.pos + event_bytes - tail.pos <= buffer->capacity)) return;
    if (KMES_UNLIKELY(!kmes_index_find(buffer, cursor->frontier.pos,
                                       cursor->frontier.pos + event_bytes - buffer->capacity,
                                       &tail))) {
        *cursor = make_room_slowly(cpu, *cursor, true);
        return;
    }
    if (KMES_UNLIKELY(tail.pos >= buffer->published))
        *cursor = make_room_slowly(cpu, *cursor, false);
    cursor->tail = tail;
    move_tail(buffer, tail.pos);
}

/* Writes zeros after the type, to imitate the header of a later version (event.h). */
static void copy_in_zeros(struct kmes_buffer* buffer, __u64 pos, __u64 bytes) {
    static const __u8 zeros[64] = {0};

    while (bytes > 0) {
        __u64 piece = bytes < sizeof(zeros) ? bytes : sizeof(zeros);

        kmes_copy_in(buffer->shared.data, buffer->capacity, pos, zeros, piece, KMES_ORDER_DATA);
        pos += piece;
        bytes -= piece;
    }
}

/* 5.1.7 steps 3 and 7 without the payload: writes the header at `pos`, the frontier. Returns the
 * position of the payload. */
static KMES_ALWAYS_INLINE __u64 write_header(const struct kmes_cpu* cpu, struct kmes_buffer* buffer,
                                             __u64 pos, const struct kmes_event_input* input,
                                             __u64 timestamp_ns, __u64 sequence) {
    struct kmes_event_words words;

    kmes_event_words_build(&words, input, timestamp_ns, sequence, cpu->cpu_id);
    kmes_copy_in_words(buffer->shared.data, buffer->capacity, pos, words.word,
                       sizeof(struct kmes_event_header), KMES_ORDER_DATA);
    pos += sizeof(struct kmes_event_header);
    kmes_copy_in(buffer->shared.data, buffer->capacity, pos, input->type, input->type_len,
                 KMES_ORDER_DATA);
    pos += input->type_len;
    if (KMES_UNLIKELY(input->header_extra_len)) copy_in_zeros(buffer, pos, input->header_extra_len);
    return pos + input->header_extra_len;
}

/* Adds the event at the frontier to the buffer. Consumers do not see it yet. */
static inline void append(struct kmes_buffer* buffer, struct cursor* cursor, __u64 event_bytes) {
    __u64 from = cursor->frontier.pos;

    cursor->frontier.pos = from + event_bytes;
    cursor->frontier.ordinal++;
    kmes_index_mark(buffer, from, cursor->frontier);
}

/* 5.1.7 step 2, inside: uses the numbers of nested emissions first. */
static inline void settle_nested(struct kmes_cpu* cpu, struct cursor* cursor) {
    if (KMES_LIKELY(!kmes_local_load(&cpu->nested_missed))) return;
    cpu->sequence = cursor->sequence;
    kmes_guard_settle_nested(cpu);
    cursor->sequence = cpu->sequence;
}

/* 5.1.7 steps 2, 4 and 5, inside: returns 0 if the event can be written. */
static inline int admit(struct kmes_cpu* cpu, struct kmes_buffer* buffer, struct cursor* cursor,
                        __u64 event_bytes, enum too_large too_large) {
    settle_nested(cpu, cursor);
    if (KMES_LIKELY(event_bytes <= buffer->capacity / 2)) return 0;
    if (too_large == TOO_LARGE_USES_NUMBER) {
        cursor->sequence++;
        cpu->statistics.dropped++;
    }
    return -ENOSPC;
}

/* Outside: enters the critical section, or counts a rejected emission (E16). */
static inline int enter(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                        enum too_large too_large) {
    if (input->type_len == 0) return -EINVAL;
    if (KMES_LIKELY(kmes_guard_enter(cpu))) return 0;
    if (too_large == TOO_LARGE_USES_NUMBER) kmes_guard_count_nested(cpu);
    return -EBUSY;
}

/* Inside: 5.1.7 steps 2 to 7. Publishes nothing. */
static KMES_ALWAYS_INLINE int write_event(struct kmes_cpu* cpu, struct kmes_buffer* buffer,
                                          struct cursor* cursor,
                                          const struct kmes_event_input* input, __u64 timestamp_ns,
                                          enum too_large too_large) {
    __u64 event_bytes = kmes_event_bytes(input);
    __u64 payload_pos;
    int error = admit(cpu, buffer, cursor, event_bytes, too_large);

    if (error) return error;
    make_room(cpu, buffer, cursor, event_bytes);
    payload_pos =
        write_header(cpu, buffer, cursor->frontier.pos, input, timestamp_ns, ++cursor->sequence);
    if (input->payload_len)
        kmes_copy_in(buffer->shared.data, buffer->capacity, payload_pos, input->payload,
                     input->payload_len, KMES_ORDER_DATA);
    append(buffer, cursor, event_bytes);
    return 0;
}

/* Inside: write_event, with the cursor loaded from and stored to the CPU. */
static KMES_ALWAYS_INLINE int write_one(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                                        __u64 timestamp_ns, enum too_large too_large) {
    struct cursor cursor;
    int error;

    cursor_load(&cursor, cpu);
    error = write_event(cpu, cpu->buffer, &cursor, input, timestamp_ns, too_large);
    cursor_store(&cursor, cpu);
    return error;
}

/* Inside: 5.1.7 steps 8 and 9, for one event. The next one begins where this one ends, and its
 * memory is rarely in a cache: other rings and other work have used the caches since the last lap.
 * Requested here, it arrives while the caller does something else. A processor predicts a batch by
 * itself. */
static inline void publish_one(struct kmes_cpu* cpu) {
    struct kmes_buffer* buffer = cpu->buffer;

    kmes_publish(buffer);
    wake_if_asked(cpu);
    kmes_prefetch_data(buffer->shared.data, buffer->mask, buffer->frontier);
}

/* 5.1.7, one event. E16: one critical section covers all steps, from the timestamp to the queueing
 * of the wake. */
static KMES_ALWAYS_INLINE int emit_one(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                                       enum too_large too_large) {
    int error = enter(cpu, input, too_large);

    if (error) return error;
    error = write_one(cpu, input, kmes_platform_clock_ns(cpu->platform), too_large);
    if (!error) publish_one(cpu);
    kmes_guard_exit(cpu);
    return error;
}

int kmes_cpu_emit(struct kmes_cpu* cpu, const struct kmes_event_input* input) {
    return emit_one(cpu, input, TOO_LARGE_USES_NUMBER);
}

int kmes_cpu_emit_call(struct kmes_cpu* cpu, const struct kmes_event_input* input) {
    return emit_one(cpu, input, TOO_LARGE_IS_ERROR);
}

int kmes_reserve(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                 struct kmes_reservation* reservation) {
    __u64 event_bytes = kmes_event_bytes(input);
    struct cursor cursor;
    __u64 timestamp_ns;
    int error = enter(cpu, input, TOO_LARGE_USES_NUMBER);

    if (error) return error;
    timestamp_ns = kmes_platform_clock_ns(cpu->platform);
    cursor_load(&cursor, cpu);
    error = admit(cpu, cpu->buffer, &cursor, event_bytes, TOO_LARGE_USES_NUMBER);
    if (!error) make_room(cpu, cpu->buffer, &cursor, event_bytes);
    cursor_store(&cursor, cpu);
    if (error) {
        kmes_guard_exit(cpu);
        return error;
    }
    reservation->sequence = cursor.sequence + 1;
    reservation->event_bytes = event_bytes;
    reservation->payload_len = input->payload_len;
    reservation->payload_pos = write_header(cpu, cpu->buffer, cursor.frontier.pos, input,
                                            timestamp_ns, reservation->sequence);
    reservation->payload =
        cpu->buffer->shared.data + (reservation->payload_pos & cpu->buffer->mask);
    return 0;
}

void kmes_reservation_fill(struct kmes_cpu* cpu, const struct kmes_reservation* reservation,
                           __u32 offset, const void* from, __u32 bytes) {
    if (offset >= reservation->payload_len) return;
    if (bytes > reservation->payload_len - offset) bytes = reservation->payload_len - offset;
    kmes_copy_in(cpu->buffer->shared.data, cpu->buffer->capacity, reservation->payload_pos + offset,
                 from, bytes, KMES_ORDER_DATA);
}

void kmes_commit(struct kmes_cpu* cpu, const struct kmes_reservation* reservation) {
    struct cursor cursor;

    cursor_load(&cursor, cpu);
    cursor.sequence = reservation->sequence;
    append(cpu->buffer, &cursor, reservation->event_bytes);
    cursor_store(&cursor, cpu);
    kmes_publish(cpu->buffer);
    wake_if_asked(cpu);
    kmes_guard_exit(cpu);
}

void kmes_abandon(struct kmes_cpu* cpu, const struct kmes_reservation* reservation) {
    (void)reservation;
    if (cpu->wake_owed) wake_if_asked(cpu);
    kmes_guard_exit(cpu);
}

void kmes_batch_begin(struct kmes_cpu* cpu, struct kmes_batch* batch) {
    batch->timestamp_ns = kmes_platform_clock_ns(cpu->platform);
}

static int batch_one(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                     const struct kmes_event_input* input, enum too_large too_large) {
    int error = enter(cpu, input, too_large);

    if (error) return error;
    error = write_one(cpu, input, batch->timestamp_ns, too_large);
    kmes_guard_exit(cpu);
    return error;
}

int kmes_batch_emit(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                    const struct kmes_event_input* input) {
    return batch_one(cpu, batch, input, TOO_LARGE_USES_NUMBER);
}

int kmes_batch_emit_call(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                         const struct kmes_event_input* input) {
    return batch_one(cpu, batch, input, TOO_LARGE_IS_ERROR);
}

/* The checks of the emit call that do not depend on the ring. */
static inline int check_entry(const struct kmes_batch_entry* entry,
                              const struct kmes_batch_rules* rules) {
    if (entry->type_len == 0 || entry->type_len > KMES_EVENT_TYPE_MAX_BYTES) return -EINVAL;
    if (!kmes_utf8_is_valid(entry->type, entry->type_len)) return -EINVAL;
    if (entry->payload_len > rules->max_event_bytes ||
        KMES_EVENT_FIXED_BYTES + entry->type_len + entry->payload_len > rules->max_event_bytes)
        return -ENOSPC;
    return 0;
}

/* Inside: writes entries until one has an error or the piece is full. The first entry is already
 * checked. *written is the number of written entries. */
static int write_piece(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                       const struct kmes_batch_rules* rules, const struct kmes_batch_entry* entries,
                       __u32 count, __u32* written) {
    struct kmes_buffer* buffer = cpu->buffer;
    struct cursor cursor;
    __u64 piece_end;
    __u32 i = 0;
    int error;

    cursor_load(&cursor, cpu);
    piece_end = cursor.frontier.pos + KMES_BATCH_PIECE_BYTES;
    do {
        struct kmes_event_input input;

        input.type = entries[i].type;
        input.payload = entries[i].payload;
        input.payload_len = (__u32)entries[i].payload_len;
        input.type_len = (__u16)entries[i].type_len;
        input.origin_class = rules->origin_class;
        input.header_extra_len = 0;
        error = write_event(cpu, buffer, &cursor, &input, batch->timestamp_ns, TOO_LARGE_IS_ERROR);
        if (!error && ++i < count) error = check_entry(&entries[i], rules);
    } while (!error && i < count && cursor.frontier.pos < piece_end);
    cursor_store(&cursor, cpu);
    *written = i;
    return error;
}

int kmes_batch_emit_entries(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                            const struct kmes_batch_rules* rules,
                            const struct kmes_batch_entry* entries, __u32 count, __u32* emitted) {
    int error;

    *emitted = 0;
    do {
        __u32 written;

        error = check_entry(&entries[*emitted], rules);
        if (error) return error;
        if (!kmes_guard_enter(cpu)) return -EBUSY;
        error = write_piece(cpu, batch, rules, entries + *emitted, count - *emitted, &written);
        kmes_guard_exit(cpu);
        *emitted += written;
    } while (!error && *emitted < count);
    return error;
}

void kmes_batch_end(struct kmes_cpu* cpu, const struct kmes_batch* batch) {
    (void)batch;
    if (!kmes_guard_enter(cpu))
        return; /* nested (E16): every event of this batch has been rejected */
    publish_pending(cpu);
    if (cpu->wake_owed) wake_if_asked(cpu);
    kmes_guard_exit(cpu);
}
