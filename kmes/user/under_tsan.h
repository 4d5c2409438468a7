/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Whether this code is compiled for ThreadSanitizer: g++ and clang say it in different ways. */
#ifndef KMES_USER_UNDER_TSAN_H
#define KMES_USER_UNDER_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define KMES_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KMES_UNDER_TSAN 1
#endif
#endif
#ifndef KMES_UNDER_TSAN
#define KMES_UNDER_TSAN 0
#endif

#endif
