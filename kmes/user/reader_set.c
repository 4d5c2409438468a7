// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader of all CPUs. See reader_set.h.
 *
 * Each CPU has its own reader (kmes/reader.h), which drains, asks for a wake, and changes buffers.
 * The set decides which CPU has its turn, and opens again the CPUs that could not be read.
 * reader_set_sleep.c sleeps for all of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/reader_set.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kmes/user/libkmes_parts.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/reader_set_parts.h"
#include "kmes/user/uncancelled.h"

#define RETRY_FIRST_NS (50 * KMES_SET_NS_PER_MS)
#define RETRY_MOST_NS (1000 * KMES_SET_NS_PER_MS)
/* For a change of buffers, because new events wait for it. */
#define RETRY_CHANGE_MOST_NS (100 * KMES_SET_NS_PER_MS)
/* For the answer to a request that was sent. */
#define RETRY_ANSWER_NS (5 * KMES_SET_NS_PER_MS)
#define TURN_EVENTS 256 /* of one CPU, before the turn of the others */
#define OPTIONS_MOST_BYTES 4096u
#define BUFFER_BYTES (16ull << 10)

/* -- CPUs that cannot be read ----------------------------------------------------------------- */

void kmes_set_note_result(struct kmes_set_cpu* cpu, int result) {
    const __u64 most_ns = cpu->is_open ? RETRY_CHANGE_MOST_NS : RETRY_MOST_NS;

    if (result >= 0) {
        cpu->error = 0;
        return;
    }
    if (result == -EINPROGRESS) {
        cpu->retry_ns = RETRY_ANSWER_NS;
        if (cpu->error) result = cpu->error; /* nothing is known that is newer */
    } else if (!cpu->error || cpu->error == -EINPROGRESS)
        cpu->retry_ns = RETRY_FIRST_NS;
    else if (cpu->retry_ns < most_ns)
        cpu->retry_ns *= 2;
    if (cpu->retry_ns > most_ns) cpu->retry_ns = most_ns;
    cpu->error = result;
    cpu->retry_at_ns = kmes_clock_monotonic_ns() + cpu->retry_ns;
}

static bool is_due(const struct kmes_set_cpu* cpu) {
    return !cpu->error || kmes_clock_monotonic_ns() >= cpu->retry_at_ns;
}

/* Returns 1 if the ring has an event of `sequence` or later, otherwise 0. Returns a negative error
 * number if the ring cannot be attached or read now. A ring contains its last event, unless a
 * resize left no room for it. It then counts as the ring of another producer. */
static int has_reached(const struct kmes_reader_config* from_tail, __u64 sequence) {
    struct kmes_event_view view;
    struct kmes_reader reader;
    bool is_reached = false;
    int result = kmes_reader_open(&reader, from_tail);

    if (result) return result;
    while (!is_reached && (result = kmes_reader_peek(&reader, &view)) == KMES_READ_EVENT) {
        const __u64 found = view.sequence;

        is_reached = kmes_reader_release(&reader) && found >= sequence;
    }
    kmes_reader_close(&reader);
    return result < 0 ? result : is_reached;
}

/* Called after the first attach. A kernel's place has no session that identifies another producer.
 * Its events would not be newer than the place, and would never be delivered. A negative error
 * number: the place must be compared later, or events would be delivered twice. */
static int resume(struct kmes_set_cpu* cpu) {
    const struct kmes_reader_place* place = &cpu->config.place;
    struct kmes_reader* reader = &cpu->reader;
    struct kmes_reader_config from_tail = cpu->config;
    const struct kmes_reader_place none = {0};
    int is_reached, error;

    if (!place->is_known) return KMES_RESUMED_NO_PLACE;
    if (place->session != reader->mapping.session) return KMES_RESUMED_NEW_SESSION;
    if (place->session) return KMES_RESUMED_GOES_ON;
    from_tail.place = none;
    is_reached = has_reached(&from_tail, place->last_sequence);
    if (is_reached < 0) return is_reached;
    if (is_reached) return KMES_RESUMED_GOES_ON;
    kmes_reader_close(reader);
    error = kmes_reader_open(reader, &from_tail);
    return error ? error : KMES_RESUMED_NEW_SESSION;
}

static void open_cpu(struct kmes_set_cpu* cpu) {
    int error = kmes_reader_open(&cpu->reader, &cpu->config);
    int resumed;

    kmes_set_note_result(cpu, error);
    if (error) return;
    if (cpu->resumed == KMES_RESUMED_NOT_YET) {
        resumed = resume(cpu);
        if (resumed < 0) {
            kmes_reader_close(&cpu->reader);
            kmes_set_note_result(cpu, resumed);
            return;
        }
        cpu->resumed = (enum kmes_resumed)resumed;
    }
    cpu->is_open = true;
}

/* A CPU that could not be read is not tried again before its time. */
bool kmes_set_is_readable(struct kmes_set_cpu* cpu) {
    if (!is_due(cpu)) return false;
    if (!cpu->is_open) {
        struct kmes_pending_attach* previous = kmes_pending_attach_use(cpu->pending);

        open_cpu(cpu);
        kmes_pending_attach_use(previous);
    }
    return cpu->is_open;
}

bool kmes_set_is_any_readable(const struct kmes_reader_set* set) {
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

/* The caller's structure may have the size of another release. */
static int copy_options(struct kmes_reader_set_options* wanted,
                        const struct kmes_reader_set_options* options) {
    const __u64 size = options->size ? options->size : KMES_READER_SET_OPTIONS_0_20_BYTES;
    const __u8* bytes = (const __u8*)options;
    __u64 i;

    if (size < KMES_READER_SET_OPTIONS_0_20_BYTES) return -EINVAL;
    if (size > OPTIONS_MOST_BYTES) return -E2BIG;
    for (i = sizeof(*wanted); i < size; i++)
        if (bytes[i]) return -E2BIG;
    memcpy(wanted, options, size < sizeof(*wanted) ? size : sizeof(*wanted));
    return 0;
}

static int check_options(struct kmes_reader_set_options* options) {
    if (!options->watermark_bytes != !options->watermark_ns) return -EINVAL;
    if (!options->configure != !options->cpus) return -EINVAL;
    if (options->places && !options->place) return -EINVAL;
    if (options->is_read_only && (options->is_exclusive || options->configure)) return -EINVAL;
    if (options->configure) return 0;
    options->configure = configure_by_libkmes;
    options->cpus = cpus_by_libkmes;
    return 0;
}

static struct kmes_reader_set* allocate(unsigned cpus) {
    struct kmes_reader_set* set =
        (struct kmes_reader_set*)calloc(1, sizeof(*set) + cpus * sizeof(set->cpu[0]));
    bool is_whole = true;
    unsigned i;

    if (!set) return NULL;
    set->cpus = cpus;
    for (i = 0; i < cpus; i++) {
        set->cpu[i].pending = kmes_pending_attach_make();
        is_whole = is_whole && set->cpu[i].pending;
    }
    set->buffer_bytes = BUFFER_BYTES;
    set->buffer = (__u8*)malloc(set->buffer_bytes);
    set->words = (struct kmes_futex_wait*)calloc(cpus, sizeof(set->words[0]));
    set->life = kmes_life_begin();
    if (is_whole && set->buffer && set->words && set->life) return set;
    kmes_reader_set_close(set);
    return NULL;
}

/* After one request that was not answered in its time, the attaches of the other CPUs go on in
 * later calls. Otherwise a producer that is stopped would delay the caller once for each CPU. */
static void open_all(struct kmes_reader_set* set) {
    bool is_answered = true;
    unsigned i;

    for (i = 0; i < set->cpus; i++) {
        struct kmes_set_cpu* cpu = &set->cpu[i];
        struct kmes_pending_attach* previous;

        cpu->config.cpu_id = (__u16)i;
        set->options.configure(set->options.context, &cpu->config, (__u16)i);
        if (set->options.is_read_only) kmes_reader_make_read_only(&cpu->config);
        cpu->config.sharing = set->options.is_exclusive ? KMES_EXCLUSIVE : KMES_SHARED;
        if (i < set->options.places) cpu->config.place = set->options.place[i];
        previous = kmes_pending_attach_use(is_answered ? NULL : cpu->pending);
        open_cpu(cpu);
        kmes_pending_attach_use(previous);
        if (cpu->error == -ETIMEDOUT) is_answered = false;
    }
}

int kmes_reader_set_open(struct kmes_reader_set** set,
                         const struct kmes_reader_set_options* options) {
    KMES_UNCANCELLED;
    struct kmes_reader_set_options wanted = {0};
    int error = 0, cpus;

    *set = NULL;
    if (options) error = copy_options(&wanted, options);
    if (!error) error = check_options(&wanted);
    if (error) return error;
    cpus = wanted.cpus(wanted.context);
    if (cpus <= 0) return cpus ? cpus : -ENODEV;
    if (cpus > UINT16_MAX + 1) return -EPROTO;
    *set = allocate((unsigned)cpus);
    if (!*set) return -ENOMEM;
    (*set)->options = wanted;
    open_all(*set);
    (*set)->options.place = NULL; /* it belongs to the caller */
    if (kmes_set_is_any_readable(*set)) return 0;
    error = (*set)->cpu[0].error;
    kmes_reader_set_close(*set);
    *set = NULL;
    return error;
}

void kmes_reader_set_close(struct kmes_reader_set* set) {
    KMES_UNCANCELLED;
    unsigned i;

    if (!set) return;
    kmes_set_close_handle(set);
    for (i = 0; i < set->cpus; i++) {
        if (set->cpu[i].is_open) kmes_reader_close(&set->cpu[i].reader);
        kmes_pending_attach_free(set->cpu[i].pending);
    }
    kmes_life_end(set->life);
    free(set->words);
    free(set->buffer);
    free(set);
}

/* -- Its state --------------------------------------------------------------------------------- */

unsigned kmes_reader_set_cpus(const struct kmes_reader_set* set) {
    return set->cpus;
}

int kmes_reader_set_error(const struct kmes_reader_set* set, unsigned cpu) {
    int error;

    if (cpu >= set->cpus) return -EINVAL;
    kmes_set_lock(set);
    error = set->cpu[cpu].error;
    if (error == -EINPROGRESS) error = 0; /* it is not late yet */
    /* The buffer of a killed producer stays readable, and shows nothing of its end. */
    if (!error && set->cpu[cpu].is_open) error = set->cpu[cpu].reader.producer_error;
    kmes_set_unlock(set);
    return error;
}

struct kmes_reader_place kmes_reader_set_get_place(const struct kmes_reader_set* set,
                                                   unsigned cpu) {
    struct kmes_reader_place place = {0};

    if (cpu >= set->cpus) return place;
    kmes_set_lock(set);
    place = set->cpu[cpu].is_open ? kmes_reader_get_place(&set->cpu[cpu].reader)
                                  : set->cpu[cpu].config.place;
    kmes_set_unlock(set);
    return place;
}

enum kmes_resumed kmes_reader_set_resumed(const struct kmes_reader_set* set, unsigned cpu) {
    enum kmes_resumed resumed;

    if (cpu >= set->cpus) return KMES_RESUMED_NO_PLACE;
    kmes_set_lock(set);
    resumed = set->cpu[cpu].resumed;
    kmes_set_unlock(set);
    return resumed;
}

struct kmes_reader_statistics kmes_reader_set_statistics(const struct kmes_reader_set* set,
                                                         unsigned cpu) {
    struct kmes_reader_statistics statistics = {0};

    if (cpu >= set->cpus) return statistics;
    kmes_set_lock(set);
    if (set->cpu[cpu].is_open) statistics = set->cpu[cpu].reader.statistics;
    kmes_set_unlock(set);
    return statistics;
}

__u64 kmes_reader_set_generation(const struct kmes_reader_set* set, unsigned cpu) {
    __u64 generation = 0;

    if (cpu >= set->cpus) return generation;
    kmes_set_lock(set);
    if (set->cpu[cpu].is_open) generation = set->cpu[cpu].reader.generation;
    kmes_set_unlock(set);
    return generation;
}

const struct kmes_reader_buffer* kmes_reader_set_buffer(const struct kmes_reader_set* set,
                                                        unsigned cpu) {
    return cpu < set->cpus ? &set->cpu[cpu].buffer : NULL;
}

/* -- Reading ----------------------------------------------------------------------------------- */

static void pass_turn(struct kmes_reader_set* set) {
    set->turn = set->turn + 1 < set->cpus ? set->turn + 1 : 0;
    set->taken = 0;
    set->bulk.left_bytes = 0;
}

/* Allocates a larger buffer, for an event of `bytes`. The content of the old one is no longer
 * needed. */
static bool grow_buffer(struct kmes_reader_set* set, __u64 bytes) {
    __u8* buffer = (__u8*)malloc(bytes);

    if (!buffer) return false;
    free(set->buffer);
    set->buffer = buffer;
    set->buffer_bytes = bytes;
    return true;
}

int kmes_set_read_bulk(struct kmes_reader_set* set, struct kmes_set_cpu* cpu,
                       struct kmes_bulk* bulk) {
    for (;;) {
        struct kmes_pending_attach* previous = kmes_pending_attach_use(cpu->pending);
        __u32 needed = 0;
        int found = kmes_reader_bulk(&cpu->reader, set->buffer, set->buffer_bytes, bulk, &needed);

        kmes_pending_attach_use(previous);
        if (found != -EMSGSIZE || !grow_buffer(set, needed)) return found;
    }
}

void kmes_set_note_buffer(struct kmes_set_cpu* cpu) {
    const struct kmes_reader* reader = &cpu->reader;

    cpu->buffer.session = reader->mapping.session;
    cpu->buffer.generation = reader->generation;
    cpu->buffer.switches = reader->statistics.switches;
}

int kmes_set_peek(struct kmes_set_cpu* cpu, struct kmes_event_view* view) {
    struct kmes_pending_attach* previous = kmes_pending_attach_use(cpu->pending);
    int found = kmes_reader_peek(&cpu->reader, view);

    kmes_pending_attach_use(previous);
    return found;
}

/* Returns the next event of the CPU that has its turn. As kmes_reader_next, and -EMSGSIZE as
 * above. */
static int next_of_turn(struct kmes_reader_set* set, struct kmes_event_view* view) {
    struct kmes_set_cpu* cpu = &set->cpu[set->turn];
    bool is_read = false;

    for (;;) {
        int found;

        if (set->bulk.left_bytes && kmes_bulk_next(&cpu->reader, &set->bulk, view)) {
            if (is_read) kmes_set_note_buffer(cpu);
            return KMES_READ_EVENT;
        }
        found = kmes_set_read_bulk(set, cpu, &set->bulk);
        is_read = true;
        if (found == KMES_READ_EVENT) continue;
        if (found != -EMSGSIZE) set->bulk.left_bytes = 0;
        return found;
    }
}

static int peek_of_turn(struct kmes_reader_set* set, struct kmes_event_view* view) {
    struct kmes_set_cpu* cpu = &set->cpu[set->turn];
    const int found = kmes_set_peek(cpu, view);

    if (found == KMES_READ_EVENT) kmes_set_note_buffer(cpu);
    return found;
}

/* Returns the next event of any CPU, by `get`. After the last turn, the CPU that had the first turn
 * may have more events: it was only skipped. */
static int scan_by(struct kmes_reader_set* set, struct kmes_event_view* view,
                   int (*get)(struct kmes_reader_set* set, struct kmes_event_view* view)) {
    unsigned checked;

    for (checked = 0; checked <= set->cpus; checked++) {
        struct kmes_set_cpu* cpu = &set->cpu[set->turn];

        if ((set->taken < TURN_EVENTS || set->bulk.left_bytes) && kmes_set_is_readable(cpu)) {
            int found = get(set, view);

            if (found == -EMSGSIZE) return -ENOMEM;
            kmes_set_note_result(cpu, found);
            if (found == KMES_READ_EVENT) {
                set->taken++;
                return found;
            }
        }
        pass_turn(set);
    }
    return KMES_READ_EMPTY;
}

static int next_by(struct kmes_reader_set* set, struct kmes_event_view* view,
                   int (*get)(struct kmes_reader_set* set, struct kmes_event_view* view)) {
    KMES_UNCANCELLED; /* the lock is taken here, and an attach may follow */
    bool is_locked = kmes_set_enter_scan(set);
    int found = scan_by(set, view, get);

    kmes_set_leave_scan(set, is_locked, found);
    return found;
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

/* -EBADF: the function has closed the set, which must not be used any more. */
static int deliver(struct kmes_reader_set* set, const struct kmes_event_view* view,
                   kmes_event_function function, void* context) {
    struct kmes_object_life* life = kmes_life_hold(set->life);
    const int result = function(context, view);

    return kmes_life_drop(life) && result >= 0 ? -EBADF : result;
}

int kmes_reader_set_consume(struct kmes_reader_set* set, unsigned most,
                            kmes_event_function function, void* context) {
    unsigned count = 0;

    while ((!most || count < most) && count < INT32_MAX) {
        struct kmes_event_view view;
        int found = kmes_reader_set_next(set, &view);
        int result;

        if (found < 0) return found;
        if (found == KMES_READ_EMPTY) break;
        count++;
        result = deliver(set, &view, function, context);
        if (result < 0) return result;
        if (result) break;
    }
    return (int)count;
}
