// SPDX-License-Identifier: MIT
//
// Prefetches: while an event is processed, the next one is already copied and checked, and the
// cache lines after that are being loaded. A second thread for each CPU makes the records, so
// reading and processing overlap; the reader waits for it before it sleeps.
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SLOTS = 4 };

struct slot {
    unsigned char* event;
    size_t room;
    struct shape shape;
};

struct line {
    int cpu, fd;
    unsigned char* ring;
    uint64_t capacity, generation, position, last;
    bool over, done;
    struct slot slots[SLOTS];
    unsigned filled, emptied;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    struct report reader_report, maker_report;
};

static int cpus;

static uint64_t get(const struct line* line, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(line->ring + at), memory_order_acquire);
}

static void* make_records(void* argument) {
    struct line* line = argument;
    uint64_t last = 0;
    pthread_mutex_lock(&line->mutex);
    for (;;) {
        while (line->emptied == line->filled && !line->done)
            pthread_cond_wait(&line->moved, &line->mutex);
        if (line->emptied == line->filled) break;
        struct slot* slot = &line->slots[line->emptied % SLOTS];
        pthread_mutex_unlock(&line->mutex);
        if (last != 0 && slot->shape.sequence != last + 1)
            report_line(&line->maker_report, 'L', line->cpu, slot->shape.sequence - last - 1);
        last = slot->shape.sequence;
        report_event(&line->maker_report, line->cpu, slot->event, &slot->shape);
        report_flush(&line->maker_report);
        pthread_mutex_lock(&line->mutex);
        line->emptied++;
        pthread_cond_broadcast(&line->moved);
    }
    pthread_mutex_unlock(&line->mutex);
    return NULL;
}

static void wait_for_room(struct line* line, unsigned most) {
    pthread_mutex_lock(&line->mutex);
    while (line->filled - line->emptied > most) pthread_cond_wait(&line->moved, &line->mutex);
    pthread_mutex_unlock(&line->mutex);
}

static bool begin(struct line* line) {
    static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;
    int fds[cpus];
    pthread_mutex_lock(&attaching);
    attach_again(fds, cpus, &line->capacity);
    for (int i = 0; i < cpus; i++)
        if (i != line->cpu) close(fds[i]);
    pthread_mutex_unlock(&attaching);
    line->fd = fds[line->cpu];
    line->ring = map_ring(line->fd, line->capacity);
    const char* reason = refusal_of(line->ring, line->capacity);
    if (reason != NULL) {
        report_refusal(&line->reader_report, line->cpu, reason);
        line->over = true;
        return false;
    }
    line->generation = get(line, AT_GENERATION);
    line->position = get(line, AT_TAIL_POS);
    return true;
}

static void drain(struct line* line) {
    uint64_t end;
    while (!line->over && line->position < (end = get(line, AT_WRITE_POS))) {
        uint64_t tail = get(line, AT_TAIL_POS);
        if (tail > line->position) {
            line->position = tail;
            continue;
        }
        wait_for_room(line, SLOTS - 1);
        struct slot* slot = &line->slots[line->filled % SLOTS];
        uint64_t most = room_within(end - line->position, line->capacity);
        const unsigned char* event =
            line->ring + METADATA_BYTES + (line->position & (line->capacity - 1));
        bool fits = shape_of(event, most, &slot->shape);
        if (fits && slot->room < slot->shape.event_size) {
            slot->room = slot->shape.event_size;
            slot->event = realloc(slot->event, slot->room);
            if (slot->event == NULL) err(1, "realloc");
        }
        if (fits) {
            memcpy(slot->event, event, slot->shape.event_size);
            for (unsigned i = 0; i < 4; i++)
                __builtin_prefetch(event + slot->shape.event_size + 64 * i, 0, 0);
        }
        atomic_thread_fence(memory_order_acquire);
        if (get(line, AT_TAIL_POS) > line->position) continue;
        if (!fits) {
            wait_for_room(line, 0);
            report_refusal(&line->reader_report, line->cpu, "corrupt content");
            line->over = true;
            return;
        }
        line->position += slot->shape.event_size;
        if (slot->shape.sequence <= line->last) continue;
        line->last = slot->shape.sequence;
        line->over = is_the_end(slot->event, &slot->shape);
        pthread_mutex_lock(&line->mutex);
        line->filled++;
        pthread_cond_broadcast(&line->moved);
        pthread_mutex_unlock(&line->mutex);
    }
}

static void rest(struct line* line) {
    wait_for_room(line, 0);
    _Atomic uint32_t* counter = (_Atomic uint32_t*)(line->ring + AT_FUTEX_COUNTER);
    _Atomic uint8_t* flag = (_Atomic uint8_t*)(line->ring + AT_NEED_WAKE);
    uint32_t seen = atomic_load(counter);
    atomic_store(flag, 1);
    while (get(line, AT_GENERATION) == line->generation &&
           get(line, AT_WRITE_POS) <= line->position) {
        syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
        seen = atomic_load(counter);
    }
    atomic_store(flag, 0);
}

static void* run(void* argument) {
    struct line* line = argument;
    pthread_t maker;
    if (pthread_create(&maker, NULL, make_records, line) != 0) errx(1, "pthread_create");
    begin(line);
    while (!line->over) {
        bool retired = get(line, AT_GENERATION) != line->generation;
        drain(line);
        if (line->over) break;
        if (!retired) {
            rest(line);
            continue;
        }
        wait_for_room(line, 0);
        unmap_ring(line->ring, line->capacity);
        close(line->fd);
        if (begin(line)) report_line(&line->reader_report, 'G', line->cpu, line->generation);
        report_flush(&line->reader_report);
    }
    report_flush(&line->reader_report);
    pthread_mutex_lock(&line->mutex);
    line->done = true;
    pthread_cond_broadcast(&line->moved);
    pthread_mutex_unlock(&line->mutex);
    pthread_join(maker, NULL);
    return NULL;
}

int main(void) {
    cpus = count_cpus();
    struct line* lines = calloc((size_t)cpus, sizeof *lines);
    pthread_t threads[cpus];
    if (lines == NULL) err(1, "calloc");
    for (int i = 0; i < cpus; i++) {
        lines[i].cpu = i;
        pthread_mutex_init(&lines[i].mutex, NULL);
        pthread_cond_init(&lines[i].moved, NULL);
        if (pthread_create(&threads[i], NULL, run, &lines[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < cpus; i++) pthread_join(threads[i], NULL);
    return 0;
}
