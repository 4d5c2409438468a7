// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Boot hand-over and resize move one CPU's producer to another buffer (5.1.2, 5.1.8.4, with E3,
 * E10, E11, E15, E18, E19, E24). This file also nudges the retired buffers and ends a producer
 * (E25). It knows no consumer. The caller prevents an attach during the swap (E14).
 *
 *      old   |....tail=======S===========copied=======frontier          S: the first survivor
 *      new            |S===========copied|                             (E10)
 *
 * The surviving events are copied piece by piece while emission continues. Every piece is its own
 * critical section, so no piece is torn. Events that are emitted between pieces only move
 * `frontier`, and perhaps S. kmes_swap_finish copies the last piece and switches, in one critical
 * section.
 */
#include "kmes/guard.h"
#include "kmes/index.h"
#include "kmes/order.h"
#include "kmes/ring.h"

/* E10: finds the longest suffix of whole events that fits into the new buffer. *first is its start,
 * in positions of the old buffer. */
static void find_survivors(struct kmes_swap* swap, struct kmes_boundary* first) {
    struct kmes_buffer* old_buffer = swap->old_buffer;
    __u64 target = old_buffer->tail;

    if (old_buffer->frontier - old_buffer->tail > swap->new_buffer->capacity)
        target = old_buffer->frontier - swap->new_buffer->capacity;
    first->pos = old_buffer->tail;
    first->ordinal = old_buffer->tail_ordinal;
    if (kmes_index_find(old_buffer, old_buffer->frontier, target, first)) return;
    kmes_empty_corrupt(swap->cpu);
    first->pos = old_buffer->frontier;
    first->ordinal = old_buffer->frontier_ordinal;
}

/* Events that no longer survive need no copy and no entry in the index. */
static void skip_to_survivors(struct kmes_swap* swap, const struct kmes_boundary* first) {
    if (swap->copied < first->pos) swap->copied = first->pos;
    if (swap->walked < first->pos) {
        swap->walked = first->pos;
        swap->walked_ordinal = first->ordinal;
    }
}

/* Copies the next bytes, which need not be whole events. True if they were a full piece. */
static bool copy_piece(struct kmes_swap* swap) {
    struct kmes_buffer* old_buffer = swap->old_buffer;
    __u64 bytes = old_buffer->frontier - swap->copied;

    if (bytes > KMES_SWAP_PIECE_BYTES) bytes = KMES_SWAP_PIECE_BYTES;
    if (bytes == 0) return false;
    kmes_copy_in(
        swap->new_buffer->shared.data, swap->new_buffer->capacity, swap->copied + swap->delta,
        old_buffer->shared.data + (swap->copied & old_buffer->mask), bytes, KMES_ORDER_SWAP_DATA);
    swap->copied += bytes;
    return bytes == KMES_SWAP_PIECE_BYTES;
}

/* Extends the index of the new buffer by a bounded number of events. True if it reached the
 * bound. */
static bool index_piece(struct kmes_swap* swap) {
    unsigned events = 0;

    while (swap->walked < swap->old_buffer->frontier) {
        struct kmes_boundary next;

        if (events++ == KMES_SWAP_PIECE_EVENTS) return true;
        next.pos = swap->walked;
        next.ordinal = swap->walked_ordinal;
        if (!kmes_index_step(swap->old_buffer, swap->old_buffer->frontier, &next)) {
            kmes_empty_corrupt(swap->cpu);
            return true; /* no event survives now: find_survivors advances */
        }
        swap->walked_ordinal = next.ordinal;
        next.pos += swap->delta;
        kmes_index_mark(swap->new_buffer, swap->walked + swap->delta, next);
        swap->walked = next.pos - swap->delta;
    }
    return false;
}

int kmes_swap_begin(struct kmes_swap* swap, struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                    enum kmes_swap_positions positions, __u64 shift_bytes) {
    struct kmes_boundary first;

    if (!kmes_guard_enter(cpu)) return -EBUSY;
    swap->cpu = cpu;
    swap->old_buffer = cpu->buffer;
    swap->new_buffer = new_buffer;
    find_survivors(swap, &first);
    swap->copied = first.pos;
    swap->walked = first.pos;
    swap->walked_ordinal = first.ordinal;
    swap->delta = 0;
    if (positions == KMES_SWAP_ZERO)
        swap->delta = 0 - first.pos;
    else if (positions == KMES_SWAP_SHIFT)
        swap->delta = shift_bytes;
    kmes_guard_exit(cpu);
    return 0;
}

/* Inside: one piece. True if there may be another one. */
static bool swap_piece(struct kmes_swap* swap, struct kmes_boundary* first) {
    bool more;

    find_survivors(swap, first);
    skip_to_survivors(swap, first);
    more = copy_piece(swap);
    return index_piece(swap) || more;
}

bool kmes_swap_copy(struct kmes_swap* swap) {
    struct kmes_boundary first;
    bool more;

    if (!kmes_guard_enter(swap->cpu)) return false;
    more = swap_piece(swap, &first);
    kmes_guard_exit(swap->cpu);
    return more;
}

__u64 kmes_swap_rounds(const struct kmes_swap* swap) {
    return 4 * (swap->new_buffer->capacity / KMES_SWAP_PIECE_BYTES) + 16;
}

/* The new buffer continues at the end of the old one. No consumer can see it yet. SWAP_PUBLISH is a
 * release store all the same, so that every store of write_pos has the same order. */
static void open_new(const struct kmes_swap* swap, const struct kmes_boundary* first) {
    struct kmes_buffer* old_buffer = swap->old_buffer;
    struct kmes_buffer* new_buffer = swap->new_buffer;

    new_buffer->tail = first->pos + swap->delta;
    new_buffer->tail_ordinal = first->ordinal;
    new_buffer->frontier = old_buffer->frontier + swap->delta;
    new_buffer->frontier_ordinal = old_buffer->frontier_ordinal;
    new_buffer->published = new_buffer->frontier;
    new_buffer->generation = old_buffer->generation + 1;
    kmes_store_relaxed_u64(new_buffer->shared.generation, new_buffer->generation, KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(new_buffer->shared.tail_pos, new_buffer->tail, KMES_ORDER_SWAP_TAIL);
    kmes_store_release_u64(new_buffer->shared.write_pos, new_buffer->published,
                           KMES_ORDER_SWAP_PUBLISH);
}

/*
 * Sends the readers of `buffer`, which gets no more events, to another buffer. GENERATION pairs
 * with LOAD_GENERATION and SLEEP_GENERATION: a reader that sees it sees the last write_pos (E24).
 * RETIRE_COUNTER and the wake follow it, whatever need_wake is (E3: a sharer may have cleared it).
 */
static void retire(struct kmes_cpu* cpu, struct kmes_buffer* buffer) {
    buffer->generation++;
    kmes_store_release_u64(buffer->shared.generation, buffer->generation, KMES_ORDER_GENERATION);
    buffer->futex_counter++;
    kmes_store_release_u32(buffer->shared.futex_counter, buffer->futex_counter,
                           KMES_ORDER_RETIRE_COUNTER);
    kmes_platform_queue_wake(cpu->platform, buffer);
}

static void publish_pending(struct kmes_cpu* cpu) {
    if (cpu->buffer->frontier != cpu->buffer->published) kmes_publish(cpu->buffer);
    cpu->wake_owed = false; /* retire always wakes */
}

int kmes_swap_finish(struct kmes_swap* swap) {
    struct kmes_cpu* cpu = swap->cpu;
    struct kmes_boundary first;

    if (!kmes_guard_enter(cpu)) return -EBUSY;
    publish_pending(cpu);
    while (swap_piece(swap, &first));
    open_new(swap, &first);
    cpu->buffer = swap->new_buffer; /* E19: before the old generation is stored */
    cpu->statistics.swaps++;
    cpu->statistics.left_behind += first.ordinal - swap->old_buffer->tail_ordinal;
    retire(cpu, swap->old_buffer);
    kmes_guard_exit(cpu);
    return 0;
}

int kmes_swap_run(struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                  enum kmes_swap_positions positions, __u64 shift_bytes) {
    struct kmes_swap swap;
    __u64 round, rounds;
    int error = kmes_swap_begin(&swap, cpu, new_buffer, positions, shift_bytes);

    if (error) return error;
    rounds = kmes_swap_rounds(&swap);
    for (round = 0; round < rounds && kmes_swap_copy(&swap); round++);
    return kmes_swap_finish(&swap);
}

int kmes_buffer_nudge(struct kmes_cpu* cpu, struct kmes_buffer* retired) {
    int error = 0;

    if (!kmes_guard_enter(cpu)) return -EBUSY;
    if (retired == cpu->buffer)
        error = -EINVAL;
    else
        retire(cpu, retired);
    kmes_guard_exit(cpu);
    return error;
}

int kmes_cpu_retire(struct kmes_cpu* cpu) {
    if (!kmes_guard_enter(cpu)) return -EBUSY;
    publish_pending(cpu);
    kmes_guard_settle_nested(cpu);
    retire(cpu, cpu->buffer);
    kmes_guard_exit(cpu);
    return 0;
}
