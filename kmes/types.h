/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fixed-width types, error numbers and freestanding helpers of the core, in the kernel and in
 * userspace. This is part of the platform seam and uses no ring and no event.
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

/* Copies and fills of private memory, by compiler builtins: the core needs no libc. */
#define kmes_copy_private(to, from, bytes) __builtin_memcpy((to), (from), (bytes))
#define kmes_zero_private(to, bytes) __builtin_memset((to), 0, (bytes))

/*
 * The largest number of words of a header, by the form of the layout (KMES_LAYOUT in kmes/abi.h).
 * Form C and later forms have a longer header, whose last words are loaded in a loop. Forms A and B
 * are built without that loop, because it would change their code.
 */
#if defined(KMES_LAYOUT) && KMES_LAYOUT >= 3
#define KMES_HEADER_WORDS_MAX 10
#else
#define KMES_HEADER_WORDS_MAX 4
#endif

/*
 * Loads `bytes` bytes as little-endian words. `bytes` is a constant from 9 to 8 *
 * KMES_HEADER_WORDS_MAX and no multiple of 8; zeros fill the last word. Reads no byte past the end.
 * The words go from memory to registers: a load of a fresh copy would wait for the store buffer.
 */
static inline void kmes_load_words(__u64* words, const void* from, __u64 bytes) {
    const __u8* last = (const __u8*)from + bytes - sizeof(*words);

    __u64 word;

    /* Word by word: for a longer copy a compiler uses a wider register, stores it and loads it
     * again. */
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

/* Event headers are little-endian, and metadata has the byte order of the machine (event-model.md).
 * This core supports only machines on which both are the same. */
KMES_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "KMES needs a little-endian machine");

#endif
