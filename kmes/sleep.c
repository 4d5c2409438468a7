// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader's sleep: 5.1.8.2 with E1, E2, E3, E12, E17, and the loop that delivers for ever.
 */
#include "kmes/order.h"
#include "kmes/reader_parts.h"

#define KMES_SHARED_LIMIT_DEFAULT_NS 100000000ull

/* 5.1.8.2 step 4: looks a few times before asking to be woken. */
static bool spin_finds_something(const struct kmes_reader* reader) {
    __u32 i;

    for (i = 0; i < reader->config.spin_looks; i++) {
        if (reader->read_pos <
            kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_LOOK_WRITE_POS))
            return true;
    }
    return false;
}

/* E2, E3: after SLEEP_FENCE, whether there is anything that a sleep would miss. */
static bool there_is_something(const struct kmes_reader* reader) {
    return reader->read_pos <
               kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_SLEEP_WRITE_POS) ||
           reader->generation !=
               kmes_load_acquire_u64(reader->shared.generation, KMES_ORDER_SLEEP_GENERATION);
}

/* E12: alone on the buffer, the flag is cleared (relaxed: a stale 1 costs a wake of nobody); with
 * others it stays, or the request of one that is already asleep would be erased. */
static void clear_wake(const struct kmes_reader* reader) {
    if (reader->config.sharing == KMES_EXCLUSIVE)
        kmes_store_relaxed_u8(reader->shared.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
}

/* E12: one that cannot know who clears the flag sleeps with a limit. */
static __u64 sleep_limit_ns(const struct kmes_reader* reader, __u64 timeout_ns) {
    __u64 limit_ns = reader->config.shared_limit_ns;

    if (reader->config.sharing == KMES_EXCLUSIVE) return timeout_ns;
    if (!limit_ns) limit_ns = KMES_SHARED_LIMIT_DEFAULT_NS;
    return timeout_ns < limit_ns ? timeout_ns : limit_ns;
}

int kmes_reader_wait(struct kmes_reader* reader, __u64 timeout_ns) {
    __u64 limit_ns = sleep_limit_ns(reader, timeout_ns);
    __u32 counter;
    int error;

    if (reader->stopped) return -EBADMSG;
    if (spin_finds_something(reader)) return 1;
    /* SLEEP_COUNTER pairs with COUNTER (E2): taken before the re-check, so that an event which
     * comes after the re-check has moved the word by the time of the futex_wait. */
    counter = kmes_load_acquire_u32(reader->shared.futex_counter, KMES_ORDER_SLEEP_COUNTER);
    kmes_store_release_u8(reader->shared.need_wake, 1, KMES_ORDER_ASK_WAKE);
    kmes_fence_full(KMES_ORDER_SLEEP_FENCE); /* E1: pairs with WAKE_FENCE */
    if (there_is_something(reader)) {
        clear_wake(reader);
        return 1;
    }
    reader->statistics.sleeps++;
    error = kmes_platform_sleep(reader->config.platform, reader->shared.futex_counter, counter,
                                limit_ns);
    clear_wake(reader);
    if (error == -ETIMEDOUT && limit_ns < timeout_ns)
        return 1; /* the limit of E12, not the caller's */
    return error ? error : 1;
}

int kmes_reader_run(struct kmes_reader* reader, void* buffer, __u64 buffer_bytes,
                    kmes_event_function function, void* context) {
    for (;;) {
        struct kmes_event_view view;
        int found = kmes_reader_next(reader, buffer, buffer_bytes, &view);
        int result;

        if (found == KMES_READ_EVENT)
            result = function(context, &view);
        else if (found == KMES_READ_EMPTY)
            result = kmes_reader_wait(reader, KMES_NO_TIMEOUT);
        else
            return found;
        if (found == KMES_READ_EVENT && result) return result;
        if (result < 0 && result != -EINTR) return result;
    }
}
