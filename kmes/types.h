/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fixed-width types, error numbers and freestanding helpers of the core, in the kernel and in
 * userspace. Part of the platform seam: knows no ring and no event.
 */
#ifndef KMES_TYPES_H
#define KMES_TYPES_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <linux/errno.h>
#include <linux/types.h>
#include <stddef.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif
#endif

#ifdef __cplusplus
#define KMES_STATIC_ASSERT(condition, message) static_assert(condition, message)
#define KMES_EXTERN_C_BEGIN extern "C" {
#define KMES_EXTERN_C_END }
#else
#define KMES_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#define KMES_EXTERN_C_BEGIN
#define KMES_EXTERN_C_END
#endif

#define KMES_PACKED __attribute__((packed))
#define KMES_NOINLINE __attribute__((__noinline__))
#define KMES_ALWAYS_INLINE inline __attribute__((__always_inline__))
#define KMES_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define KMES_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Copies and fills of private memory: what the compiler offers, so that no libc is needed. */
#define kmes_copy_private(to, from, bytes) __builtin_memcpy((to), (from), (bytes))
#define kmes_zero_private(to, bytes) __builtin_memset((to), 0, (bytes))

/*
 * Words that a header has at most. KMES_LAYOUT: the form of the layout, where it is not form A (see
 * kmes/abi.h); form C and later have the longer header. Not a loop for form A, whose code would
 * change.
 */
#if defined(KMES_LAYOUT) && KMES_LAYOUT >= 3
#define KMES_HEADER_WORDS_MAX 10
#else
#define KMES_HEADER_WORDS_MAX 4
#endif

/*
 * Loads `bytes` bytes, a constant from 8 to 8 * KMES_HEADER_WORDS_MAX that is no multiple of 8, as
 * little-endian words; the last word is filled up with zeros. Reads no byte beyond, and goes from
 * memory to registers: a copy that is loaded again would wait until it has left the store buffer.
 */
static inline void kmes_load_words(__u64* words, const void* from, __u64 bytes) {
    const __u8* last = (const __u8*)from + bytes - sizeof(*words);

    __u64 word;

    /* Word by word: a compiler would copy more than one by a wider register, and load them again.
     */
    kmes_copy_private(&words[0], from, sizeof(word));
    if (bytes >= 16) kmes_copy_private(&words[1], (const __u8*)from + 8, sizeof(word));
    if (bytes >= 24) kmes_copy_private(&words[2], (const __u8*)from + 16, sizeof(word));
#if KMES_HEADER_WORDS_MAX > 4
    for (unsigned i = 3; i < bytes / 8; i++)
        kmes_copy_private(&words[i], (const __u8*)from + 8 * i, sizeof(word));
#endif
    kmes_copy_private(&word, last, sizeof(word));
    words[bytes / 8] = word >> (64 - 8 * (bytes & 7));
}

/* Event headers are little-endian and metadata is in the machine's order (event-model.md): this
 * core serves machines on which the two are the same. */
KMES_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "KMES needs a little-endian machine");

#endif
