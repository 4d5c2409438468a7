/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/order.h for userspace: compiler atomics, and memcpy for the data. Never included but by
 * kmes/order.h.
 *
 * The data is copied by memcpy while the other side may be writing the same bytes. Formally that is
 * a race; what makes it right is that nothing is believed before RECHECK_TAIL has passed, and that
 * a copy is a call of which the compiler keeps the order against the fences around it. The
 * ThreadSanitizer build (order_tsan.h) does the same copy with atomic accesses.
 */
#ifndef KMES_USER_ORDER_PLAIN_H
#define KMES_USER_ORDER_PLAIN_H

#include "kmes/types.h"

#define KMES_ORDER_DEFINE_ACCESSORS(T)                                                          \
    static inline __##T kmes_load_relaxed_##T(const __##T* word, enum kmes_order_label label) { \
        (void)label;                                                                            \
        return __atomic_load_n(word, __ATOMIC_RELAXED);                                         \
    }                                                                                           \
    static inline __##T kmes_load_acquire_##T(const __##T* word, enum kmes_order_label label) { \
        (void)label;                                                                            \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                         \
    }                                                                                           \
    static inline void kmes_store_relaxed_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        (void)label;                                                                            \
        __atomic_store_n(word, value, __ATOMIC_RELAXED);                                        \
    }                                                                                           \
    static inline void kmes_store_release_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        (void)label;                                                                            \
        __atomic_store_n(word, value, __ATOMIC_RELEASE);                                        \
    }

KMES_ORDER_DEFINE_ACCESSORS(u64)
KMES_ORDER_DEFINE_ACCESSORS(u32)
KMES_ORDER_DEFINE_ACCESSORS(u16)
KMES_ORDER_DEFINE_ACCESSORS(u8)
#undef KMES_ORDER_DEFINE_ACCESSORS

static inline void kmes_fence_release(enum kmes_order_label label) {
    (void)label;
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void kmes_fence_acquire(enum kmes_order_label label) {
    (void)label;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void kmes_fence_full(enum kmes_order_label label) {
    (void)label;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    (void)label;
    __builtin_memcpy(data + (pos & (capacity_bytes - 1)), from, bytes);
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    (void)label;
    __builtin_memcpy(to, data + (pos & (capacity_bytes - 1)), bytes);
}

static inline void kmes_data_is_valid(const __u8* data, __u64 pos, __u64 bytes,
                                      enum kmes_order_label label) {
    (void)data;
    (void)pos;
    (void)bytes;
    (void)label;
}

static inline void kmes_data_is_fresh(const __u8* data, enum kmes_order_label label) {
    (void)data;
    (void)label;
}

#include "kmes/user/order_local.h"

#endif
