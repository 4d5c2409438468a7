// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A fresh buffer, and the index of its event boundaries. Uses no CPU and no consumer.
 */
#include "kmes/index.h"
#include "kmes/order.h"

#define KMES_BLOCK_SHIFT_MAX 12u /* E13: one entry per 4 KiB of data at least */
#define KMES_INDEX_ENTRIES_MIN_SHIFT                            \
    4u /* small buffers have 16 blocks, so that tests meet them \
        */

static __u32 capacity_shift(__u64 capacity_bytes) {
    return (__u32)__builtin_ctzll(capacity_bytes);
}

static __u32 block_shift(__u64 capacity_bytes) {
    __u32 shift = capacity_shift(capacity_bytes) - KMES_INDEX_ENTRIES_MIN_SHIFT;

    return shift < KMES_BLOCK_SHIFT_MAX ? shift : KMES_BLOCK_SHIFT_MAX;
}

__u64 kmes_index_entries(__u64 capacity_bytes) {
    if (!kmes_capacity_is_valid(capacity_bytes)) return 0;
    return capacity_bytes >> block_shift(capacity_bytes);
}

/* 5.1.6, every row. The magic is last, although no consumer can read the page before the buffer is
 * published. */
static void write_metadata(const struct kmes_buffer* buffer,
                           const struct kmes_buffer_setup* setup) {
    static const __u8 magic[KMES_MAGIC_BYTES] = KMES_MAGIC_INITIALIZER;
    const struct kmes_fields* shared = &buffer->shared;
    unsigned i;

    kmes_store_relaxed_u32(shared->version, setup->version, KMES_ORDER_FRESH);
    kmes_store_relaxed_u16(shared->cpu_id, setup->cpu_id, KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(shared->capacity, setup->capacity_bytes, KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(shared->data_offset, kmes_data_offset_bytes(setup->version),
                           KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(shared->generation, buffer->generation, KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(shared->write_pos, buffer->published, KMES_ORDER_FRESH);
    kmes_store_relaxed_u64(shared->tail_pos, buffer->tail, KMES_ORDER_FRESH);
    for (i = 0; i < KMES_MAGIC_BYTES; i++)
        kmes_store_relaxed_u8(shared->magic + i, magic[i], KMES_ORDER_FRESH);
}

int kmes_buffer_init(struct kmes_buffer* buffer, const struct kmes_buffer_setup* setup) {
    if (!kmes_capacity_is_valid(setup->capacity_bytes)) return -EINVAL;
    if (!kmes_data_offset_bytes(setup->version)) return -EINVAL;
    kmes_zero_private(buffer, sizeof(*buffer));
    kmes_bind_fields(&buffer->shared, setup->mapping, setup->version);
    buffer->capacity = setup->capacity_bytes;
    buffer->mask = setup->capacity_bytes - 1;
    buffer->tail = setup->start_pos;
    buffer->published = setup->start_pos;
    buffer->frontier = setup->start_pos;
    buffer->generation = setup->generation;
    buffer->block_shift = block_shift(setup->capacity_bytes);
    buffer->index = setup->index;
    buffer->index_mask = kmes_index_entries(setup->capacity_bytes) - 1;
    kmes_data_is_fresh(buffer->shared.data, KMES_ORDER_FRESH);
    write_metadata(buffer, setup);
    return 0;
}

void kmes_index_mark_blocks(struct kmes_buffer* buffer, __u64 from_block, __u64 to_block,
                            struct kmes_boundary boundary) {
    __u64 block = from_block + 1;

    for (; block <= to_block; block++) buffer->index[block & buffer->index_mask] = boundary;
}

bool kmes_index_search(const struct kmes_buffer* buffer, __u64 frontier, __u64 target,
                       struct kmes_boundary* found) {
    *found = buffer->index[(target >> buffer->block_shift) & buffer->index_mask];
    while (found->pos < target) {
        if (!kmes_index_step(buffer, frontier, found)) return false;
    }
    return true;
}
