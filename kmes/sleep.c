// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader's sleep (5.1.8.2 with E1, E2, E3, E12, E17, E25), and the loop that delivers every
 * event.
 */
#include "kmes/order.h"
#include "kmes/reader_parts.h"

#define KMES_SHARED_LIMIT_DEFAULT_NS 100000000ull

/* E25: the longest sleep on a buffer whose producer may be killed, and the time of fruitless sleep
 * after which the reader asks for the producer again. */
#define KMES_PROCESS_LIMIT_NS 1000000000ull
#define KMES_ASK_INTERVAL_NS 50000000ull
#define KMES_SLEEP_MIN_NS 1000ull      /* the cost of the system call alone */
#define KMES_INTERRUPTED_NS 1000000ull /* assumed length of a sleep that a signal ended */

/* The longest sleep of a reader that executes the platform's barrier. It bounds the harm of a
 * barrier that does not reach the producer's processor, as on Linux after the end of one of the
 * producer's threads. After a failed barrier the limit is shorter: the producer's stores are
 * visible by then. */
#define KMES_BARRIER_LIMIT_NS 100000000ull
#define KMES_NO_BARRIER_LIMIT_NS 1000000ull

/* 5.1.8.2 step 4: checks write_pos a few times before the reader asks for a wake. */
static bool spin_sees_event(const struct kmes_reader* reader) {
    __u32 i;

    for (i = 0; i < reader->config.spin_looks; i++) {
        if (reader->read_pos <
            kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_LOAD_WRITE_POS))
            return true;
    }
    return false;
}

/* E2, E3: after SLEEP_FENCE. True if an event or a swap came before need_wake was visible. */
static bool sleep_would_miss(const struct kmes_reader* reader) {
    return reader->read_pos <
               kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_SLEEP_WRITE_POS) ||
           reader->generation !=
               kmes_load_acquire_u64(reader->shared.generation, KMES_ORDER_SLEEP_GENERATION);
}

/* E12: an exclusive reader clears the flag. The store is relaxed, because a stale 1 costs only one
 * wake. A shared reader leaves it set: to clear it would erase the request of a sleeping reader. */
static void clear_wake(const struct kmes_reader* reader) {
    if (reader->config.sharing == KMES_EXCLUSIVE)
        kmes_store_relaxed_u8(reader->shared.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
}

static bool is_of_a_process(const struct kmes_reader* reader) {
    return reader->mapping.session != 0;
}

/* E12: a shared reader sleeps with a limit, because another reader may clear the flag. E25: so does
 * the reader of a producer that may be killed. */
static __u64 sleep_limit_ns(const struct kmes_reader* reader, __u64 timeout_ns) {
    __u64 limit_ns = reader->config.shared_limit_ns;

    if (reader->mapping.needs_barrier && timeout_ns > KMES_BARRIER_LIMIT_NS)
        timeout_ns = KMES_BARRIER_LIMIT_NS;

    if (reader->config.sharing == KMES_EXCLUSIVE)
        limit_ns = is_of_a_process(reader) ? KMES_PROCESS_LIMIT_NS : timeout_ns;
    else if (!limit_ns)
        limit_ns = KMES_SHARED_LIMIT_DEFAULT_NS;
    return timeout_ns < limit_ns ? timeout_ns : limit_ns;
}

/* 1 if the CPU's producer still writes to this buffer, 0 if not, or a negative error number. */
static int ask_producer(struct kmes_reader* reader) {
    const struct kmes_attach_functions* functions = &reader->config.attach_functions;
    struct kmes_mapping now;
    int error;

    if (reader->config.is_current)
        return reader->config.is_current(functions->context, reader->config.cpu_id,
                                         &reader->mapping);
    error = functions->identify(functions->context, reader->config.cpu_id, &now);
    return error ? error : kmes_mapping_is_same(&reader->mapping, &now);
}

/* E25: after a fruitless sleep. The sum of the sleeps limits how often the reader asks for the
 * producer. Each sleep has a minimum weight, so a caller that polls is limited too. */
static void ask_after_sleep(struct kmes_reader* reader, __u64 slept_ns) {
    int answer;

    if (!is_of_a_process(reader) || reader->is_replaced) return;
    reader->unasked_ns += slept_ns > KMES_SLEEP_MIN_NS ? slept_ns : KMES_SLEEP_MIN_NS;
    if (reader->unasked_ns < KMES_ASK_INTERVAL_NS) return;
    reader->unasked_ns = 0;
    answer = ask_producer(reader);
    reader->producer_error = answer < 0 ? answer : 0;
    reader->is_replaced = answer == 0;
}

/* SLEEP_BARRIER pairs with WAKE_FENCE_LIGHT (E1): it is the fence that the producer omits. Returns
 * how long the reader may sleep after it. */
static __u64 limit_after_barrier_ns(const struct kmes_reader* reader, __u64 limit_ns) {
    if (KMES_LIKELY(!reader->mapping.needs_barrier)) return limit_ns;
    kmes_fence_light(KMES_ORDER_SLEEP_BARRIER);
    if (kmes_platform_barrier(reader->config.platform) == 0) return limit_ns;
    return limit_ns < KMES_NO_BARRIER_LIMIT_NS ? limit_ns : KMES_NO_BARRIER_LIMIT_NS;
}

/* 5.1.8.2 steps 1 to 3. True if the reader may sleep while the counter has the value *counter.
 * *limit_ns is the longest sleep; this function may lower it. */
static bool ask_for_wake(struct kmes_reader* reader, __u32* counter, __u64* limit_ns) {
    /* SLEEP_COUNTER pairs with COUNTER (E2). It precedes the re-check, so an event after the
     * re-check has changed the word before the futex_wait compares it. */
    *counter = kmes_load_acquire_u32(reader->shared.futex_counter, KMES_ORDER_SLEEP_COUNTER);
    kmes_store_release_u8(reader->shared.need_wake, 1, KMES_ORDER_ASK_WAKE);
    *limit_ns = limit_after_barrier_ns(reader, *limit_ns);
    kmes_fence_full(KMES_ORDER_SLEEP_FENCE); /* E1: pairs with WAKE_FENCE */
    if (sleep_would_miss(reader)) {
        clear_wake(reader);
        return false;
    }
    reader->statistics.sleeps++;
    return true;
}

/* 5.1.8.2, once. Returns as kmes_platform_sleep, and 1 if a sleep would miss an event or a swap.
 * *limit_ns as above. */
static int sleep_once(struct kmes_reader* reader, __u64* limit_ns) {
    __u32 counter;
    int error;

    if (!ask_for_wake(reader, &counter, limit_ns)) return 1;
    error = kmes_platform_sleep(reader->config.platform, reader->shared.futex_counter, counter,
                                *limit_ns);
    clear_wake(reader);
    return error ? error : 1;
}

int kmes_reader_wait(struct kmes_reader* reader, __u64 timeout_ns) {
    __u64 left_ns = timeout_ns;

    if (reader->stopped) return kmes_reader_stop_error(reader);
    if (spin_sees_event(reader)) return 1;
    for (;;) {
        __u64 limit_ns = sleep_limit_ns(reader, left_ns);
        int result = sleep_once(reader, &limit_ns);

        if (result == -ETIMEDOUT || result == -EINTR)
            ask_after_sleep(reader, result == -EINTR ? KMES_INTERRUPTED_NS : limit_ns);
        if (reader->is_replaced) return 1;
        if (result != -ETIMEDOUT) return result;
        if (limit_ns == left_ns) return result; /* the limit of the caller was the shorter one */
        if (reader->config.sharing == KMES_SHARED) return 1;
        left_ns -= limit_ns; /* KMES_NO_TIMEOUT is 584 years */
    }
}

int kmes_reader_wait_begin(struct kmes_reader* reader, struct kmes_wait* wait) {
    if (reader->stopped) return kmes_reader_stop_error(reader);
    wait->limit_ns = sleep_limit_ns(reader, KMES_NO_TIMEOUT);
    if (reader->is_replaced || !ask_for_wake(reader, &wait->expected, &wait->limit_ns)) return 1;
    wait->word = reader->shared.futex_counter;
    return 0;
}

bool kmes_reader_wait_end(struct kmes_reader* reader, __u64 slept_ns) {
    clear_wake(reader);
    if (slept_ns) ask_after_sleep(reader, slept_ns);
    return reader->is_replaced;
}

__u64 kmes_reader_unread_bytes(const struct kmes_reader* reader) {
    __u64 write_pos;

    if (reader->stopped) return 0;
    write_pos = kmes_load_acquire_u64(reader->shared.write_pos, KMES_ORDER_LOAD_WRITE_POS);
    return write_pos > reader->read_pos ? write_pos - reader->read_pos : 0;
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
