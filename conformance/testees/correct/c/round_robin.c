// SPDX-License-Identifier: MIT
//
// One thread for all CPUs: it reads a few events of one, then of the next. After a round without
// events it waits on the counter of one CPU, but only briefly, as the other CPUs do not wake it.
//
//   BUDGET  events of one CPU in a round     MILLISECONDS  the longest wait
//   PLACE   0: it waits at each CPU in turn; 1: always at the first one, even when that has ended
//   TIMER   1: it waits without a limit, and setitimer's signal ends the wait
//   FLAGS   0: sets need_wake only on the CPU where it waits; 1: on all of them
#include "contract.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/time.h>

#ifndef BUDGET
#define BUDGET 1
#endif
#ifndef MILLISECONDS
#define MILLISECONDS 20
#endif
#ifndef PLACE
#define PLACE 0
#endif
#ifndef TIMER
#define TIMER 0
#endif
#ifndef FLAGS
#define FLAGS 0
#endif

typedef volatile uint64_t word;

struct source {
    int index, fd;
    unsigned char* ring;
    uint64_t capacity, generation, at, last;
    bool over;
};

static int count, alive;
static struct source* sources;
static struct report report;

#define FIELD(source, offset) (*(word*)((source)->ring + (offset)))
// x86-64 keeps loads in order. Only the compiler needs the fence.
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

static void give_up(struct source* source, const char* reason) {
    if (reason != NULL) report_refusal(&report, source->index, reason);
    source->over = true;
    alive--;
}

static void open_source(struct source* source) {
    int fds[count];
    attach_again(fds, count, &source->capacity);
    for (int i = 0; i < count; i++)
        if (i != source->index) close(fds[i]);
    source->ring = map_ring(fds[source->index], source->capacity);
    close(fds[source->index]);  // the mapping is enough
    const char* reason = refusal_of(source->ring, source->capacity);
    if (reason != NULL) {
        give_up(source, reason);
        return;
    }
    source->generation = FIELD(source, AT_GENERATION);
    COMPILER_BARRIER();
    source->at = FIELD(source, AT_TAIL_POS);
}

// Delivers one event at most. False if there was none.
static bool one(struct source* source) {
    static unsigned char* copy;
    static size_t room;
    for (;;) {
        uint64_t end = FIELD(source, AT_WRITE_POS);
        COMPILER_BARRIER();
        if (end <= source->at) return false;
        uint64_t tail = FIELD(source, AT_TAIL_POS);
        COMPILER_BARRIER();
        if (tail > source->at) {
            source->at = tail;
            continue;
        }
        uint64_t size = room_within(end - source->at, source->capacity);
        const unsigned char* event =
            source->ring + METADATA_BYTES + (source->at & (source->capacity - 1));
        struct shape shape, again;
        if (shape_of(event, size, &shape)) {
            size = shape.event_size;
        } else {
            shape.event_size = 0;
        }
        if (shape.event_size > room && (copy = realloc(copy, room = size)) == NULL) abort();
        memcpy(copy, event, shape.event_size);
        COMPILER_BARRIER();
        tail = FIELD(source, AT_TAIL_POS);
        if (tail > source->at) {
            source->at = tail;
            continue;
        }
        // The copy is whole, and the lengths in it may differ from those read in the ring.
        if (shape.event_size == 0 || !shape_of(copy, shape.event_size, &again)) {
            give_up(source, "lengths that do not fit each other");
            return false;
        }
        source->at += again.event_size;
        if (again.sequence <= source->last) continue;
        if (source->last != 0 && again.sequence - source->last > 1)
            report_line(&report, 'L', source->index, again.sequence - source->last - 1);
        source->last = again.sequence;
        report_event(&report, source->index, copy, &again);
        if (is_the_end(copy, &again)) give_up(source, NULL);
        return true;
    }
}

static void change_over(struct source* source) {
    while (!source->over && one(source)) {
    }
    if (source->over) return;
    unmap_ring(source->ring, source->capacity);
    open_source(source);
    if (!source->over) report_line(&report, 'G', source->index, source->generation);
}

static bool quiet(const struct source* source) {
    return source->over || (FIELD(source, AT_WRITE_POS) <= source->at &&
                            FIELD(source, AT_GENERATION) == source->generation);
}

static void rest(int place) {
    if (PLACE == 1) place = 0;
    struct source* source = &sources[place];
    volatile uint32_t* counter = (volatile uint32_t*)(source->ring + AT_FUTEX_COUNTER);
    uint32_t seen = *counter;
    bool calm = true;
    for (int i = 0; i < count; i++)
        if (!sources[i].over && (FLAGS == 1 || i == place)) sources[i].ring[AT_NEED_WAKE] = 1;
    __sync_synchronize();
    for (int i = 0; i < count; i++) calm = calm && quiet(&sources[i]);
    struct timespec limit = {.tv_nsec = MILLISECONDS * 1000000};
    if (calm) syscall(SYS_futex, counter, FUTEX_WAIT, seen, TIMER ? NULL : &limit, NULL, 0);
    for (int i = 0; i < count; i++)
        if (!sources[i].over && (FLAGS == 1 || i == place)) sources[i].ring[AT_NEED_WAKE] = 0;
}

static void do_nothing(int signal) {
    (void)signal;
}

// A repeating timer: a single signal may come just before the wait that it is meant to end.
static void start_timer(void) {
    struct sigaction action = {.sa_handler = do_nothing};
    struct itimerval often = {{0, MILLISECONDS * 1000}, {0, MILLISECONDS * 1000}};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
        err(1, "the timer");
}

int main(void) {
    start_heartbeat();
    if (TIMER) start_timer();
    count = alive = count_cpus();
    sources = calloc((size_t)count, sizeof *sources);
    if (sources == NULL) err(1, "calloc");
    for (int i = 0; i < count; i++) {
        sources[i].index = i;
        open_source(&sources[i]);
    }
    int place = 0;
    while (alive > 0) {
        bool something = false;
        for (int i = 0; i < count; i++) {
            struct source* source = &sources[i];
            if (source->over) continue;
            bool retired = FIELD(source, AT_GENERATION) != source->generation;
            for (int n = 0; n < BUDGET && !source->over && one(source); n++) something = true;
            if (retired && !source->over) change_over(source), something = true;
        }
        report_flush(&report);
        if (something || alive == 0) continue;
        do place = (place + 1) % count;
        while (sources[place].over);
        rest(place);
    }
    report_flush(&report);
    return 0;
}
