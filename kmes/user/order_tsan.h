/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/order.h for ThreadSanitizer builds, in which TSan can see the guarantees of the protocol.
 * Only kmes/order.h includes it. docs/threads.md lists what TSan can see and what it cannot.
 *
 * TSan has three limits. Its shadow memory is indexed by virtual address, so it does not relate the
 * two halves of the double mapping. A lapped reader reads bytes while the writer writes them, by
 * design, and detects it afterwards. TSan has no model of fences. The bytes are therefore copied
 * with relaxed atomic accesses, which are no race for TSan. Each guarantee is reported to TSan as
 * plain accesses to a stand-in address that nothing else uses:
 *
 *   the guarantee                        "written" at         "read" at
 *   data at position p is there          DATA, SWAP_DATA      VALID_DATA
 *   tail t was stored before new bytes   TAIL                 RECHECK_TAIL, if READ_DATA met bytes
 *                                                             that were written after t
 *   accesses before counter c            COUNTER,             SLEEP_WRITE_POS, SLEEP_GENERATION,
 *                                        RETIRE_COUNTER       if SLEEP_COUNTER loaded c
 *   accesses before generation g         GENERATION           FROZEN_WRITE_POS, if
 *                                                             LOAD_GENERATION saw g
 *
 * The two accesses race unless something orders them: PUBLISH with LOAD_WRITE_POS, and so on.
 * Fences are executed, and the pair of the data is reported as C11 pairs it. TAIL_FENCE releases
 * the accesses before it. DATA_FENCE acquires those of the newest tail that the copied bytes refer
 * to. The two full fences order nothing that a race could show: they protect values (E1).
 *
 * A test plants a fault by its label; props/threads lists which method finds which fault.
 */
#ifndef KMES_USER_ORDER_TSAN_H
#define KMES_USER_ORDER_TSAN_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/* -1: no fault is planted. Set them only while no other thread is in the core. */
extern int kmes_tsan_plain_label;     /* this access is plain */
extern int kmes_tsan_relaxed_label;   /* this load or store has no order */
extern int kmes_tsan_dropped_label;   /* this fence is neither executed nor reported */
extern int kmes_tsan_reordered_label; /* this fence is reported, but the accesses around it are
                                         executed in an order that its absence would allow a
                                         processor */
extern int kmes_tsan_skipped_label;   /* RECHECK_TAIL: the result is not used */
extern unsigned kmes_tsan_noise;      /* a thread pauses at one access of this many; 0: never */

/* These functions keep records that TSan does not see. If a function returns an address (not NULL),
 * the caller reports the access to TSan, so that a report names the place in the core. */
void kmes_tsan_pause(void);
void kmes_tsan_fresh(const __u8* data); /* a new buffer: new stand-in addresses */
void* kmes_tsan_position(const __u8* data, __u64 pos);
void kmes_tsan_tag(const __u8* data, __u64 capacity_bytes, __u64 pos, __u64 bytes);
void kmes_tsan_read_tags(const __u8* data, __u64 capacity_bytes, __u64 pos, __u64 bytes);

void* kmes_tsan_tail_is_stored(const void* word, __u64 tail);
void* kmes_tsan_tail_fence(void);
void* kmes_tsan_data_fence(void);
void* kmes_tsan_tail_is_rechecked(const void* word);
void kmes_tsan_tail_is_loaded(const void* word, __u64 tail);
__u64 kmes_tsan_planted_tail(const void* word, __u64 tail);
void* kmes_tsan_counter_is_stored(const void* word, __u64 counter);
void kmes_tsan_counter_is_taken(__u64 counter);
void* kmes_tsan_counter_is_relied_on(const void* word);
void* kmes_tsan_generation_is_stored(const void* word, __u64 generation);
void kmes_tsan_generation_is_seen(__u64 generation);
void* kmes_tsan_generation_is_relied_on(const void* word);

void kmes_tsan_fence(void); /* full, not visible to TSan */
/* Delays a store, as in a store buffer, until this thread's next held store or the release. */
void kmes_tsan_hold(void* word, __u64 value, unsigned bytes);
void kmes_tsan_release_held(void);

/* Functions of TSan (compiler-rt, tsan_interface.h). */
void __tsan_read8(void* address);
void __tsan_write8(void* address);
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
void __tsan_acquire(void* address);
void __tsan_release(void* address);

KMES_EXTERN_C_END

static inline void kmes_tsan_tell_write(void* address) {
    if (address) __tsan_write8(address);
}

static inline void kmes_tsan_tell_read(void* address) {
    if (address) __tsan_read8(address);
}

/* Called before a store. True: the store is held back. */
static inline bool kmes_tsan_before_store(void* word, __u64 value, unsigned bytes,
                                          enum kmes_order_label label) {
    kmes_tsan_pause();
    kmes_tsan_release_held();
    if (label == KMES_ORDER_TAIL) kmes_tsan_tell_write(kmes_tsan_tail_is_stored(word, value));
    if (label == KMES_ORDER_GENERATION)
        kmes_tsan_tell_write(kmes_tsan_generation_is_stored(word, value));
    if (label == KMES_ORDER_COUNTER || label == KMES_ORDER_RETIRE_COUNTER)
        kmes_tsan_tell_write(kmes_tsan_counter_is_stored(word, value));
    if ((label == KMES_ORDER_TAIL && kmes_tsan_reordered_label == KMES_ORDER_TAIL_FENCE) ||
        (label == KMES_ORDER_PUBLISH && kmes_tsan_reordered_label == KMES_ORDER_WAKE_FENCE) ||
        (label == KMES_ORDER_ASK_WAKE && kmes_tsan_reordered_label == KMES_ORDER_SLEEP_FENCE)) {
        kmes_tsan_hold(word, value, bytes);
        return true;
    }
    return false;
}

/* Called after a load. Returns the value of the load. */
static inline __u64 kmes_tsan_after_load(const void* word, __u64 value,
                                         enum kmes_order_label label) {
    if (label == KMES_ORDER_LOAD_TAIL) kmes_tsan_tail_is_loaded(word, value);
    if (label == KMES_ORDER_RECHECK_TAIL) {
        kmes_tsan_tell_read(kmes_tsan_tail_is_rechecked(word));
        return kmes_tsan_planted_tail(word, value);
    }
    if (label == KMES_ORDER_LOAD_GENERATION) kmes_tsan_generation_is_seen(value);
    if (label == KMES_ORDER_FROZEN_WRITE_POS)
        kmes_tsan_tell_read(kmes_tsan_generation_is_relied_on(word));
    if (label == KMES_ORDER_SLEEP_COUNTER) kmes_tsan_counter_is_taken(value);
    if (label == KMES_ORDER_SLEEP_WRITE_POS || label == KMES_ORDER_SLEEP_GENERATION)
        kmes_tsan_tell_read(kmes_tsan_counter_is_relied_on(word));
    if (label == KMES_ORDER_NEED_WAKE || label == KMES_ORDER_SLEEP_GENERATION) {
        kmes_tsan_pause();
        kmes_tsan_release_held();
    }
    return value;
}

#define KMES_ORDER_DEFINE_ACCESSORS(T)                                                            \
    static inline __##T kmes_load_relaxed_##T(const __##T* word, enum kmes_order_label label) {   \
        kmes_tsan_pause();                                                                        \
        if ((int)label == kmes_tsan_plain_label)                                                  \
            return (__##T)kmes_tsan_after_load(word, *word, label);                               \
        return (__##T)kmes_tsan_after_load(word, __atomic_load_n(word, __ATOMIC_RELAXED), label); \
    }                                                                                             \
    static inline __##T kmes_load_acquire_##T(const __##T* word, enum kmes_order_label label) {   \
        if ((int)label == kmes_tsan_plain_label || (int)label == kmes_tsan_relaxed_label)         \
            return kmes_load_relaxed_##T(word, label);                                            \
        kmes_tsan_pause();                                                                        \
        return (__##T)kmes_tsan_after_load(word, __atomic_load_n(word, __ATOMIC_ACQUIRE), label); \
    }                                                                                             \
    static inline void kmes_store_relaxed_##T(__##T* word, __##T value,                           \
                                              enum kmes_order_label label) {                      \
        if (kmes_tsan_before_store(word, value, sizeof(value), label)) return;                    \
        if ((int)label == kmes_tsan_plain_label)                                                  \
            *word = value;                                                                        \
        else                                                                                      \
            __atomic_store_n(word, value, __ATOMIC_RELAXED);                                      \
    }                                                                                             \
    static inline void kmes_store_release_##T(__##T* word, __##T value,                           \
                                              enum kmes_order_label label) {                      \
        if ((int)label == kmes_tsan_plain_label || (int)label == kmes_tsan_relaxed_label)         \
            kmes_store_relaxed_##T(word, value, label);                                           \
        else if (!kmes_tsan_before_store(word, value, sizeof(value), label))                      \
            __atomic_store_n(word, value, __ATOMIC_RELEASE);                                      \
    }

KMES_ORDER_DEFINE_ACCESSORS(u64)
KMES_ORDER_DEFINE_ACCESSORS(u32)
KMES_ORDER_DEFINE_ACCESSORS(u16)
KMES_ORDER_DEFINE_ACCESSORS(u8)
#undef KMES_ORDER_DEFINE_ACCESSORS

static inline void kmes_fence_release(enum kmes_order_label label) {
    void* address;

    if ((int)label == kmes_tsan_dropped_label) return;
    kmes_tsan_fence();
    address = label == KMES_ORDER_TAIL_FENCE ? kmes_tsan_tail_fence() : NULL;
    if (address) __tsan_release(address);
}

static inline void kmes_fence_acquire(enum kmes_order_label label) {
    void* address;

    if ((int)label == kmes_tsan_dropped_label) return;
    kmes_tsan_fence();
    address = label == KMES_ORDER_DATA_FENCE ? kmes_tsan_data_fence() : NULL;
    if (address) __tsan_acquire(address);
}

static inline void kmes_fence_full(enum kmes_order_label label) {
    if ((int)label == kmes_tsan_dropped_label) return;
    kmes_tsan_fence();
}

static inline void kmes_fence_light(enum kmes_order_label label) {
    (void)label;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void kmes_copy_in(__u8* data, __u64 capacity_bytes, __u64 pos, const void* from,
                                __u64 bytes, enum kmes_order_label label) {
    const __u8* source = (const __u8*)from;
    void* address = kmes_tsan_position(data, pos);
    __u64 i;

    kmes_tsan_pause();
    kmes_tsan_tag(data, capacity_bytes, pos, bytes);
    if (address && bytes) __tsan_write_range(address, bytes);
    for (i = 0; i < bytes; i++) {
        __u8* to = data + ((pos + i) & (capacity_bytes - 1));

        if ((int)label == kmes_tsan_plain_label)
            *to = source[i];
        else
            __atomic_store_n(to, source[i], __ATOMIC_RELAXED);
    }
}

static inline void kmes_copy_out(void* to, const __u8* data, __u64 capacity_bytes, __u64 pos,
                                 __u64 bytes, enum kmes_order_label label) {
    __u8* target = (__u8*)to;
    __u64 i;

    kmes_tsan_pause();
    for (i = 0; i < bytes; i++) {
        const __u8* from = data + ((pos + i) & (capacity_bytes - 1));

        if ((int)label == kmes_tsan_plain_label)
            target[i] = *from;
        else
            target[i] = __atomic_load_n(from, __ATOMIC_RELAXED);
    }
    if (label == KMES_ORDER_READ_DATA) kmes_tsan_read_tags(data, capacity_bytes, pos, bytes);
}

static inline void kmes_data_is_valid(const __u8* data, __u64 pos, __u64 bytes,
                                      enum kmes_order_label label) {
    void* address = kmes_tsan_position(data, pos);

    (void)label;
    if (address && bytes) __tsan_read_range(address, bytes);
}

static inline void kmes_data_is_fresh(const __u8* data, enum kmes_order_label label) {
    (void)label;
    kmes_tsan_fresh(data);
}

#include "kmes/user/order_local.h"

#endif
