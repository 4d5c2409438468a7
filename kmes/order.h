/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* clang-format off */
/*
 * Ordered access to shared memory: the seam's half that has to do with other processors. The only
 * place (with the implementation that it includes) in which the core has atomics and fences.
 *
 * Every access to memory that a consumer shares carries a label from the index below. In a plain
 * build the label costs nothing. A hooked build (KMES_ORDER_HOOKED) hands it, before the access is
 * done, to a test, which can then schedule producer and consumer access by access; a
 * ThreadSanitizer build uses it to plant races.
 *
 * The index of pairs
 * ------------------
 * "A pairs with B" means: if the load B reads what the store A wrote (or anything later), then all
 * that stands before A in its program is visible after B. The fences pair as the text says.
 *
 *   producer, then consumer              what the pair guarantees
 *
 *   PUBLISH            store release     who sees write_pos sees the whole events before it, and
 *     LOOK_WRITE_POS   load acquire      the tail that made room for them (5.1.7 step 8)
 *     SLEEP_WRITE_POS  load acquire
 *     FROZEN_WRITE_POS load acquire
 *
 *   TAIL               store release     who sees tail_pos may read from there (5.1.7 step 6)
 *     LOOK_TAIL        load acquire
 *
 *   TAIL_FENCE         fence release     after TAIL, before DATA:
 *     DATA_FENCE       fence acquire     after READ_DATA, before RECHECK_TAIL: who has read one
 *                                        byte of a new event over an old one sees the tail that
 *                                        made room for it (E5 with E4)
 *
 *   WAKE_FENCE         fence full        after PUBLISH (or a batch of them), before NEED_WAKE:
 *     SLEEP_FENCE      fence full        after ASK_WAKE, before SLEEP_WRITE_POS: of "write_pos
 *                                        stored, need_wake loaded" against "need_wake stored,
 *                                        write_pos loaded" one side sees the other (E1)
 *
 *   WAKE_FENCE_LIGHT   fence light       in the place of WAKE_FENCE, where every consumer promises
 *     SLEEP_BARRIER    fence light,      SLEEP_BARRIER: after ASK_WAKE, before SLEEP_FENCE, the
 *                      platform barrier  kernel executes a full fence on every processor that runs
 *                                        the producer, so the same pair holds (E1)
 *
 *   COUNTER            store release     who took the counter before its re-check finds another
 *     SLEEP_COUNTER    load acquire      value in its futex_wait if an event came after it (E2)
 *
 *   GENERATION         store release     who sees the generation changed sees the last write_pos of
 *     LOOK_GENERATION  load acquire      the buffer (E24)
 *     SLEEP_GENERATION load acquire
 *
 *   RETIRE_COUNTER     store release     after GENERATION: who took this counter sees the changed
 *     SLEEP_COUNTER    load acquire      generation in its re-check; who took an older one finds
 *                                        another value in its futex_wait, or is woken (E3)
 *
 * On x86-64 only the two full fences cost an instruction.
 */
/* clang-format on */
#ifndef KMES_ORDER_H
#define KMES_ORDER_H

#include "kmes/types.h"

/* X(label, access, field): what the index above is checked against, by tests and by tools. */
#define KMES_ORDER_LABELS(X)                            \
    /* the producer (kmes/producer.c) */                \
    X(TAIL, store_release, tail_pos)                    \
    X(TAIL_FENCE, fence_release, none)                  \
    X(DATA, copy_in, data)                              \
    X(WALK_SIZE, copy_out, data)                        \
    X(PUBLISH, store_release, write_pos)                \
    X(WAKE_FENCE, fence_full, none)                     \
    X(WAKE_FENCE_LIGHT, fence_light, none)              \
    X(NEED_WAKE, load_relaxed, need_wake)               \
    X(COUNTER, store_release, futex_counter)            \
    /* a buffer that nobody maps yet (kmes/buffer.c) */ \
    X(FRESH, store_relaxed, every_field)                \
    /* resize, nudge, end (kmes/swap.c) */              \
    X(SWAP_DATA, copy_in, data)                         \
    X(SWAP_TAIL, store_relaxed, tail_pos)               \
    X(SWAP_PUBLISH, store_release, write_pos)           \
    X(GENERATION, store_release, generation)            \
    X(RETIRE_COUNTER, store_release, futex_counter)     \
    /* the consumer (attach.c, consumer.c, sleep.c) */  \
    X(STATIC_FIELD, load_relaxed, static_fields)        \
    X(LOOK_WRITE_POS, load_acquire, write_pos)          \
    X(LOOK_TAIL, load_acquire, tail_pos)                \
    X(READ_DATA, copy_out, data)                        \
    X(DATA_FENCE, fence_acquire, none)                  \
    X(RECHECK_TAIL, load_relaxed, tail_pos)             \
    X(VALID_DATA, validated, data)                      \
    X(LOOK_GENERATION, load_acquire, generation)        \
    X(FROZEN_WRITE_POS, load_acquire, write_pos)        \
    X(SLEEP_COUNTER, load_acquire, futex_counter)       \
    X(ASK_WAKE, store_release, need_wake)               \
    X(SLEEP_BARRIER, fence_light, none)                 \
    X(SLEEP_FENCE, fence_full, none)                    \
    X(SLEEP_WRITE_POS, load_acquire, write_pos)         \
    X(SLEEP_GENERATION, load_acquire, generation)       \
    X(CLEAR_WAKE, store_relaxed, need_wake)

#define KMES_ORDER_ENUMERATOR(label, access, field) KMES_ORDER_##label,
enum kmes_order_label { KMES_ORDER_LABELS(KMES_ORDER_ENUMERATOR) KMES_ORDER_LABEL_COUNT };
#undef KMES_ORDER_ENUMERATOR

/*
 * The implementation gives these, each for a naturally aligned word (T is u64, u32, u16 or u8):
 *
 *   __T  kmes_load_relaxed_T(const __T *word, label)     one load, not torn, no order
 *   __T  kmes_load_acquire_T(const __T *word, label)     what follows is done after it
 *   void kmes_store_relaxed_T(__T *word, __T value, label)
 *   void kmes_store_release_T(__T *word, __T value, label)   what precedes is visible before it
 *   void kmes_fence_release(label)    stores before it are visible before stores after it
 *   void kmes_fence_acquire(label)    loads before it are done before loads after it
 *   void kmes_fence_full(label)       stores and loads before it are done before those after it
 *   void kmes_fence_light(label)      the same for the compiler; the processor may reorder them
 *
 *   void kmes_copy_in(data, capacity_bytes, pos, from, bytes, label)
 *   void kmes_copy_out(to, data, capacity_bytes, pos, bytes, label)
 *        copy into and out of a data region at position `pos` (5.1.4: one contiguous range of the
 *        double mapping; `bytes` at most the capacity). Relaxed: the other side may be at the same
 *        bytes, a torn result is found by RECHECK_TAIL.
 *   void kmes_copy_in_words(data, capacity_bytes, pos, words, bytes, label)
 *        kmes_copy_in of `bytes`, a constant below 8 * KMES_HEADER_WORDS_MAX, that the caller has
 *        just built in __u64 words: each word goes from its register to the ring. (A copy by wider
 * loads than the stores that built the bytes would wait until these have left the store buffer.)
 *   void kmes_copy_out_words(words, data, capacity_bytes, pos, bytes, label)
 *        kmes_copy_out of `bytes`, as kmes_load_words takes them, to words that the caller looks at
 *        next: each goes from the ring to its register.
 *   void kmes_data_is_valid(data, pos, bytes, label)
 *        nothing, but for tools: the caller has proved that what it copied from there is whole.
 *
 *   void kmes_data_is_fresh(data, label)
 *        likewise: a new buffer begins at this data region.
 *
 *   unsigned kmes_local_load(const unsigned *word)
 *   void     kmes_local_store(unsigned *word, unsigned value)
 *   unsigned kmes_local_add(unsigned *word, unsigned n)      the old value
 *        against interruption on the same processor only (E16): not torn, in program order.
 */
#ifdef __KERNEL__
#include "order_kernel.h"
#elif defined(KMES_ORDER_HOOKED)
#include "kmes/user/order_hooked.h"
#elif defined(__SANITIZE_THREAD__)
#include "kmes/user/order_tsan.h"
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include "kmes/user/order_tsan.h"
#else
#include "kmes/user/order_plain.h"
#endif
#else
#include "kmes/user/order_plain.h"
#endif

/* In the kernel the compiler does so by itself, and a build for tests sees every copy alike. */
#ifndef KMES_ORDER_HAS_COPY_IN_WORDS
static inline void kmes_copy_in_words(__u8* data, __u64 capacity_bytes, __u64 pos,
                                      const __u64* words, __u64 bytes,
                                      enum kmes_order_label label) {
    kmes_copy_in(data, capacity_bytes, pos, words, bytes, label);
}
#endif

#ifndef KMES_ORDER_HAS_COPY_OUT_WORDS
static inline void kmes_copy_out_words(__u64* words, const __u8* data, __u64 capacity_bytes,
                                       __u64 pos, __u64 bytes, enum kmes_order_label label) {
    words[bytes / 8] = 0;
    kmes_copy_out(words, data, capacity_bytes, pos, bytes, label);
}
#endif

#endif
