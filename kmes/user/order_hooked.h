/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/order.h for tests that schedule. Before each access to shared memory a hook gets the access,
 * and can let the other side act first. Data is copied word by word, so that a test can overwrite
 * it anywhere during the copy. The accesses have full strength: such a test shows interleavings,
 * not reordering. Only kmes/order.h includes this file (KMES_ORDER_HOOKED).
 */
#ifndef KMES_USER_ORDER_HOOKED_H
#define KMES_USER_ORDER_HOOKED_H

#include "kmes/types.h"
#include "kmes/user/order_access.h"

KMES_EXTERN_C_BEGIN

/* NULL: no hook is called. Set it only while no other thread is in the core.
 * (user/order_hooked.c) */
extern void (*kmes_order_hook)(void* context, const struct kmes_order_access* access);
extern void* kmes_order_hook_context;

KMES_EXTERN_C_END

static inline void kmes_order_tell(enum kmes_order_label label, enum kmes_order_kind kind,
                                   const void* address, __u64 bytes) {
    struct kmes_order_access access;

    if (!kmes_order_hook) return;
    access.label = label;
    access.kind = kind;
    access.address = address;
    access.bytes = bytes;
    kmes_order_hook(kmes_order_hook_context, &access);
}

#define KMES_ORDER_DEFINE_LOAD(order, T)                                                          \
    static inline __##T kmes_load_##order##_##T(const __##T* word, enum kmes_order_label label) { \
        kmes_order_tell(label, KMES_ORDER_KIND_load_##order, word, sizeof(*word));                \
        return __atomic_load_n(word, __ATOMIC_SEQ_CST);                                           \
    }
#define KMES_ORDER_DEFINE_STORE(order, T)                                           \
    static inline void kmes_store_##order##_##T(__##T* word, __##T value,           \
                                                enum kmes_order_label label) {      \
        kmes_order_tell(label, KMES_ORDER_KIND_store_##order, word, sizeof(*word)); \
        __atomic_store_n(word, value, __ATOMIC_SEQ_CST);                            \
    }
#define KMES_ORDER_DEFINE_ACCESSORS(T)  \
    KMES_ORDER_DEFINE_LOAD(relaxed, T)  \
    KMES_ORDER_DEFINE_LOAD(acquire, T)  \
    KMES_ORDER_DEFINE_STORE(relaxed, T) \
    KMES_ORDER_DEFINE_STORE(release, T)

KMES_ORDER_DEFINE_ACCESSORS(u64)
KMES_ORDER_DEFINE_ACCESSORS(u32)
KMES_ORDER_DEFINE_ACCESSORS(u16)
KMES_ORDER_DEFINE_ACCESSORS(u8)
#undef KMES_ORDER_DEFINE_ACCESSORS
#undef KMES_ORDER_DEFINE_STORE
#undef KMES_ORDER_DEFINE_LOAD

static inline void kmes_fence_release(enum kmes_order_label label) {
    kmes_order_tell(label, KMES_ORDER_KIND_fence_release, NULL, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void kmes_fence_acquire(enum kmes_order_label label) {
    kmes_order_tell(label, KMES_ORDER_KIND_fence_acquire, NULL, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void kmes_fence_full(enum kmes_order_label label) {
    kmes_order_tell(label, KMES_ORDER_KIND_fence_full, NULL, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void kmes_fence_light(enum kmes_order_label label) {
    kmes_order_tell(label, KMES_ORDER_KIND_fence_light, NULL, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The first word ends at the next multiple of eight of the address in the ring, like on
 * hardware. */
static inline void kmes_order_copy_words(__u8* to, const __u8* from, __u64 bytes,
                                         const __u8* shared, enum kmes_order_label label,
                                         enum kmes_order_kind kind) {
    __u64 done = 0;

    while (done < bytes) {
        __u64 word = 8 - ((__u64)(shared + done) & 7);

        if (word > bytes - done) word = bytes - done;
        kmes_order_tell(label, kind, shared + done, word);
        __builtin_memcpy(to + done, from + done, word);
        done += word;
    }
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    __u8* to = data + (pos & (capacity_bytes - 1));

    kmes_order_copy_words(to, (const __u8*)from, bytes, to, label, KMES_ORDER_KIND_copy_in);
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    const __u8* from = data + (pos & (capacity_bytes - 1));

    kmes_order_copy_words((__u8*)to, from, bytes, from, label, KMES_ORDER_KIND_copy_out);
}

static inline void kmes_data_is_valid(const __u8* data, __u64 pos, __u64 bytes,
                                      enum kmes_order_label label) {
    (void)pos;
    kmes_order_tell(label, KMES_ORDER_KIND_validated, data, bytes);
}

/* A note, and no access to a field. It has the label of the stores that follow it. */
static inline void kmes_data_is_fresh(const __u8* data, enum kmes_order_label label) {
    kmes_order_tell(label, KMES_ORDER_KIND_store_relaxed, data, 0);
}

#include "kmes/user/order_local.h"

#endif
