/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The boundary index of a buffer (E13, E23). Only the writer and the swap use it. ring.h documents
 * its guarantees. The part that every emission executes is inline.
 */
#ifndef KMES_INDEX_H
#define KMES_INDEX_H

#include "kmes/order.h"
#include "kmes/ring.h"

KMES_EXTERN_C_BEGIN

/* Writes the entries of the blocks (from_block, to_block] for kmes_index_mark. Defined in
 * buffer.c. */
void kmes_index_mark_blocks(struct kmes_buffer* buffer, __u64 from_block, __u64 to_block,
                            struct kmes_boundary boundary);

/* kmes_index_find for a target in a later block than the tail. Always writes *found. Defined in
 * buffer.c. */
bool kmes_index_search(const struct kmes_buffer* buffer, __u64 frontier, __u64 target,
                       struct kmes_boundary* found);

/* Records a boundary: the event that began at `from` ends at `boundary`, where the next one begins.
 * Writes at most index_mask + 1 entries. */
static inline void kmes_index_mark(struct kmes_buffer* buffer, __u64 from,
                                   struct kmes_boundary boundary) {
    __u64 from_block = from >> buffer->block_shift;
    __u64 to_block = boundary.pos >> buffer->block_shift;

    if (from_block != to_block) kmes_index_mark_blocks(buffer, from_block, to_block, boundary);
}

/*
 * Moves `at`, a boundary below `frontier`, to the next boundary. It loads the size of the event
 * from the ring. This size is the only value that the producer reads back. Consumers cannot write
 * the data (E13), but the code bounds the size all the same. Returns false for an impossible size
 * and leaves `at` unchanged.
 */
static inline bool kmes_index_step(const struct kmes_buffer* buffer, __u64 frontier,
                                   struct kmes_boundary* at) {
    __u32 event_bytes;

    kmes_copy_out(&event_bytes, buffer->shared.data, buffer->capacity, at->pos, sizeof(event_bytes),
                  KMES_ORDER_WALK_SIZE);
    if (KMES_UNLIKELY(event_bytes < KMES_EVENT_MIN_BYTES || event_bytes > frontier - at->pos))
        return false;
    at->pos += event_bytes;
    at->ordinal++;
    return true;
}

/*
 * Moves `at`, which is the tail, to the first boundary at or after `target`. `target` is in [tail,
 * frontier]. Returns false if a size on the way is impossible: below KMES_EVENT_MIN_BYTES, or more
 * than the bytes that are written after it (E13). Nearly always the tail passes events of its own
 * block, one by one. A target in a later block is found through the index. The entry of the tail's
 * own block may already belong to a later lap.
 */
static inline bool kmes_index_find(const struct kmes_buffer* buffer, __u64 frontier, __u64 target,
                                   struct kmes_boundary* at) {
    if (KMES_UNLIKELY(target >> buffer->block_shift != at->pos >> buffer->block_shift)) {
        /* Not `at` itself: a variable whose address is passed to a function cannot stay in a
         * register. */
        struct kmes_boundary found;
        bool is_sound = kmes_index_search(buffer, frontier, target, &found);

        *at = found;
        return is_sound;
    }
    while (at->pos < target) {
        if (KMES_UNLIKELY(!kmes_index_step(buffer, frontier, at))) return false;
    }
    return true;
}

KMES_EXTERN_C_END

#endif
