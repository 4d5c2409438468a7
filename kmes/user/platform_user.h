/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kmes/platform.h for userspace: a table of functions, so that clock and wakes can be injected. The
 * owner of the producer CPU or reader fills it (kmes/user/producer.cc, a test, the conformance
 * runner). Only kmes/platform.h includes this file.
 */
#ifndef KMES_USER_PLATFORM_USER_H
#define KMES_USER_PLATFORM_USER_H

#include "kmes/types.h"

struct kmes_buffer;

/*
 * Each function as kmes/platform.h says; `context` is passed to all of them. The two words serve a
 * platform without a lock, which enters and leaves its sections without a call.
 */
struct kmes_platform {
    void* context;
    __u64 (*clock_ns)(void* context);
    bool (*enter)(void* context); /* NULL: a single emitter is promised; it enters unless
                                     is_closed */
    void (*exit)(void* context);  /* NULL: no action, except issue_wakes */
    void (*queue_wake)(void* context, struct kmes_buffer* buffer);
    int (*sleep)(void* context, __u32* word, __u32 expected, __u64 timeout_ns);
    void (*issue_wakes)(void* context); /* called at the end of a section if owed_wake is set and
                                           `exit` is NULL */
    unsigned is_closed;                 /* atomic: no emitter enters any more */
    void* owed_wake;                    /* atomic, defined by the owner of the table; NULL: no wake
                                           is owed */
    int (*barrier)(void* context);      /* NULL: there is none */
};

static inline __u64 kmes_platform_clock_ns(struct kmes_platform* platform) {
    return platform->clock_ns(platform->context);
}

static inline bool kmes_platform_enter(struct kmes_platform* platform) {
    if (platform->enter) return platform->enter(platform->context);
    return !__atomic_load_n(&platform->is_closed, __ATOMIC_RELAXED);
}

static inline void kmes_platform_exit(struct kmes_platform* platform) {
    if (platform->exit)
        platform->exit(platform->context);
    else if (__atomic_load_n(&platform->owed_wake, __ATOMIC_RELAXED))
        platform->issue_wakes(platform->context);
}

static inline void kmes_platform_queue_wake(struct kmes_platform* platform,
                                            struct kmes_buffer* buffer) {
    platform->queue_wake(platform->context, buffer);
}

static inline int kmes_platform_sleep(struct kmes_platform* platform, __u32* word, __u32 expected,
                                      __u64 timeout_ns) {
    return platform->sleep(platform->context, word, expected, timeout_ns);
}

static inline int kmes_platform_barrier(struct kmes_platform* platform) {
    return platform->barrier ? platform->barrier(platform->context) : -ENOSYS;
}

#endif
