// SPDX-License-Identifier: MIT
//
// When a buffer is retired, it maps the new one at once and reads from both. The side with the
// lower sequence number provides the next event, and an event of both is delivered once. It leaves
// the old buffer when that is empty. A retired buffer stays empty, so no surviving event is lost
// (E10). It unmaps the old buffer at the next sleep, not in a drain.
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>

struct side {
    int fd;
    unsigned char* ring;
    uint64_t capacity, generation, position;
    // The event at `position`, if `here`: copied and whole.
    bool here;
    unsigned char* event;
    struct shape shape;
};

struct state {
    int cpu;
    struct side now, next;
    bool switching, over;
    uint64_t last;
    struct report report;
};

static int cpu_count;
static pthread_mutex_t attach_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t field(const struct side* side, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(side->ring + at), memory_order_acquire);
}

static void refuse(struct state* state, const char* reason) {
    report_refusal(&state->report, state->cpu, reason);
    state->over = true;
}

// The reason to refuse the buffer, or NULL.
static const char* open_side(const struct state* state, struct side* side) {
    int fds[cpu_count];
    pthread_mutex_lock(&attach_mutex);
    attach_again(fds, cpu_count, &side->capacity);
    for (int i = 0; i < cpu_count; i++)
        if (i != state->cpu) close(fds[i]);
    pthread_mutex_unlock(&attach_mutex);
    side->fd = fds[state->cpu];
    side->ring = map_ring(side->fd, side->capacity);
    side->here = false;
    side->event = malloc(side->capacity);
    if (side->event == NULL) err(1, "malloc");
    const char* reason = refusal_of(side->ring, side->capacity);
    side->generation = field(side, AT_GENERATION);
    side->position = field(side, AT_TAIL_POS);
    return reason;
}

static void close_side(struct side* side) {
    unmap_ring(side->ring, side->capacity);
    close(side->fd);
    free(side->event);
}

// Copies the side's next event unless it is copied already; false if there is none.
static bool fetch(struct state* state, struct side* side) {
    while (!side->here && !state->over) {
        uint64_t end = field(side, AT_WRITE_POS);
        if (side->position >= end) return false;
        uint64_t tail = field(side, AT_TAIL_POS);
        if (tail > side->position) {
            side->position = tail;
            continue;
        }
        uint64_t room = end - side->position;
        const unsigned char* at =
            side->ring + METADATA_BYTES + (side->position & (side->capacity - 1));
        bool fits = room <= side->capacity && shape_of(at, room, &side->shape);
        if (fits) memcpy(side->event, at, side->shape.event_size);
        atomic_thread_fence(memory_order_acquire);
        tail = field(side, AT_TAIL_POS);
        if (tail > side->position) {
            side->position = tail;
        } else if (!fits) {
            refuse(state, "not an event");
        } else {
            side->position += side->shape.event_size;
            side->here = side->shape.sequence > state->last;
        }
    }
    return side->here && !state->over;
}

static void deliver(struct state* state, struct side* side) {
    side->here = false;
    if (side->shape.sequence <= state->last) return;
    if (state->last != 0 && side->shape.sequence != state->last + 1)
        report_line(&state->report, 'L', state->cpu, side->shape.sequence - state->last - 1);
    state->last = side->shape.sequence;
    report_event(&state->report, state->cpu, side->event, &side->shape);
    state->over = is_the_end(side->event, &side->shape);
}

// Delivers the events of both sides in order; during a switch, until the old buffer is empty.
static void drain(struct state* state) {
    while (!state->over) {
        bool old = fetch(state, &state->now);
        bool new = state->switching&& fetch(state, &state->next);
        if (state->over || (!old && !new)) return;
        if (old && (!new || state->now.shape.sequence <= state->next.shape.sequence))
            deliver(state, &state->now);
        else
            deliver(state, &state->next);
        if (state->switching && !old) return;
    }
}

static void change(struct state* state) {
    // An attach that fails for long ends the program, so nothing is left unread or unreported.
    drain(state);
    report_flush(&state->report);
    if (state->over) return;
    const char* reason = open_side(state, &state->next);
    if (reason != NULL) {
        refuse(state, reason);
        return;
    }
    report_line(&state->report, 'G', state->cpu, state->next.generation);
    state->switching = true;
    drain(state);
    state->switching = false;
    struct side old = state->now;
    state->now = state->next;
    report_flush(&state->report);
    close_side(&old);
}

static void* run(void* argument) {
    struct state* state = argument;
    const char* reason = open_side(state, &state->now);
    if (reason != NULL) refuse(state, reason);
    while (!state->over) {
        drain(state);
        if (state->over) break;
        if (field(&state->now, AT_GENERATION) != state->now.generation) {
            change(state);
            continue;
        }
        report_flush(&state->report);
        _Atomic uint32_t* counter = (_Atomic uint32_t*)(state->now.ring + AT_FUTEX_COUNTER);
        _Atomic uint8_t* flag = (_Atomic uint8_t*)(state->now.ring + AT_NEED_WAKE);
        atomic_store_explicit(flag, 1, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        uint32_t seen = atomic_load_explicit(counter, memory_order_acquire);
        if (field(&state->now, AT_WRITE_POS) <= state->now.position &&
            field(&state->now, AT_GENERATION) == state->now.generation)
            syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
        atomic_store_explicit(flag, 0, memory_order_relaxed);
    }
    report_flush(&state->report);
    return NULL;
}

int main(void) {
    cpu_count = count_cpus();
    struct state* states = calloc((size_t)cpu_count, sizeof *states);
    pthread_t* threads = calloc((size_t)cpu_count, sizeof *threads);
    if (states == NULL || threads == NULL) err(1, "calloc");
    for (int i = 0; i < cpu_count; i++) {
        states[i].cpu = i;
        if (pthread_create(&threads[i], NULL, run, &states[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < cpu_count; i++) pthread_join(threads[i], NULL);
    return 0;
}
