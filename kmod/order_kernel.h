/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kmes/order.h for the kernel. Only kmes/order.h includes it.
 *
 * The data is copied by memcpy while a consumer may read the same bytes. KCSAN does not see
 * processes. It checks virtual addresses, and each byte of a ring has two here. It could report a
 * race of two copies only if a test of the module reads a ring from another processor. The protocol
 * contains that race (RECHECK_TAIL detects a torn result), so data_race marks the copies. Each
 * access to a word is a marked access.
 */
#ifndef KMES_KMOD_ORDER_KERNEL_H
#define KMES_KMOD_ORDER_KERNEL_H

#include <asm/barrier.h>
#include <linux/atomic.h>
#include <linux/compiler.h>

#include "kmes/types.h"

/* clang-format off */
#define KMES_ORDER_DEFINE_ACCESSORS(T)                                                          \
    static inline __##T kmes_load_relaxed_##T(const __##T* word, enum kmes_order_label label) { \
        return READ_ONCE(*word);                                                                \
    }                                                                                           \
    static inline __##T kmes_load_acquire_##T(const __##T* word, enum kmes_order_label label) { \
        return smp_load_acquire(word);                                                          \
    }                                                                                           \
    static inline void kmes_store_relaxed_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        WRITE_ONCE(*word, value);                                                               \
    }                                                                                           \
    static inline void kmes_store_release_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        smp_store_release(word, value);                                                         \
    }
/* clang-format on */

KMES_ORDER_DEFINE_ACCESSORS(u64)
KMES_ORDER_DEFINE_ACCESSORS(u32)
KMES_ORDER_DEFINE_ACCESSORS(u16)
KMES_ORDER_DEFINE_ACCESSORS(u8)
#undef KMES_ORDER_DEFINE_ACCESSORS

/* Orders only stores against stores: TAIL against DATA (E5). */
static inline void kmes_fence_release(enum kmes_order_label label) {
    smp_wmb();
}

/* Loads against loads: READ_DATA against RECHECK_TAIL (E4). */
static inline void kmes_fence_acquire(enum kmes_order_label label) {
    smp_rmb();
}

static inline void kmes_fence_full(enum kmes_order_label label) {
    smp_mb();
}

/* Never executed in the kernel: consumers of the module do not promise the barrier. */
static inline void kmes_fence_light(enum kmes_order_label label) {
    barrier();
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    data_race(memcpy(data + (pos & (capacity_bytes - 1)), from, bytes));
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    data_race(memcpy(to, data + (pos & (capacity_bytes - 1)), bytes));
}

static inline void kmes_data_is_valid(const __u8* data, __u64 pos, __u64 bytes,
                                      enum kmes_order_label label) {}

static inline void kmes_data_is_fresh(const __u8* data, enum kmes_order_label label) {}

static inline unsigned kmes_local_load(const unsigned* word) {
    unsigned value = READ_ONCE(*word);

    barrier();
    return value;
}

static inline void kmes_local_store(unsigned* word, unsigned value) {
    barrier();
    WRITE_ONCE(*word, value);
    barrier();
}

/* Against an NMI on the same processor: one instruction, or a retry loop. */
static inline unsigned kmes_local_add(unsigned* word, unsigned n) {
    static_assert(sizeof(atomic_t) == sizeof(*word));
    return (unsigned)atomic_fetch_add_relaxed((int)n, (atomic_t*)word);
}

#endif
