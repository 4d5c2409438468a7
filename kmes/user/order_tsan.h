/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/order.h for ThreadSanitizer builds, in which it can see what the protocol promises. Never
 * included but by kmes/order.h.
 *
 * Two things stand in TSan's way. It keeps its shadow by virtual address, so the two halves of the
 * double mapping are strangers to it; and a reader that is lapped reads what the writer writes, by
 * design, and finds out afterwards. So the bytes themselves are copied with relaxed atomic
 * accesses, which are no race to it, and the promise is told in its own terms at an address that
 * stands for the absolute position: the writer "writes" position p there when it copies in, and the
 * reader "reads" it once it believes what it copied out (kmes_data_is_valid). The two race unless
 * something orders them: PUBLISH with LOOK_WRITE_POS, and nothing else. Bytes written later to the
 * same place have another position, and so another address.
 *
 * Fences are done, but not told: TSan has no notion of them. What only a fence keeps right (E1, E4,
 * E5) is shown elsewhere.
 *
 * A test plants a race by naming a label: kmes_tsan_plain_label makes that access a plain one,
 * kmes_tsan_relaxed_label takes its order away. (user/order_tsan.c)
 */
#ifndef KMES_USER_ORDER_TSAN_H
#define KMES_USER_ORDER_TSAN_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

extern int kmes_tsan_plain_label;   /* -1: none */
extern int kmes_tsan_relaxed_label; /* -1: none */

void kmes_tsan_fence(void);             /* full, invisible to TSan */
void kmes_tsan_fresh(const __u8* data); /* a new buffer: new stand-in addresses */
void kmes_tsan_written(const __u8* data, __u64 pos, __u64 bytes);
void kmes_tsan_believed(const __u8* data, __u64 pos, __u64 bytes);

KMES_EXTERN_C_END

#define KMES_ORDER_DEFINE_ACCESSORS(T)                                                          \
    static inline __##T kmes_load_relaxed_##T(const __##T* word, enum kmes_order_label label) { \
        if ((int)label == kmes_tsan_plain_label) return *word;                                  \
        return __atomic_load_n(word, __ATOMIC_RELAXED);                                         \
    }                                                                                           \
    static inline __##T kmes_load_acquire_##T(const __##T* word, enum kmes_order_label label) { \
        if ((int)label == kmes_tsan_plain_label || (int)label == kmes_tsan_relaxed_label)       \
            return kmes_load_relaxed_##T(word, label);                                          \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                         \
    }                                                                                           \
    static inline void kmes_store_relaxed_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        if ((int)label == kmes_tsan_plain_label)                                                \
            *word = value;                                                                      \
        else                                                                                    \
            __atomic_store_n(word, value, __ATOMIC_RELAXED);                                    \
    }                                                                                           \
    static inline void kmes_store_release_##T(__##T* word, __##T value,                         \
                                              enum kmes_order_label label) {                    \
        if ((int)label == kmes_tsan_plain_label || (int)label == kmes_tsan_relaxed_label)       \
            kmes_store_relaxed_##T(word, value, label);                                         \
        else                                                                                    \
            __atomic_store_n(word, value, __ATOMIC_RELEASE);                                    \
    }

KMES_ORDER_DEFINE_ACCESSORS(u64)
KMES_ORDER_DEFINE_ACCESSORS(u32)
KMES_ORDER_DEFINE_ACCESSORS(u16)
KMES_ORDER_DEFINE_ACCESSORS(u8)
#undef KMES_ORDER_DEFINE_ACCESSORS

static inline void kmes_fence_release(enum kmes_order_label label) {
    (void)label;
    kmes_tsan_fence();
}

static inline void kmes_fence_acquire(enum kmes_order_label label) {
    (void)label;
    kmes_tsan_fence();
}

static inline void kmes_fence_full(enum kmes_order_label label) {
    (void)label;
    kmes_tsan_fence();
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    const __u8* source = (const __u8*)from;
    __u64 i;

    (void)label;
    kmes_tsan_written(data, pos, bytes);
    for (i = 0; i < bytes; i++)
        __atomic_store_n(data + ((pos + i) & (capacity_bytes - 1)), source[i], __ATOMIC_RELAXED);
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    __u8* target = (__u8*)to;
    __u64 i;

    (void)label;
    for (i = 0; i < bytes; i++)
        target[i] = __atomic_load_n(data + ((pos + i) & (capacity_bytes - 1)), __ATOMIC_RELAXED);
}

static inline void kmes_data_is_valid(const __u8* data, __u64 pos, __u64 bytes,
                                      enum kmes_order_label label) {
    (void)label;
    kmes_tsan_believed(data, pos, bytes);
}

static inline void kmes_data_is_fresh(const __u8* data, enum kmes_order_label label) {
    (void)label;
    kmes_tsan_fresh(data);
}

#include "kmes/user/order_local.h"

#endif
