// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader of all CPUs. See reader_set.h.
 *
 * Each CPU has a reader of its own (kmes/reader.h), which knows how to drain, to ask for a wake,
 * and to change buffers. The set decides whose turn it is, sleeps for all of them, and opens those
 * again that could not be read.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/reader_set.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_reader.h"

#define NS_PER_MS 1000000ull
#define RETRY_FIRST_NS (50 * NS_PER_MS)
#define RETRY_MOST_NS (1000 * NS_PER_MS)
#define LOOK_EVERY_NS (10 * NS_PER_MS) /* for what no wake tells of */
#define STEPS_OF_WATERMARK 8
#define TURN_EVENTS 256 /* of one CPU, before others have their turn */
#define BUFFER_BYTES (16ull << 10)

struct set_cpu {
    struct kmes_reader_config config;
    struct kmes_reader reader;
    __u64 retry_at_ns;
    __u64 retry_ns; /* the last interval */
    int error;
    bool is_open;
    bool is_asked; /* kmes_reader_wait_begin without its end */
};

struct kmes_reader_set {
    struct kmes_reader_set_options options;
    struct kmes_futex_wait* words;
    __u8* buffer;
    __u64 buffer_bytes;
    struct kmes_bulk bulk; /* of the CPU whose turn it is, perhaps with events left */
    unsigned taken;        /* in this turn */
    unsigned turn;
    unsigned cpus;
    bool is_peeked;
    struct set_cpu cpu[];
};

/* -- CPUs that cannot be read ----------------------------------------------------------------- */

static void note_error(struct set_cpu* cpu, int error) {
    if (!cpu->error)
        cpu->retry_ns = RETRY_FIRST_NS;
    else if (cpu->retry_ns < RETRY_MOST_NS)
        cpu->retry_ns *= 2;
    if (cpu->retry_ns > RETRY_MOST_NS) cpu->retry_ns = RETRY_MOST_NS;
    cpu->error = error;
    cpu->retry_at_ns = kmes_clock_monotonic_ns() + cpu->retry_ns;
}

static bool is_due(const struct set_cpu* cpu) {
    return !cpu->error || kmes_clock_monotonic_ns() >= cpu->retry_at_ns;
}

static void open_cpu(struct set_cpu* cpu) {
    int error = kmes_reader_open(&cpu->reader, &cpu->config);

    if (error) {
        note_error(cpu, error);
        return;
    }
    cpu->is_open = true;
    cpu->error = 0;
}

/* What cannot be read now is not asked before its time. */
static bool is_readable(struct set_cpu* cpu) {
    if (!is_due(cpu)) return false;
    if (!cpu->is_open) open_cpu(cpu);
    return cpu->is_open;
}

static bool is_any_readable(const struct kmes_reader_set* set) {
    unsigned i;

    for (i = 0; i < set->cpus; i++)
        if (!set->cpu[i].error) return true;
    return false;
}

/* -- Open and close --------------------------------------------------------------------------- */

static void configure_by_libkmes(void* context, struct kmes_reader_config* config, __u16 cpu_id) {
    (void)context;
    kmes_reader_by_libkmes(config, cpu_id);
}

static int cpus_by_libkmes(void* context) {
    (void)context;
    return kmes_cpus_by_libkmes();
}

static int check_options(struct kmes_reader_set_options* options) {
    if (!options->watermark_bytes != !options->watermark_ns) return -EINVAL;
    if (!options->configure != !options->cpus) return -EINVAL;
    if (options->configure) return 0;
    options->configure = configure_by_libkmes;
    options->cpus = cpus_by_libkmes;
    return 0;
}

static struct kmes_reader_set* allocate(unsigned cpus) {
    struct kmes_reader_set* set =
        (struct kmes_reader_set*)calloc(1, sizeof(*set) + cpus * sizeof(set->cpu[0]));

    if (!set) return NULL;
    set->cpus = cpus;
    set->buffer_bytes = BUFFER_BYTES;
    set->buffer = (__u8*)malloc(set->buffer_bytes);
    set->words = (struct kmes_futex_wait*)calloc(cpus, sizeof(set->words[0]));
    if (set->buffer && set->words) return set;
    kmes_reader_set_close(set);
    return NULL;
}

static void open_all(struct kmes_reader_set* set) {
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct set_cpu* cpu = &set->cpu[i];

        set->options.configure(set->options.context, &cpu->config, (__u16)i);
        cpu->config.sharing = set->options.is_exclusive ? KMES_EXCLUSIVE : KMES_SHARED;
        if (i < set->options.places) cpu->config.place = set->options.place[i];
        open_cpu(cpu);
    }
}

int kmes_reader_set_open(struct kmes_reader_set** set,
                         const struct kmes_reader_set_options* options) {
    struct kmes_reader_set_options wanted = {0};
    int error, cpus;

    *set = NULL;
    if (options) wanted = *options;
    error = check_options(&wanted);
    if (error) return error;
    cpus = wanted.cpus(wanted.context);
    if (cpus <= 0) return cpus ? cpus : -ENODEV;
    if (cpus > UINT16_MAX + 1) return -EPROTO;
    *set = allocate((unsigned)cpus);
    if (!*set) return -ENOMEM;
    (*set)->options = wanted;
    open_all(*set);
    (*set)->options.place = NULL; /* it is the caller's */
    if (is_any_readable(*set)) return 0;
    error = (*set)->cpu[0].error;
    kmes_reader_set_close(*set);
    *set = NULL;
    return error;
}

void kmes_reader_set_close(struct kmes_reader_set* set) {
    unsigned i;

    if (!set) return;
    for (i = 0; i < set->cpus; i++)
        if (set->cpu[i].is_open) kmes_reader_close(&set->cpu[i].reader);
    free(set->words);
    free(set->buffer);
    free(set);
}

/* -- What it is like --------------------------------------------------------------------------- */

unsigned kmes_reader_set_cpus(const struct kmes_reader_set* set) {
    return set->cpus;
}

int kmes_reader_set_error(const struct kmes_reader_set* set, unsigned cpu) {
    return cpu < set->cpus ? set->cpu[cpu].error : -EINVAL;
}

struct kmes_reader_place kmes_reader_set_get_place(const struct kmes_reader_set* set,
                                                   unsigned cpu) {
    const struct kmes_reader_place none = {0};

    if (cpu >= set->cpus) return none;
    if (!set->cpu[cpu].is_open) return set->cpu[cpu].config.place;
    return kmes_reader_get_place(&set->cpu[cpu].reader);
}

struct kmes_reader_statistics kmes_reader_set_statistics(const struct kmes_reader_set* set,
                                                         unsigned cpu) {
    const struct kmes_reader_statistics none = {0};

    return cpu < set->cpus && set->cpu[cpu].is_open ? set->cpu[cpu].reader.statistics : none;
}

/* -- Reading ----------------------------------------------------------------------------------- */

static void pass_turn(struct kmes_reader_set* set) {
    set->turn = set->turn + 1 < set->cpus ? set->turn + 1 : 0;
    set->taken = 0;
    set->bulk.left_bytes = 0;
}

/* A larger one, for an event of `bytes`. Nothing in the old one is needed any more. */
static bool grow_buffer(struct kmes_reader_set* set, __u64 bytes) {
    __u8* buffer = (__u8*)malloc(bytes);

    if (!buffer) return false;
    free(set->buffer);
    set->buffer = buffer;
    set->buffer_bytes = bytes;
    return true;
}

/* The next event of the CPU whose turn it is. As kmes_reader_next; -EMSGSIZE: there is no memory
 * for it. */
static int next_of_turn(struct kmes_reader_set* set, struct kmes_event_view* view) {
    struct kmes_reader* reader = &set->cpu[set->turn].reader;

    for (;;) {
        __u32 needed = 0;
        int found;

        if (set->bulk.left_bytes && kmes_bulk_next(reader, &set->bulk, view))
            return KMES_READ_EVENT;
        found = kmes_reader_bulk(reader, set->buffer, set->buffer_bytes, &set->bulk, &needed);
        if (found == -EMSGSIZE) {
            if (!grow_buffer(set, needed)) return found;
        } else if (found != KMES_READ_EVENT) {
            set->bulk.left_bytes = 0;
            return found;
        }
    }
}

static int peek_of_turn(struct kmes_reader_set* set, struct kmes_event_view* view) {
    return kmes_reader_peek(&set->cpu[set->turn].reader, view);
}

/* The next event of any CPU, by `get`. After the last turn of all, the CPU that had the first one
 * may have more: it was only passed over. */
static int next_by(struct kmes_reader_set* set, struct kmes_event_view* view,
                   int (*get)(struct kmes_reader_set* set, struct kmes_event_view* view)) {
    unsigned looks;

    for (looks = 0; looks <= set->cpus; looks++) {
        struct set_cpu* cpu = &set->cpu[set->turn];

        if ((set->taken < TURN_EVENTS || set->bulk.left_bytes) && is_readable(cpu)) {
            int found = get(set, view);

            if (found == -EMSGSIZE) return -ENOMEM;
            if (found >= 0) cpu->error = 0;
            if (found < 0) note_error(cpu, found);
            if (found == KMES_READ_EVENT) {
                set->taken++;
                return found;
            }
        }
        pass_turn(set);
    }
    return KMES_READ_EMPTY;
}

int kmes_reader_set_next(struct kmes_reader_set* set, struct kmes_event_view* view) {
    return next_by(set, view, next_of_turn);
}

int kmes_reader_set_peek(struct kmes_reader_set* set, struct kmes_event_view* view) {
    int found;

    set->bulk.left_bytes = 0;
    found = next_by(set, view, peek_of_turn);
    set->is_peeked = found == KMES_READ_EVENT;
    return found;
}

bool kmes_reader_set_peek_is_whole(struct kmes_reader_set* set) {
    return set->is_peeked && kmes_reader_peek_is_whole(&set->cpu[set->turn].reader);
}

bool kmes_reader_set_release(struct kmes_reader_set* set) {
    bool was_peeked = set->is_peeked;

    set->is_peeked = false;
    return was_peeked && kmes_reader_release(&set->cpu[set->turn].reader);
}

int kmes_reader_set_consume(struct kmes_reader_set* set, unsigned most,
                            kmes_event_function function, void* context) {
    unsigned count = 0;

    while (!most || count < most) {
        struct kmes_event_view view;
        int found = kmes_reader_set_next(set, &view);
        int result;

        if (found < 0) return found;
        if (found == KMES_READ_EMPTY || count == INT32_MAX) break;
        count++;
        result = function(context, &view);
        if (result < 0) return result;
        if (result) break;
    }
    return (int)count;
}

/* -- Sleeping ---------------------------------------------------------------------------------- */

/* After the sleep, or where there was none. True: look again. */
static bool end_waits(struct kmes_reader_set* set, __u64 slept_ns) {
    bool looks_again = false;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct set_cpu* cpu = &set->cpu[i];

        if (!cpu->is_asked) continue;
        cpu->is_asked = false;
        if (kmes_reader_wait_end(&cpu->reader, slept_ns)) looks_again = true;
    }
    return looks_again;
}

struct sleep_plan {
    unsigned words;
    __u64 limit_ns;
};

static void limit(struct sleep_plan* plan, __u64 ns) {
    if (ns < plan->limit_ns) plan->limit_ns = ns;
}

/* Asks every CPU for a wake. True: look again, there is something. */
static bool begin_waits(struct kmes_reader_set* set, struct sleep_plan* plan) {
    __u64 now_ns = kmes_clock_monotonic_ns();
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct set_cpu* cpu = &set->cpu[i];
        struct kmes_wait wait;
        int error;

        if (cpu->error) {
            /* Not before its time: it is tried by the next look. */
            if (now_ns >= cpu->retry_at_ns) return true;
            limit(plan, cpu->retry_at_ns - now_ns);
            continue;
        }
        error = kmes_reader_wait_begin(&cpu->reader, &wait);
        if (error > 0) return true;
        if (error) {
            note_error(cpu, error);
            limit(plan, cpu->retry_ns);
            continue;
        }
        cpu->is_asked = true;
        limit(plan, wait.limit_ns);
        if (plan->words == KMES_FUTEX_WAIT_ANY_MAX) {
            limit(plan, LOOK_EVERY_NS);
            continue;
        }
        set->words[plan->words].word = wait.word;
        set->words[plan->words++].expected = wait.expected;
    }
    return false;
}

static int sleep_for(__u64 ns) {
    struct timespec time;

    time.tv_sec = (time_t)(ns / 1000000000ull);
    time.tv_nsec = (long)(ns % 1000000000ull);
    return nanosleep(&time, NULL) == 0 ? -ETIMEDOUT : -errno;
}

/* As kmes_futex_wait, for the words of the plan. */
static int sleep_on(const struct kmes_reader_set* set, struct sleep_plan* plan) {
    int error;

    if (plan->words == 0) return sleep_for(plan->limit_ns);
    if (plan->words == 1)
        return kmes_futex_wait(set->words[0].word, set->words[0].expected, plan->limit_ns);
    error = kmes_futex_wait_any(set->words, plan->words, plan->limit_ns);
    if (error != -ENOSYS && error != -EPERM) return error;
    limit(plan, LOOK_EVERY_NS);
    return kmes_futex_wait(set->words[0].word, set->words[0].expected, plan->limit_ns);
}

/* When a timeout that begins now is over; KMES_NO_TIMEOUT: never. */
static __u64 deadline_of(__u64 timeout_ns) {
    const __u64 now_ns = kmes_clock_monotonic_ns();

    return timeout_ns < KMES_NO_TIMEOUT - now_ns ? now_ns + timeout_ns : KMES_NO_TIMEOUT;
}

static __u64 left_of(__u64 deadline_ns) {
    const __u64 now_ns = kmes_clock_monotonic_ns();

    if (deadline_ns == KMES_NO_TIMEOUT) return KMES_NO_TIMEOUT;
    return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

/* All CPUs are in error: there is nothing to wait for but that one of them comes again. */
static int timed_out(const struct kmes_reader_set* set) {
    return is_any_readable(set) ? -ETIMEDOUT : set->cpu[0].error;
}

static bool is_unread(const struct kmes_reader_set* set) {
    unsigned i;

    for (i = 0; i < set->cpus; i++)
        if (!set->cpu[i].error && kmes_reader_unread_bytes(&set->cpu[i].reader)) return true;
    return false;
}

/* Without the watermark. A sleep that a limit of ours has ended may have missed something where
 * others clear need_wake (E12), or where it did not cover all words: so it looks. */
static int wait_for_any(struct kmes_reader_set* set, __u64 deadline_ns) {
    for (;;) {
        struct sleep_plan plan = {0, KMES_NO_TIMEOUT};
        int result;

        limit(&plan, left_of(deadline_ns));
        if (begin_waits(set, &plan)) {
            end_waits(set, 0);
            return 1;
        }
        result = sleep_on(set, &plan);
        if (end_waits(set, result == -ETIMEDOUT ? plan.limit_ns : result ? NS_PER_MS : 0)) return 1;
        if (result != -ETIMEDOUT) return result ? result : 1;
        if (is_unread(set)) return 1;
        if (kmes_clock_monotonic_ns() >= deadline_ns) return timed_out(set);
    }
}

static bool is_enough(const struct kmes_reader_set* set) {
    __u64 bytes = 0;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        const struct set_cpu* cpu = &set->cpu[i];
        __u64 unread = cpu->error ? 0 : kmes_reader_unread_bytes(&cpu->reader);

        if (unread >= cpu->reader.capacity / 4 && unread) return true;
        bytes += unread;
    }
    /* Nothing is unread where a CPU has another buffer, or may be tried again. */
    return bytes == 0 || bytes >= set->options.watermark_bytes;
}

/* Nobody is asked for a wake meanwhile. */
static int wait_for_watermark(const struct kmes_reader_set* set, __u64 deadline_ns) {
    const __u64 end_ns = kmes_clock_monotonic_ns() + set->options.watermark_ns;

    while (!is_enough(set)) {
        const __u64 now_ns = kmes_clock_monotonic_ns();
        __u64 step_ns = set->options.watermark_ns / STEPS_OF_WATERMARK;
        int error;

        if (now_ns >= end_ns || now_ns >= deadline_ns) break;
        if (step_ns > LOOK_EVERY_NS) step_ns = LOOK_EVERY_NS;
        if (step_ns > end_ns - now_ns) step_ns = end_ns - now_ns;
        if (step_ns > deadline_ns - now_ns) step_ns = deadline_ns - now_ns;
        error = sleep_for(step_ns);
        if (error == -EINTR) return error;
    }
    return 1;
}

int kmes_reader_set_wait(struct kmes_reader_set* set, __u64 timeout_ns) {
    const __u64 deadline_ns = deadline_of(timeout_ns);
    int result;

    set->bulk.left_bytes = 0; /* what is left of it is read again */
    result = wait_for_any(set, deadline_ns);
    if (result != 1 || !set->options.watermark_bytes) return result;
    return wait_for_watermark(set, deadline_ns);
}

int kmes_reader_set_poll(struct kmes_reader_set* set, __u64 timeout_ns,
                         kmes_event_function function, void* context) {
    const __u64 deadline_ns = deadline_of(timeout_ns);

    for (;;) {
        int result = kmes_reader_set_wait(set, left_of(deadline_ns));

        if (result == -ETIMEDOUT) return 0;
        if (result < 0) return result;
        result = kmes_reader_set_consume(set, 0, function, context);
        if (result) return result;
    }
}
