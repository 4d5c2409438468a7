// SPDX-License-Identifier: MIT
//
// Copies all published bytes at once, loads tail_pos once, drops the overwritten part, and reads
// events from the rest of the copy. With -DALL_RINGS_FIRST one thread copies from every CPU before
// it reads any of the copies; without it, each CPU has a thread.
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>

struct bulk {
    int cpu, fd;
    unsigned char *ring, *copy;
    uint64_t capacity, generation, read_pos, copy_from, copy_to, last;
    uint32_t seen;
    bool over;
    struct report report;
};

static int cpus;
static struct bulk* bulks;

static uint64_t get(struct bulk* bulk, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(bulk->ring + at), memory_order_acquire);
}

static void say_refused(struct bulk* bulk, const char* reason) {
    report_refusal(&bulk->report, bulk->cpu, reason);
    bulk->over = true;
}

static void begin(struct bulk* bulk) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int* fds = malloc((size_t)cpus * sizeof *fds);
    if (fds == NULL) err(1, "malloc");
    pthread_mutex_lock(&mutex);
    attach_again(fds, cpus, &bulk->capacity);
    for (int i = 0; i < cpus; i++)
        if (i != bulk->cpu) close(fds[i]);
    pthread_mutex_unlock(&mutex);
    bulk->fd = fds[bulk->cpu];
    free(fds);
    bulk->ring = map_ring(bulk->fd, bulk->capacity);
    const char* reason = refusal_of(bulk->ring, bulk->capacity);
    if (reason != NULL) {
        say_refused(bulk, reason);
        return;
    }
    bulk->copy = realloc(bulk->copy, bulk->capacity);
    if (bulk->copy == NULL) err(1, "realloc");
    bulk->generation = get(bulk, AT_GENERATION);
    bulk->read_pos = get(bulk, AT_TAIL_POS);
}

// False if all published events have been read.
static bool copy_all(struct bulk* bulk) {
    bulk->copy_from = bulk->copy_to = bulk->read_pos;
    uint64_t end = get(bulk, AT_WRITE_POS);
    if (end <= bulk->read_pos) return false;
    uint64_t tail = get(bulk, AT_TAIL_POS);
    if (tail > bulk->read_pos) bulk->read_pos = tail;
    if (bulk->read_pos >= end) return true;
    uint64_t length = end - bulk->read_pos;
    if (length > bulk->capacity) {
        say_refused(bulk, "more is published than fits");
        return false;
    }
    memcpy(bulk->copy, bulk->ring + METADATA_BYTES + (bulk->read_pos & (bulk->capacity - 1)),
           length);
    atomic_thread_fence(memory_order_acquire);
    bulk->copy_from = bulk->read_pos;
    bulk->copy_to = end;
    tail = get(bulk, AT_TAIL_POS);
    // Bytes before the tail may be torn. The tail may also have passed the whole copy.
    if (tail > bulk->read_pos) bulk->read_pos = tail;
    return true;
}

static void parse(struct bulk* bulk) {
    while (!bulk->over && bulk->read_pos < bulk->copy_to) {
        const unsigned char* event = bulk->copy + (bulk->read_pos - bulk->copy_from);
        struct shape shape;
        if (!shape_of(event, bulk->copy_to - bulk->read_pos, &shape)) {
            say_refused(bulk, "an event of impossible size");
            return;
        }
        bulk->read_pos += shape.event_size;
        if (shape.sequence <= bulk->last) continue;
        if (bulk->last != 0 && shape.sequence > bulk->last + 1)
            report_line(&bulk->report, 'L', bulk->cpu, shape.sequence - bulk->last - 1);
        bulk->last = shape.sequence;
        report_event(&bulk->report, bulk->cpu, event, &shape);
        bulk->over = is_the_end(event, &shape);
    }
}

static void drain(struct bulk* bulk) {
    while (!bulk->over && copy_all(bulk)) parse(bulk);
    report_flush(&bulk->report);
}

static void change(struct bulk* bulk) {
    drain(bulk);
    if (bulk->over) return;
    unmap_ring(bulk->ring, bulk->capacity);
    close(bulk->fd);
    begin(bulk);
    if (!bulk->over) report_line(&bulk->report, 'G', bulk->cpu, bulk->generation);
}

// Sets need_wake. False if there is work, and so no reason to sleep.
static bool prepare(struct bulk* bulk) {
    bulk->seen = atomic_load((_Atomic uint32_t*)(bulk->ring + AT_FUTEX_COUNTER));
    atomic_store((_Atomic uint32_t*)(bulk->ring + AT_NEED_WAKE), 1);
    return get(bulk, AT_WRITE_POS) <= bulk->read_pos &&
           get(bulk, AT_GENERATION) == bulk->generation;
}

static void awake(struct bulk* bulk) {
    atomic_store_explicit((_Atomic uint32_t*)(bulk->ring + AT_NEED_WAKE), 0, memory_order_relaxed);
}

#ifndef ALL_RINGS_FIRST
static void* run(void* argument) {
    struct bulk* bulk = argument;
    begin(bulk);
    report_flush(&bulk->report);
    while (!bulk->over) {
        bool retired = get(bulk, AT_GENERATION) != bulk->generation;
        if (retired)
            change(bulk);
        else
            drain(bulk);
        if (bulk->over || retired) continue;
        if (prepare(bulk))
            syscall(SYS_futex, bulk->ring + AT_FUTEX_COUNTER, FUTEX_WAIT, bulk->seen, NULL, NULL,
                    0);
        awake(bulk);
    }
    report_flush(&bulk->report);
    return NULL;
}

int main(void) {
    cpus = count_cpus();
    bulks = calloc((size_t)cpus, sizeof *bulks);
    pthread_t threads[cpus];
    for (int i = 0; i < cpus; i++) {
        bulks[i].cpu = i;
        if (pthread_create(&threads[i], NULL, run, &bulks[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < cpus; i++) pthread_join(threads[i], NULL);
    return 0;
}
#else
// One iteration over all CPUs. True if there was an event or a change.
static bool round_of_all(void) {
    bool any = false;
    for (int i = 0; i < cpus; i++)
        if (!bulks[i].over) any |= copy_all(&bulks[i]);
    for (int i = 0; i < cpus; i++)
        if (!bulks[i].over) parse(&bulks[i]);
    for (int i = 0; i < cpus; i++) {
        if (!bulks[i].over && get(&bulks[i], AT_GENERATION) != bulks[i].generation) {
            change(&bulks[i]);
            any = true;
        }
        report_flush(&bulks[i].report);
    }
    return any;
}

int main(void) {
    cpus = count_cpus();
    bulks = calloc((size_t)cpus, sizeof *bulks);
    for (int i = 0; i < cpus; i++) {
        bulks[i].cpu = i;
        begin(&bulks[i]);
    }
    for (;;) {
        bool any = round_of_all(), rest = true;
        int left = 0;
        struct futex_waitv waits[cpus];
        for (int i = 0; i < cpus; i++) {
            if (bulks[i].over) continue;
            if (!any) rest &= prepare(&bulks[i]);
            waits[left++] =
                (struct futex_waitv){.val = bulks[i].seen,
                                     .uaddr = (uintptr_t)(bulks[i].ring + AT_FUTEX_COUNTER),
                                     .flags = FUTEX_32};
        }
        if (left == 0) return 0;
        if (any) continue;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        if (rest) syscall(SYS_futex_waitv, waits, left, 0, &until, CLOCK_MONOTONIC);
        for (int i = 0; i < cpus; i++)
            if (!bulks[i].over) awake(&bulks[i]);
    }
}
#endif
