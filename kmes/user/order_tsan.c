// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stand-in addresses of the ThreadSanitizer build (order_tsan.h): a range of address space for
 * each buffer, never touched, in which the position of a byte has an address. Empty in other
 * builds.
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
#include <stdlib.h>
#include <sys/mman.h>

#include "kmes/order.h"

#define SPAN_BYTES (1ull << 30) /* positions that are told apart in one buffer */
#define SPANS 64u
#define KNOWN_BUFFERS 256u /* data regions that are known at a time */

void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);

struct stand_in {
    const __u8* data;
    __u8* base;
};

int kmes_tsan_plain_label = -1;
int kmes_tsan_relaxed_label = -1;

static struct stand_in stand_ins[KNOWN_BUFFERS];
static __u8* spans;
static unsigned next_span;
static unsigned next_known;
static unsigned char spans_lock;

__attribute__((no_sanitize("thread"))) void kmes_tsan_fence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The lock and the table are this file's own business: they must not order what they watch. */
__attribute__((no_sanitize("thread"))) static void lock_table(void) {
    while (__atomic_test_and_set(&spans_lock, __ATOMIC_ACQUIRE));
}

__attribute__((no_sanitize("thread"))) static void unlock_table(void) {
    __atomic_clear(&spans_lock, __ATOMIC_RELEASE);
}

/* NULL: not known. */
__attribute__((no_sanitize("thread"))) static struct stand_in* find(const __u8* data) {
    unsigned i;

    for (i = 0; i < KNOWN_BUFFERS; i++) {
        if (stand_ins[i].data == data) return &stand_ins[i];
    }
    return NULL;
}

__attribute__((no_sanitize("thread"))) void kmes_tsan_fresh(const __u8* data) {
    struct stand_in* stand_in;

    lock_table();
    if (!spans) {
        void* range = mmap(NULL, SPANS * SPAN_BYTES, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (range == MAP_FAILED) abort();
        spans = (__u8*)range;
    }
    stand_in = find(data);
    if (!stand_in)
        stand_in = &stand_ins[next_known++ % KNOWN_BUFFERS]; /* the oldest is forgotten */
    stand_in->data = data;
    stand_in->base = spans + (next_span++ % SPANS) * SPAN_BYTES;
    unlock_table();
}

__attribute__((no_sanitize("thread"))) static __u8* base_of(const __u8* data) {
    const struct stand_in* stand_in;
    __u8* base;

    lock_table();
    stand_in = find(data);
    base = stand_in ? stand_in->base : NULL;
    unlock_table();
    return base; /* NULL: a mapping of its own, or forgotten: TSan can say nothing of it */
}

__attribute__((no_sanitize("thread"))) void kmes_tsan_written(const __u8* data, __u64 pos,
                                                              __u64 bytes) {
    __u8* base = base_of(data);

    if (base && bytes) __tsan_write_range(base + pos % (SPAN_BYTES / 2), bytes);
}

__attribute__((no_sanitize("thread"))) void kmes_tsan_believed(const __u8* data, __u64 pos,
                                                               __u64 bytes) {
    __u8* base = base_of(data);

    if (base && bytes) __tsan_read_range(base + pos % (SPAN_BYTES / 2), bytes);
}

#else
typedef int kmes_order_tsan_is_not_built;
#endif
