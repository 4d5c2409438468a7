// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stand-in addresses of the ThreadSanitizer build (order_tsan.h). For each buffer there is a
 * span of address space, most of it never accessed, in which each guarantee has an address. Empty
 * in other builds.
 *
 *   0          512 MiB    768 MiB    896 MiB     928 MiB       960 MiB    ... 1 GiB
 *   | positions, modulo 512 MiB | tails      | counters  | generations | fences | tags |
 *
 * "Modulo" has a consequence. If a thread sleeps while that much passes, between a lookup and its
 * report, TSan reports a race that does not exist. At the speed of a TSan build this takes tens of
 * seconds.
 */
#if defined(__SANITIZE_THREAD__)
#define KMES_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KMES_HAS_TSAN 1
#endif
#endif

#ifdef KMES_HAS_TSAN

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kmes/abi.h"
#include "kmes/order.h"

#define MIB (1ull << 20)
#define SPAN_BYTES (1024 * MIB)
#define POSITIONS (512 * MIB)
#define TAILS_AT (768 * MIB)
#define TAILS (128 * MIB)
#define COUNTERS_AT (896 * MIB)
#define GENERATIONS_AT (928 * MIB)
#define WORD_VALUES (32 * MIB / 8)
#define FENCES_AT (960 * MIB)
#define FENCES 256u
#define TAGS_AT (961 * MIB)
#define TAGS (64u << 10) /* one for each 64 bytes of data; shared by blocks 4 MiB apart */
#define TAG_BLOCK_BYTES 64u

#define KNOWN_BUFFERS 256u /* data regions that are known at a time */

/* The records of this file must not order the accesses that they observe. TSan treats atomic
 * accesses as synchronisation even in functions that it does not sanitize. */
#if defined(__clang__)
#define UNSEEN __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define UNSEEN __attribute__((no_sanitize("thread"), noinline))
#endif

/* One buffer. `tail` is the last stored value of TAIL; only the owner of the CPU's critical section
 * uses it. A tag is the last tail before the bytes of its block were written. */
struct span {
    const __u8* data;
    __u8* base;
    __u64 tail;
};

/* The unused actions of a thread. */
struct progress {
    const __u8* known_data; /* the span found last, valid while `known_changes` is up to date */
    struct span* known_span;
    unsigned known_changes;
    unsigned random;
    struct span* tail_span; /* the last TAIL, for TAIL_FENCE */
    __u64 tail;
    struct span* seen_span; /* the newest tag that READ_DATA met, for DATA_FENCE */
    __u64 seen_tail;
    __u64 counter;    /* of SLEEP_COUNTER */
    __u64 generation; /* of LOAD_GENERATION */
    const void* loaded_word;
    __u64 loaded_tail; /* of LOAD_TAIL */
    void* held_word;
    __u64 held_value;
    unsigned held_bytes;
};

int kmes_tsan_plain_label = -1;
int kmes_tsan_relaxed_label = -1;
int kmes_tsan_dropped_label = -1;
int kmes_tsan_reordered_label = -1;
int kmes_tsan_skipped_label = -1;
unsigned kmes_tsan_noise;

static struct span spans[KNOWN_BUFFERS];
static unsigned next_span;
static unsigned changes; /* of the table */
static unsigned char table_lock;
static __thread struct progress mine;

UNSEEN void kmes_tsan_fence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

UNSEEN void kmes_tsan_pause(void) {
    volatile unsigned turns;

    if (!kmes_tsan_noise) return;
    if (!mine.random) mine.random = (unsigned)(unsigned long)&mine >> 6 | 1;
    mine.random ^= mine.random << 13;
    mine.random ^= mine.random >> 17;
    mine.random ^= mine.random << 5;
    if (mine.random % kmes_tsan_noise) return;
    if (mine.random & (1u << 24)) sched_yield();
    for (turns = mine.random >> 22; turns > 0; turns--);
}

UNSEEN static void lock_table(void) {
    while (__atomic_test_and_set(&table_lock, __ATOMIC_ACQUIRE));
}

UNSEEN static void unlock_table(void) {
    __atomic_clear(&table_lock, __ATOMIC_RELEASE);
}

/* NULL: unknown. */
UNSEEN static struct span* find(const __u8* data) {
    unsigned i;

    for (i = 0; i < KNOWN_BUFFERS; i++) {
        if (spans[i].data == data) return &spans[i];
    }
    return NULL;
}

/* First unmaps addresses that were used before, with the state that TSan has for them. */
UNSEEN void kmes_tsan_fresh(const __u8* data) {
    struct span* span;
    void* range;

    lock_table();
    span = find(data);
    if (!span) span = &spans[next_span++ % KNOWN_BUFFERS]; /* forgets the oldest */
    if (span->base) munmap(span->base, SPAN_BYTES);
    range = mmap(NULL, SPAN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) abort();
    if (mprotect((__u8*)range + TAGS_AT, TAGS * sizeof(__u64), PROT_READ | PROT_WRITE) != 0)
        abort();
    span->data = data;
    span->base = (__u8*)range;
    span->tail = 0;
    __atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
    unlock_table();
}

/* NULL: a separate mapping, or a forgotten one. TSan cannot check it. */
UNSEEN static struct span* span_of(const __u8* data) {
    unsigned now = __atomic_load_n(&changes, __ATOMIC_RELAXED);

    if (mine.known_data == data && mine.known_changes == now) return mine.known_span;
    lock_table();
    mine.known_changes = __atomic_load_n(&changes, __ATOMIC_RELAXED);
    mine.known_span = find(data);
    mine.known_data = data;
    unlock_table();
    return mine.known_span;
}

UNSEEN static struct span* span_of_word(const void* word) {
    unsigned long page = (unsigned long)word & ~(unsigned long)(KMES_PAGE_BYTES - 1);

    return span_of((const __u8*)(page + KMES_METADATA_BYTES));
}

UNSEEN static __u64* tag_of(const struct span* span, __u64 offset) {
    return (__u64*)(span->base + TAGS_AT) + offset / TAG_BLOCK_BYTES % TAGS;
}

UNSEEN static void* fence_of(const struct span* span, __u64 tail) {
    return span->base + FENCES_AT + 8 * (tail * 0x9E3779B97F4A7C15ull >> 56) % (8 * FENCES);
}

/* Two tails are at least 30 bytes apart. */
UNSEEN static void* tail_of(const struct span* span, __u64 tail) {
    return span->base + TAILS_AT + (tail & ~7ull) % TAILS;
}

/* -- Data ------------------------------------------------------------------------------------- */

UNSEEN void* kmes_tsan_position(const __u8* data, __u64 pos) {
    struct span* span = span_of(data);

    return span ? span->base + pos % POSITIONS : NULL;
}

/* Called before the bytes are written, so that a reader of the bytes finds the tags. */
UNSEEN void kmes_tsan_tag(const __u8* data, __u64 capacity_bytes, __u64 pos, __u64 bytes) {
    struct span* span = span_of(data);
    __u64 at;

    if (!span || !bytes) return;
    for (at = pos - pos % TAG_BLOCK_BYTES; at < pos + bytes; at += TAG_BLOCK_BYTES)
        __atomic_store_n(tag_of(span, at & (capacity_bytes - 1)), span->tail, __ATOMIC_SEQ_CST);
}

/* Called after the bytes were read. */
UNSEEN void kmes_tsan_read_tags(const __u8* data, __u64 capacity_bytes, __u64 pos, __u64 bytes) {
    struct span* span = span_of(data);
    __u64 at;

    if (!span || !bytes) return;
    if (mine.seen_span != span) mine.seen_tail = 0;
    mine.seen_span = span;
    for (at = pos - pos % TAG_BLOCK_BYTES; at < pos + bytes; at += TAG_BLOCK_BYTES) {
        __u64 tag = __atomic_load_n(tag_of(span, at & (capacity_bytes - 1)), __ATOMIC_ACQUIRE);

        if (tag > mine.seen_tail) mine.seen_tail = tag;
    }
}

/* -- The tail and its two fences -------------------------------------------------------------- */

UNSEEN void* kmes_tsan_tail_is_stored(const void* word, __u64 tail) {
    struct span* span = span_of_word(word);

    if (!span) return NULL;
    span->tail = tail;
    mine.tail_span = span;
    mine.tail = tail;
    return tail_of(span, tail);
}

UNSEEN void* kmes_tsan_tail_fence(void) {
    return mine.tail_span ? fence_of(mine.tail_span, mine.tail) : NULL;
}

UNSEEN void* kmes_tsan_data_fence(void) {
    return mine.seen_span && mine.seen_tail ? fence_of(mine.seen_span, mine.seen_tail) : NULL;
}

UNSEEN void* kmes_tsan_tail_is_rechecked(const void* word) {
    __u64 seen_tail = mine.seen_tail;

    mine.seen_tail = 0;
    if (!seen_tail || mine.seen_span != span_of_word(word)) return NULL;
    return tail_of(mine.seen_span, seen_tail);
}

UNSEEN void kmes_tsan_tail_is_loaded(const void* word, __u64 tail) {
    mine.loaded_word = word;
    mine.loaded_tail = tail;
}

UNSEEN __u64 kmes_tsan_planted_tail(const void* word, __u64 tail) {
    if (kmes_tsan_skipped_label == KMES_ORDER_RECHECK_TAIL) return 0;
    if (kmes_tsan_reordered_label == KMES_ORDER_DATA_FENCE && mine.loaded_word == word)
        return mine.loaded_tail;
    return tail;
}

/* -- The counter and the generation ----------------------------------------------------------- */

UNSEEN static void* value_of(const void* word, __u64 values_at, __u64 value) {
    struct span* span = span_of_word(word);

    return span ? span->base + values_at + 8 * (value % WORD_VALUES) : NULL;
}

UNSEEN void* kmes_tsan_counter_is_stored(const void* word, __u64 counter) {
    return value_of(word, COUNTERS_AT, counter);
}

UNSEEN void kmes_tsan_counter_is_taken(__u64 counter) {
    mine.counter = counter;
}

UNSEEN void* kmes_tsan_counter_is_relied_on(const void* word) {
    return value_of(word, COUNTERS_AT, mine.counter);
}

UNSEEN void* kmes_tsan_generation_is_stored(const void* word, __u64 generation) {
    return value_of(word, GENERATIONS_AT, generation);
}

UNSEEN void kmes_tsan_generation_is_seen(__u64 generation) {
    mine.generation = generation;
}

UNSEEN void* kmes_tsan_generation_is_relied_on(const void* word) {
    return value_of(word, GENERATIONS_AT, mine.generation);
}

/* -- Stores that are held back ---------------------------------------------------------------- */

UNSEEN void kmes_tsan_hold(void* word, __u64 value, unsigned bytes) {
    mine.held_word = word;
    mine.held_value = value;
    mine.held_bytes = bytes;
}

/* Visible to TSan: this is the store, only later. */
void kmes_tsan_release_held(void) {
    void* word = mine.held_word;

    if (!word) return;
    mine.held_word = NULL;
    if (mine.held_bytes == 1)
        __atomic_store_n((__u8*)word, (__u8)mine.held_value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((__u64*)word, mine.held_value, __ATOMIC_RELEASE);
}

#else
typedef int kmes_order_tsan_is_not_built;
#endif
