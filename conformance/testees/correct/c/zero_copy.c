// SPDX-License-Identifier: MIT
//
// Copies nothing: makes the record from the event in the ring. Keeps it only if tail_pos has not
// passed the event after the last byte was read (E6). The record of a torn event is taken back.
// With -DSCATTERED it also checks tail_pos after the digest and after the type.
#include "contract.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <threads.h>

#ifndef SCATTERED
#define SCATTERED 0
#endif

struct view {
    int cpu, cpus, fd;
    char* ring;
    uint64_t capacity, generation, cursor, newest;
    struct report report;
    bool over;
};

static mtx_t attaching;

static uint64_t acquire(const struct view* view, int at) {
    uint64_t value = *(const volatile uint64_t*)(view->ring + at);
    atomic_thread_fence(memory_order_acquire);
    return value;
}

static void open_view(struct view* view) {
    // More slots than any machine needs, so there is no need to ask for the number of CPUs.
    static int fds[4096];
    int slots = 4096;
    mtx_lock(&attaching);
    while (attach_once(fds, &slots, &view->capacity) != 0) {
        if (errno != EAGAIN) err(1, "kmes_attach");
        wait_a_moment();
        slots = 4096;
    }
    view->cpus = slots;
    for (int i = 0; i < slots; i++)
        if (i != view->cpu) close(fds[i]);
    view->fd = fds[view->cpu];
    mtx_unlock(&attaching);
    view->ring = (char*)map_ring(view->fd, view->capacity);
    const char* reason = refusal_of((unsigned char*)view->ring, view->capacity);
    if (reason != NULL) {
        report_refusal(&view->report, view->cpu, reason);
        view->over = true;
    }
    view->generation = acquire(view, AT_GENERATION);
    view->cursor = acquire(view, AT_TAIL_POS);
}

// Whether all bytes read since the cursor were whole. If not, moves the cursor to tail_pos.
static bool still_whole(struct view* view) {
    atomic_thread_fence(memory_order_acquire);
    uint64_t tail = acquire(view, AT_TAIL_POS);
    if (tail <= view->cursor) return true;
    view->cursor = tail;
    return false;
}

// Delivers one event; false when nothing is left.
static bool next(struct view* view) {
    uint64_t published = acquire(view, AT_WRITE_POS);
    if (view->cursor >= published) return false;
    if (!still_whole(view)) return true;
    const unsigned char* event =
        (const unsigned char*)view->ring + METADATA_BYTES + (view->cursor & (view->capacity - 1));
    struct shape shape;
    uint64_t most = room_within(published - view->cursor, view->capacity);
    bool right = shape_of(event, most, &shape);
    if (!right || SCATTERED) {
        if (!still_whole(view)) return true;
        if (!right) {
            report_refusal(&view->report, view->cpu, "corrupt content");
            view->over = true;
            return false;
        }
    }
    if (shape.sequence > view->newest) {
        size_t before = view->report.length;
        if (view->newest != 0 && shape.sequence != view->newest + 1)
            report_line(&view->report, 'L', view->cpu, shape.sequence - view->newest - 1);
        report_event(&view->report, view->cpu, event, &shape);
        bool over = is_the_end(event, &shape);
        if (!still_whole(view)) {
            view->report.length = before;
            return true;
        }
        view->newest = shape.sequence;
        view->over = over;
    } else if (!still_whole(view)) {
        return true;
    }
    view->cursor += shape.event_size;
    return !view->over;
}

static void drain(struct view* view) {
    while (!view->over && next(view))
        if (view->report.length > 60000) report_flush(&view->report);
    report_flush(&view->report);
}

static int run(void* argument) {
    struct view* view = argument;
    open_view(view);
    if (!view->over) report_line(&view->report, 'G', view->cpu, view->generation);
    for (;;) {
        drain(view);
        if (view->over) break;
        _Atomic uint32_t* counter = (_Atomic uint32_t*)(view->ring + AT_FUTEX_COUNTER);
        _Atomic uint8_t* flag = (_Atomic uint8_t*)(view->ring + AT_NEED_WAKE);
        uint32_t seen = *counter;
        *flag = 1;
        bool other = acquire(view, AT_GENERATION) != view->generation;
        if (!other && acquire(view, AT_WRITE_POS) <= view->cursor)
            syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
        atomic_store_explicit(flag, 0, memory_order_relaxed);
        if (!other) continue;
        drain(view);
        if (view->over) break;
        unmap_ring((unsigned char*)view->ring, view->capacity);
        close(view->fd);
        open_view(view);
        if (!view->over) report_line(&view->report, 'G', view->cpu, view->generation);
    }
    report_flush(&view->report);
    return 0;
}

int main(void) {
    struct view first = {0};
    mtx_init(&attaching, mtx_plain);
    open_view(&first);
    int cpus = first.cpus;
    unmap_ring((unsigned char*)first.ring, first.capacity);
    close(first.fd);
    struct view* views = calloc((size_t)cpus, sizeof *views);
    thrd_t* threads = calloc((size_t)cpus, sizeof *threads);
    if (views == NULL || threads == NULL) err(1, "calloc");
    for (int i = 0; i < cpus; i++) {
        views[i].cpu = i;
        if (thrd_create(&threads[i], run, &views[i]) != thrd_success) errx(1, "thrd_create");
    }
    for (int i = 0; i < cpus; i++) thrd_join(threads[i], NULL);
    return 0;
}
