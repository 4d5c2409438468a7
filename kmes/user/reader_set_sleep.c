// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One sleep for all CPUs of a set. See reader_set.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <time.h>

#include "kmes/user/reader_set_parts.h"
#include "kmes/user/uncancelled.h"

#define CHECK_EVERY_NS (10 * KMES_SET_NS_PER_MS) /* for changes without a wake */
#define STEPS_OF_WATERMARK 8

/* True after a kmes_reader_wait_end that got no answer from the producer. Without a lease it may
 * have waited a second for it. */
static bool had_no_answer(const struct kmes_reader* reader) {
    return reader->producer_error && !reader->unasked_ns;
}

/* The CPUs mostly have one producer. If it does not answer for one of them, the next one asks after
 * a later sleep. Otherwise each would wait for it, long after the caller's time. */
bool kmes_set_end_waits(struct kmes_reader_set* set, __u64 slept_ns) {
    const unsigned first = set->asks_first;
    bool checks_again = false;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        const unsigned index = (first + i) % set->cpus;
        struct kmes_set_cpu* cpu = &set->cpu[index];

        if (!cpu->is_asked) continue;
        cpu->is_asked = false;
        if (kmes_reader_wait_end(&cpu->reader, slept_ns)) checks_again = true;
        if (slept_ns && had_no_answer(&cpu->reader)) {
            slept_ns = 0;
            set->asks_first = (index + 1) % set->cpus;
        }
    }
    return checks_again;
}

static void limit(struct kmes_set_sleep* sleep, __u64 ns) {
    if (ns < sleep->limit_ns) sleep->limit_ns = ns;
}

/* True also for a change of generation, which only a read by the reader follows. */
static bool has_something(const struct kmes_reader* reader) {
    return reader->is_replaced || kmes_reader_unread_bytes(reader) ||
           __atomic_load_n(reader->shared.generation, __ATOMIC_ACQUIRE) != reader->generation;
}

/* For an interval without a wake. True: there is an event. */
static bool begin_interval(struct kmes_set_cpu* cpu, struct kmes_set_sleep* sleep) {
    if (has_something(&cpu->reader)) return true;
    cpu->is_asked = true; /* for kmes_reader_wait_end, which checks for the producer (E25) */
    limit(sleep, CHECK_EVERY_NS);
    return false;
}

bool kmes_set_begin_waits(struct kmes_reader_set* set, struct kmes_set_sleep* sleep) {
    __u64 now_ns = kmes_clock_monotonic_ns();
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct kmes_set_cpu* cpu = &set->cpu[i];
        struct kmes_wait wait;
        int error;

        if (cpu->error) {
            /* The next check tries it again, but not before its time. */
            if (now_ns >= cpu->retry_at_ns) return true;
            limit(sleep, cpu->retry_at_ns - now_ns);
            continue;
        }
        if (set->options.is_read_only) {
            if (begin_interval(cpu, sleep)) return true;
            continue;
        }
        error = kmes_reader_wait_begin(&cpu->reader, &wait);
        if (error > 0) return true;
        if (error) {
            kmes_set_note_result(cpu, error);
            limit(sleep, cpu->retry_ns);
            continue;
        }
        cpu->is_asked = true;
        limit(sleep, wait.limit_ns);
        if (sleep->count == KMES_FUTEX_WAIT_ANY_MAX) {
            limit(sleep, CHECK_EVERY_NS);
            continue;
        }
        sleep->words[sleep->count].word = wait.word;
        sleep->words[sleep->count++].expected = wait.expected;
    }
    return false;
}

static int sleep_for(__u64 ns) {
    struct timespec time;

    time.tv_sec = (time_t)(ns / 1000000000ull);
    time.tv_nsec = (long)(ns % 1000000000ull);
    return nanosleep(&time, NULL) == 0 ? -ETIMEDOUT : -errno;
}

int kmes_set_sleep_on(struct kmes_set_sleep* sleep) {
    int error;

    if (sleep->count == 0) return sleep_for(sleep->limit_ns);
    if (sleep->count == 1)
        return kmes_futex_wait(sleep->words[0].word, sleep->words[0].expected, sleep->limit_ns);
    error = kmes_futex_wait_any(sleep->words, sleep->count, sleep->limit_ns);
    if (error != -ENOSYS && error != -EPERM) return error;
    limit(sleep, CHECK_EVERY_NS);
    return kmes_futex_wait(sleep->words[0].word, sleep->words[0].expected, sleep->limit_ns);
}

__u64 kmes_set_slept_ns(const struct kmes_set_sleep* sleep, int result) {
    if (result == -ETIMEDOUT) return sleep->limit_ns;
    return result ? KMES_SET_NS_PER_MS : 0;
}

__u64 kmes_set_deadline_ns(__u64 timeout_ns) {
    const __u64 now_ns = kmes_clock_monotonic_ns();

    return timeout_ns < KMES_NO_TIMEOUT - now_ns ? now_ns + timeout_ns : KMES_NO_TIMEOUT;
}

__u64 kmes_set_left_ns(__u64 deadline_ns) {
    const __u64 now_ns = kmes_clock_monotonic_ns();

    if (deadline_ns == KMES_NO_TIMEOUT) return KMES_NO_TIMEOUT;
    return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

/* All CPUs have an error: the set can only wait for one of them to return. */
static int timed_out(const struct kmes_reader_set* set) {
    const int error = kmes_set_is_any_readable(set) ? 0 : set->cpu[0].error;

    return error && error != -EINPROGRESS ? error : -ETIMEDOUT;
}

static bool is_unread(const struct kmes_reader_set* set) {
    unsigned i;

    for (i = 0; i < set->cpus; i++)
        if (!set->cpu[i].error && kmes_reader_unread_bytes(&set->cpu[i].reader)) return true;
    return false;
}

/* Returns how much the sleep counts for kmes_reader_wait_end. A caller that polls never sleeps, so
 * the time since its previous sleep counts, up to one interval. */
static __u64 weight_ns(struct kmes_reader_set* set, const struct kmes_set_sleep* sleep,
                       int result) {
    const __u64 now_ns = kmes_clock_monotonic_ns();
    const __u64 slept_ns = kmes_set_slept_ns(sleep, result);
    __u64 since_ns = now_ns - set->slept_at_ns;

    set->slept_at_ns = now_ns;
    if (result != -ETIMEDOUT) return slept_ns;
    if (since_ns > CHECK_EVERY_NS) since_ns = CHECK_EVERY_NS;
    if (since_ns == 0) since_ns = 1; /* 0 is a wake */
    return slept_ns > since_ns ? slept_ns : since_ns;
}

/* Without the watermark. A sleep that ended by a limit of this library may have missed an event.
 * Other consumers clear need_wake (E12), or the sleep did not cover all words. So it returns for a
 * check. */
static int wait_for_any(struct kmes_reader_set* set, __u64 deadline_ns) {
    for (;;) {
        struct kmes_set_sleep sleep = {set->words, 0, KMES_NO_TIMEOUT};
        int result;

        limit(&sleep, kmes_set_left_ns(deadline_ns));
        if (kmes_set_begin_waits(set, &sleep)) {
            kmes_set_end_waits(set, 0);
            return 1;
        }
        result = kmes_set_sleep_on(&sleep);
        if (kmes_set_end_waits(set, weight_ns(set, &sleep, result))) return 1;
        if (result != -ETIMEDOUT) return result ? result : 1;
        if (is_unread(set)) return 1;
        if (kmes_clock_monotonic_ns() >= deadline_ns) return timed_out(set);
    }
}

bool kmes_set_is_enough(const struct kmes_reader_set* set) {
    __u64 bytes = 0;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        const struct kmes_set_cpu* cpu = &set->cpu[i];
        __u64 unread = cpu->error ? 0 : kmes_reader_unread_bytes(&cpu->reader);

        if (unread >= cpu->reader.capacity / 4 && unread) return true;
        bytes += unread;
    }
    /* No byte is unread if a CPU has another buffer, or may be tried again. */
    return bytes == 0 || bytes >= set->options.watermark_bytes;
}

__u64 kmes_set_watermark_step_ns(const struct kmes_reader_set* set, __u64 end_ns) {
    const __u64 now_ns = kmes_clock_monotonic_ns();
    __u64 step_ns = set->options.watermark_ns / STEPS_OF_WATERMARK;

    if (now_ns >= end_ns) return 0;
    if (step_ns > CHECK_EVERY_NS) step_ns = CHECK_EVERY_NS;
    if (step_ns == 0) step_ns = 1;
    return step_ns < end_ns - now_ns ? step_ns : end_ns - now_ns;
}

/* No CPU is asked for a wake meanwhile. */
static int wait_for_watermark(const struct kmes_reader_set* set, __u64 deadline_ns) {
    __u64 end_ns = kmes_set_deadline_ns(set->options.watermark_ns);

    if (end_ns > deadline_ns) end_ns = deadline_ns;
    while (!kmes_set_is_enough(set)) {
        const __u64 step_ns = kmes_set_watermark_step_ns(set, end_ns);

        if (!step_ns) break;
        if (sleep_for(step_ns) == -EINTR) return -EINTR;
    }
    return 1;
}

static int wait_until(struct kmes_reader_set* set, __u64 deadline_ns) {
    int result = wait_for_any(set, deadline_ns);

    if (result != 1 || !set->options.watermark_bytes) return result;
    return wait_for_watermark(set, deadline_ns);
}

int kmes_reader_set_wait(struct kmes_reader_set* set, __u64 timeout_ns) {
    KMES_UNCANCELLED;
    const __u64 deadline_ns = kmes_set_deadline_ns(timeout_ns);
    int result;

    set->bulk.left_bytes = 0; /* the rest of it is read again */
    kmes_set_enter_wait(set);
    result = wait_until(set, deadline_ns);
    kmes_set_leave_wait(set, result != 1);
    return result;
}

int kmes_reader_set_poll(struct kmes_reader_set* set, __u64 timeout_ns,
                         kmes_event_function function, void* context) {
    const __u64 deadline_ns = kmes_set_deadline_ns(timeout_ns);

    for (;;) {
        int result = kmes_reader_set_wait(set, kmes_set_left_ns(deadline_ns));

        if (result == -ETIMEDOUT) return 0;
        if (result < 0) return result;
        result = kmes_reader_set_consume(set, 0, function, context);
        if (result) return result;
    }
}
