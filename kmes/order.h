/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* clang-format off */
/*
 * Ordered access to shared memory: the part of the platform seam that concerns other processors. In
 * the core, only this file and the implementation that it includes contain atomics and fences.
 *
 * Every access to memory that a consumer shares carries a label from the index below. In a plain
 * build the label costs nothing. A hooked build (KMES_ORDER_HOOKED) passes the label to a test
 * before the access. The test can then schedule producer and consumer access by access. A
 * ThreadSanitizer build uses the labels to plant races.
 *
 * The index of pairs
 * ------------------
 * "A pairs with B" means: suppose that the load B reads the value of the store A, or a later one.
 * Then all accesses before A in its program are visible after B. The table says how the fences
 * pair.
 *
 *   producer, then consumer              what the pair guarantees
 *
 *   PUBLISH            store release     a consumer that sees write_pos sees the whole events
 *     LOAD_WRITE_POS   load acquire      before it, and the tail that made room for them
 *     SLEEP_WRITE_POS  load acquire      (5.1.7 step 8)
 *     FROZEN_WRITE_POS load acquire
 *
 *   TAIL               store release     a consumer that sees tail_pos may read from there
 *     LOAD_TAIL        load acquire      (5.1.7 step 6)
 *
 *   TAIL_FENCE         fence release     after TAIL, before DATA:
 *     DATA_FENCE       fence acquire     after READ_DATA, before RECHECK_TAIL: a consumer that
 *                                        copied one byte of a new event over an old one sees the
 *                                        tail that made room for it (E5 with E4)
 *
 *   WAKE_FENCE         fence full        after PUBLISH (or a batch of them), before NEED_WAKE:
 *     SLEEP_FENCE      fence full        after ASK_WAKE, before SLEEP_WRITE_POS: the producer
 *                                        stores write_pos and then loads need_wake; the consumer
 *                                        stores need_wake and then loads write_pos. At least one
 *                                        of them sees the store of the other (E1)
 *
 *   WAKE_FENCE_LIGHT   fence light       replaces WAKE_FENCE if every consumer promises
 *     SLEEP_BARRIER    fence light,      SLEEP_BARRIER: after ASK_WAKE, before SLEEP_FENCE, the
 *                      platform barrier  kernel executes a full fence on every processor that runs
 *                                        the producer, so the same pair holds (E1)
 *
 *   COUNTER            store release     a consumer that loaded the counter before its re-check
 *     SLEEP_COUNTER    load acquire      finds another value in its futex_wait if an event came
 *                                        after the re-check (E2)
 *
 *   GENERATION         store release     a consumer that sees the new generation sees the last
 *     LOAD_GENERATION  load acquire      write_pos of the buffer (E24)
 *     SLEEP_GENERATION load acquire
 *
 *   RETIRE_COUNTER     store release     after GENERATION: a consumer that loaded this counter
 *     SLEEP_COUNTER    load acquire      sees the new generation in its re-check; with an older
 *                                        counter its futex_wait finds another value, or it is
 *                                        woken (E3)
 *
 * On x86-64 only the two full fences cost an instruction.
 */
/* clang-format on */
#ifndef KMES_ORDER_H
#define KMES_ORDER_H

#include "kmes/types.h"

/* X(label, access, field): the index above as a table. Tests and tools check the code against
 * it. */
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
    X(LOAD_WRITE_POS, load_acquire, write_pos)          \
    X(LOAD_TAIL, load_acquire, tail_pos)                \
    X(READ_DATA, copy_out, data)                        \
    X(DATA_FENCE, fence_acquire, none)                  \
    X(RECHECK_TAIL, load_relaxed, tail_pos)             \
    X(VALID_DATA, validated, data)                      \
    X(LOAD_GENERATION, load_acquire, generation)        \
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
 * The implementation provides these functions, each for a naturally aligned word (T is u64, u32,
 * u16 or u8):
 *
 *   __T  kmes_load_relaxed_T(const __T *word, label)     one load, not torn, no order
 *   __T  kmes_load_acquire_T(const __T *word, label)     later accesses are done after it
 *   void kmes_store_relaxed_T(__T *word, __T value, label)
 *   void kmes_store_release_T(__T *word, __T value, label)   earlier accesses are visible before it
 *   void kmes_fence_release(label)    stores before it are visible before stores after it
 *   void kmes_fence_acquire(label)    loads before it are done before loads after it
 *   void kmes_fence_full(label)       stores and loads before it are done before those after it
 *   void kmes_fence_light(label)      the same for the compiler; the processor may reorder them
 *
 *   void kmes_copy_in(data, capacity_bytes, pos, from, bytes, label)
 *   void kmes_copy_out(to, data, capacity_bytes, pos, bytes, label)
 *        copy into and out of a data region at position `pos` (5.1.4: one contiguous range of the
 *        double mapping; `bytes` is at most the capacity). Relaxed: the other side may access the
 *        same bytes. RECHECK_TAIL detects a torn result.
 *   void kmes_copy_in_words(data, capacity_bytes, pos, words, bytes, label)
 *        kmes_copy_in of `bytes`, a constant below 8 * KMES_HEADER_WORDS_MAX. The caller has just
 *        built the bytes in __u64 words, and each word goes from its register to the ring. A copy
 *        by wider loads than the stores that built the bytes would wait for the store buffer.
 *   void kmes_copy_out_words(words, data, capacity_bytes, pos, bytes, label)
 *        kmes_copy_out of `bytes`, as kmes_load_words takes them, to words that the caller uses
 *        next. Each word goes from the ring to its register.
 *   void kmes_data_is_valid(data, pos, bytes, label)
 *        no operation, for tools: the caller has proved that its copy of these bytes is not torn.
 *
 *   void kmes_prefetch_data(data, mask, pos)
 *        a hint, no access: the lines after the one of `pos` will be written soon. An event of 64
 *        bytes of payload lies in up to three.
 *
 *   void kmes_data_is_fresh(data, label)
 *        no operation, for tools: a new buffer begins at this data region.
 *
 *   unsigned kmes_local_load(const unsigned *word)
 *   void     kmes_local_store(unsigned *word, unsigned value)
 *   unsigned kmes_local_add(unsigned *word, unsigned n)      returns the old value
 *        safe against interruption on the same processor only (E16): not torn, in program order.
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

#define KMES_CACHE_LINE_BYTES 64u

static inline void kmes_prefetch_data(const __u8* data, __u64 mask, __u64 pos) {
    const __u8* line = data + (pos & mask);

    __builtin_prefetch(line + KMES_CACHE_LINE_BYTES, 1);
    __builtin_prefetch(line + 2 * KMES_CACHE_LINE_BYTES, 1);
}

/* The kernel's compiler keeps the words in registers anyway; a build for tests treats every copy
 * alike. */
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
