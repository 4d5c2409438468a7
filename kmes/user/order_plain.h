/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/order.h for userspace: compiler atomics, and memcpy for the data. Only kmes/order.h includes
 * it.
 *
 * The data is copied as by memcpy while the other side may write the same bytes. Formally this is a
 * race. It is correct for two reasons: the reader trusts nothing before RECHECK_TAIL has passed,
 * and the compiler moves no copy over the fences around it. The ThreadSanitizer build
 * (order_tsan.h) does the same copy with atomic accesses.
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

static inline void kmes_fence_light(enum kmes_order_label label) {
    (void)label;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* memcpy, inline up to 64 bytes. Most types and many payloads are that short, and a call takes
 * longer than their copy. The first and the last piece may overlap: both have the same bytes. */
static inline void kmes_order_copy(__u8* to, const __u8* from, __u64 bytes) {
    if (__builtin_constant_p(bytes) || bytes > 64) {
        __builtin_memcpy(to, from, bytes);
    } else if (bytes > 32) {
        __builtin_memcpy(to, from, 32);
        __builtin_memcpy(to + bytes - 32, from + bytes - 32, 32);
    } else if (bytes >= 16) {
        __builtin_memcpy(to, from, 16);
        __builtin_memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        __builtin_memcpy(to, from, 8);
        __builtin_memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        __builtin_memcpy(to, from, 4);
        __builtin_memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else if (bytes > 0) {
        to[0] = from[0];
        to[bytes / 2] = from[bytes / 2];
        to[bytes - 1] = from[bytes - 1];
    }
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    (void)label;
    kmes_order_copy(data + (pos & (capacity_bytes - 1)), (const __u8*)from, bytes);
}

#define KMES_ORDER_HAS_COPY_IN_WORDS
static inline void kmes_copy_in_words(__u8* data, __u64 capacity_bytes, __u64 pos,
                                      const __u64* words, __u64 bytes,
                                      enum kmes_order_label label) {
    __u8* to = data + (pos & (capacity_bytes - 1));
    __u64 rest = words[bytes / 8];

    (void)label;
    if (bytes >= 8) __builtin_memcpy(to, words, 8);
    if (bytes >= 16) __builtin_memcpy(to + 8, words + 1, 8);
    if (bytes >= 24) __builtin_memcpy(to + 16, words + 2, 8);
#if KMES_HEADER_WORDS_MAX > 4
    for (unsigned i = 3; i < bytes / 8; i++) __builtin_memcpy(to + 8 * i, words + i, 8);
#endif
    to += bytes & ~7ull;
    if (bytes & 4) {
        __builtin_memcpy(to, &rest, 4);
        rest >>= 32;
        to += 4;
    }
    if (bytes & 2) {
        __builtin_memcpy(to, &rest, 2);
        rest >>= 16;
        to += 2;
    }
    if (bytes & 1) *to = (__u8)rest;
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    (void)label;
    __builtin_memcpy(to, data + (pos & (capacity_bytes - 1)), bytes);
}

#define KMES_ORDER_HAS_COPY_OUT_WORDS
static inline void kmes_copy_out_words(__u64* words, const __u8* data, __u64 capacity_bytes,
                                       __u64 pos, __u64 bytes, enum kmes_order_label label) {
    (void)label;
    kmes_load_words(words, data + (pos & (capacity_bytes - 1)), bytes);
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
