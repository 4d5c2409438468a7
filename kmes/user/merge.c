// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The events of all CPUs in the order of their timestamps. See merge.h.
 *
 * Each CPU has a queue of copied bulks. A heap contains the CPUs whose queue is not empty, ordered
 * by the key of their first event. The key is the timestamp, but never less than that of the event
 * before it. A round copies a bulk of each CPU whose queue is empty. After a round each CPU has a
 * first event here, or was empty after the start of the round.
 *
 * A clock that goes back too far begins a new epoch, and the key includes the epoch. Events from
 * before the step thus precede those from after it, on all CPUs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/merge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kmes/user/reader_set_parts.h"
#include "kmes/user/uncancelled.h"

#define HOLD_DEFAULT_NS (10 * KMES_SET_NS_PER_MS)
#define MOST_DEFAULT_BYTES (4ull << 20)

/* Events of one CPU: their views, then the bytes that the views point to. */
struct bulk_copy {
    struct bulk_copy* next;
    __u64 allocated_bytes;
    __u64 arrival_ns;
    struct kmes_reader_buffer buffer;
    __u32 count;
    __u32 taken;
    struct kmes_event_view views[];
};

struct merge_key {
    __u64 epoch;
    __u64 ns;
};

struct merge_cpu {
    struct bulk_copy* first;
    struct bulk_copy* last;
    struct kmes_reader_place place;
    struct kmes_reader_buffer buffer; /* of the last delivered event */
    struct merge_key key; /* of the first held event, or of the last one if none is held */
    bool begins_anew;     /* the clock went back too far before the first event */
};

struct kmes_merge {
    struct kmes_reader_set* set;
    struct kmes_object_life* set_life; /* the set exists until it is over */
    struct kmes_object_life* life;
    struct kmes_merge_statistics statistics;
    __u64 hold_ns;
    __u64 most_bytes;
    struct bulk_copy* delivered; /* the memory of the last view, if that was the last of its bulk */
    struct merge_key last_key;   /* of the delivered events */
    struct merge_key newest;     /* the highest timestamp since the order began */
    __u64 epoch;                 /* the latest one */
    __u64 epoch_arrival_ns;      /* of the event that began it */
    __u64 round_realtime_ns;     /* start of the last round */
    __u64 round_monotonic_ns;
    unsigned cpus;
    unsigned heap_count;
    bool is_round_due; /* a queue became empty since the last round */
    bool is_flushing;
    unsigned* heap;
    struct merge_cpu cpu[];
};

/* -- The heap ---------------------------------------------------------------------------------- */

static bool is_less(const struct merge_key* a, const struct merge_key* b) {
    return a->epoch != b->epoch ? a->epoch < b->epoch : a->ns < b->ns;
}

static bool is_before(const struct kmes_merge* merge, unsigned a, unsigned b) {
    const struct merge_key* first = &merge->cpu[a].key;
    const struct merge_key* second = &merge->cpu[b].key;

    return is_less(first, second) || (!is_less(second, first) && a < b);
}

static void move_up(struct kmes_merge* merge, unsigned at) {
    unsigned* heap = merge->heap;

    while (at > 0 && is_before(merge, heap[at], heap[(at - 1) / 2])) {
        const unsigned moved = heap[at];

        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static void move_down(struct kmes_merge* merge) {
    unsigned* heap = merge->heap;
    unsigned at = 0;

    for (;;) {
        unsigned child = 2 * at + 1;
        const unsigned moved = heap[at];

        if (child >= merge->heap_count) return;
        if (child + 1 < merge->heap_count && is_before(merge, heap[child + 1], heap[child]))
            child++;
        if (!is_before(merge, heap[child], moved)) return;
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* -- The queues -------------------------------------------------------------------------------- */

static const struct kmes_event_view* first_of(const struct merge_cpu* cpu) {
    return &cpu->first->views[cpu->first->taken];
}

static bool has_passed(__u64 since_ns, __u64 now_ns, __u64 duration_ns) {
    return now_ns >= since_ns && now_ns - since_ns >= duration_ns;
}

/* The clock of one CPU is often the clock of all. So the first CPU that sees a step begins the
 * epoch, and the others join it. At most one epoch begins in each hold_ns. Otherwise the others
 * could not keep up, and their events would always precede those of a CPU whose clock is broken. */
static void begin_anew(struct kmes_merge* merge, const struct merge_cpu* cpu) {
    const __u64 arrival_ns = cpu->first->arrival_ns;

    if (cpu->key.epoch < merge->epoch) return;
    if (merge->epoch && !has_passed(merge->epoch_arrival_ns, arrival_ns, merge->hold_ns)) return;
    merge->epoch++;
    merge->epoch_arrival_ns = arrival_ns;
}

/* Sets the key after an event has become the first one of its CPU. An event from before a step is
 * published within hold_ns. An event that arrives later is in the new epoch, even if its own CPU
 * saw no step. */
static void set_key(struct kmes_merge* merge, struct merge_cpu* cpu) {
    const __u64 timestamp = first_of(cpu)->timestamp;
    struct merge_key* key = &cpu->key;
    bool joins;

    cpu->begins_anew = timestamp < key->ns && key->ns - timestamp > merge->hold_ns;
    if (cpu->begins_anew) begin_anew(merge, cpu);
    joins = cpu->begins_anew ||
            (key->epoch < merge->epoch &&
             has_passed(merge->epoch_arrival_ns, cpu->first->arrival_ns, merge->hold_ns));
    if (joins || timestamp > key->ns) key->ns = timestamp;
    if (joins) key->epoch = merge->epoch;
}

static void add_copy(struct kmes_merge* merge, unsigned index, struct bulk_copy* copy) {
    struct merge_cpu* cpu = &merge->cpu[index];

    merge->statistics.held_bytes += copy->allocated_bytes;
    if (cpu->first) {
        cpu->last->next = copy;
        cpu->last = copy;
        return;
    }
    cpu->first = cpu->last = copy;
    set_key(merge, cpu);
    merge->heap[merge->heap_count] = index;
    move_up(merge, merge->heap_count++);
}

static void free_copy(struct kmes_merge* merge, struct bulk_copy* copy) {
    if (!copy) return;
    merge->statistics.held_bytes -= copy->allocated_bytes;
    free(copy);
}

/* At least the number of events in a bulk, and one more: kmes_bulk_take then also sees its end. */
static __u32 most_events_in(const struct kmes_bulk* bulk) {
    const __u8* event = bulk->bytes;
    __u64 left_bytes = bulk->left_bytes;
    __u32 events = 1;

    while (left_bytes >= KMES_EVENT_MIN_BYTES) {
        struct kmes_event_header header;

        kmes_event_header_load(&header, event);
        if (kmes_event_check(&header, left_bytes) != KMES_EVENT_IS_SOUND) break;
        event += header.event_size;
        left_bytes -= header.event_size;
        events++;
    }
    return events;
}

/* Copies the events of a bulk. The reader delivers them only if there is memory for them. NULL: no
 * memory. */
static struct bulk_copy* copy_bulk(const struct kmes_merge* merge, struct kmes_set_cpu* cpu,
                                   struct kmes_bulk* bulk) {
    const __u32 most = most_events_in(bulk);
    const __u64 head_bytes = sizeof(struct bulk_copy) + most * sizeof(struct kmes_event_view);
    struct bulk_copy* copy = (struct bulk_copy*)malloc(head_bytes + bulk->left_bytes);

    if (!copy) return NULL;
    memcpy((__u8*)copy + head_bytes, bulk->bytes, bulk->left_bytes);
    bulk->bytes = (const __u8*)copy + head_bytes;
    copy->next = NULL;
    copy->allocated_bytes = head_bytes + bulk->left_bytes;
    copy->arrival_ns = merge->round_monotonic_ns;
    copy->taken = 0;
    copy->count = kmes_bulk_take(&cpu->reader, bulk, copy->views, most);
    if (copy->count) kmes_set_note_buffer(cpu);
    copy->buffer = cpu->buffer;
    return copy;
}

/* Copies a bulk of one CPU, out of the buffer of the set. KMES_READ_EVENT, KMES_READ_EMPTY,
 * -ENOMEM. */
static int fill(struct kmes_merge* merge, unsigned index) {
    struct kmes_set_cpu* cpu = &merge->set->cpu[index];

    if (!kmes_set_is_readable(cpu)) return KMES_READ_EMPTY;
    for (;;) {
        struct bulk_copy* copy;
        struct kmes_bulk bulk;
        const int found = kmes_set_read_bulk(merge->set, cpu, &bulk);

        if (found == -EMSGSIZE) return -ENOMEM;
        kmes_set_note_result(cpu, found);
        if (found != KMES_READ_EVENT) return KMES_READ_EMPTY;
        copy = copy_bulk(merge, cpu, &bulk);
        if (!copy) return -ENOMEM;
        if (copy->count) {
            add_copy(merge, index, copy);
            return found;
        }
        free(copy); /* no event was newer, or the copy ended in the first event */
    }
}

/* `is_for_all`: also copies from CPUs that have events here, so that their rings do not overflow
 * meanwhile. Returns as fill. */
static int do_round(struct kmes_merge* merge, bool is_for_all) {
    const bool is_locked = kmes_set_enter_scan(merge->set);
    int result = KMES_READ_EMPTY;
    unsigned i;

    merge->set->bulk.left_bytes = 0;
    merge->round_realtime_ns = kmes_clock_realtime_ns();
    merge->round_monotonic_ns = kmes_clock_monotonic_ns();
    for (i = 0; i < merge->cpus && result >= 0; i++) {
        int found;

        if (merge->cpu[i].first && !is_for_all) continue;
        found = fill(merge, i);
        if (found != KMES_READ_EMPTY) result = found;
    }
    /* If some CPUs were skipped, not each CPU was found empty. */
    kmes_set_leave_scan(
        merge->set, is_locked,
        result == KMES_READ_EMPTY && !is_for_all && merge->heap_count ? KMES_READ_EVENT : result);
    if (result >= 0) merge->is_round_due = false;
    return result;
}

/* -- What is due ------------------------------------------------------------------------------- */

/* Ignores the memory limit. */
static bool is_first_in_time(const struct kmes_merge* merge) {
    const struct merge_cpu* cpu;

    cpu = &merge->cpu[merge->heap[0]];
    if (merge->heap_count == merge->cpus || merge->is_flushing) return true;
    if (merge->statistics.delivered && is_less(&cpu->key, &merge->last_key)) return true;
    if (has_passed(first_of(cpu)->timestamp, merge->round_realtime_ns, merge->hold_ns)) return true;
    return has_passed(cpu->first->arrival_ns, merge->round_monotonic_ns, merge->hold_ns);
}

static bool is_first_due(const struct kmes_merge* merge) {
    if (!merge->heap_count || merge->is_round_due) return false;
    return merge->statistics.held_bytes >= merge->most_bytes || is_first_in_time(merge);
}

/* Records the order of the event of `cpu`, which is delivered now. Returns whether it comes too
 * late for its place. */
static bool note_order(struct kmes_merge* merge, const struct merge_cpu* cpu, __u64 timestamp) {
    const struct merge_key delivered = {cpu->key.epoch, timestamp};
    const bool is_of_an_earlier_epoch = delivered.epoch < merge->newest.epoch;
    const bool is_out_of_order =
        merge->statistics.delivered && (is_of_an_earlier_epoch || timestamp < merge->newest.ns);
    const bool restarts = cpu->begins_anew && !is_of_an_earlier_epoch;

    if (restarts || is_less(&merge->newest, &delivered)) merge->newest = delivered;
    if (restarts || is_less(&merge->last_key, &cpu->key)) merge->last_key = cpu->key;
    return is_out_of_order;
}

/* Called before the first event of a bulk, whose events all have one buffer. */
static void enter_buffer(struct merge_cpu* cpu) {
    cpu->buffer = cpu->first->buffer;
    cpu->place.session = cpu->buffer.session;
    cpu->place.is_known = true;
}

static bool deliver_first(struct kmes_merge* merge, struct kmes_event_view* view) {
    const unsigned index = merge->heap[0];
    struct merge_cpu* cpu = &merge->cpu[index];
    bool is_out_of_order;

    merge->statistics.forced += !is_first_in_time(merge);
    *view = *first_of(cpu);
    is_out_of_order = note_order(merge, cpu, view->timestamp);
    if (!cpu->first->taken) enter_buffer(cpu);
    cpu->place.last_sequence = view->sequence;
    if (++cpu->first->taken == cpu->first->count) {
        merge->delivered = cpu->first;
        cpu->first = cpu->first->next;
    }
    if (cpu->first) {
        set_key(merge, cpu);
    } else {
        merge->heap[0] = merge->heap[--merge->heap_count];
        merge->is_round_due = true;
    }
    move_down(merge);
    merge->statistics.delivered++;
    merge->statistics.out_of_order += is_out_of_order;
    return is_out_of_order;
}

int kmes_merge_next(struct kmes_merge* merge, struct kmes_event_view* view, bool* is_out_of_order) {
    KMES_UNCANCELLED;

    if (merge->set_life->is_over) return -EBADF;
    free_copy(merge, merge->delivered);
    merge->delivered = NULL;
    for (;;) {
        int found;

        if (is_first_due(merge)) {
            const bool is_late = deliver_first(merge, view);

            if (is_out_of_order) *is_out_of_order = is_late;
            return KMES_READ_EVENT;
        }
        /* The empty queues come first: filling them may be enough. */
        found = merge->is_round_due ? do_round(merge, false) : KMES_READ_EMPTY;
        if (found == KMES_READ_EMPTY && !is_first_due(merge)) {
            found = do_round(merge, true);
            if (found == KMES_READ_EMPTY && !is_first_due(merge)) {
                if (!merge->heap_count) merge->is_flushing = false;
                return found;
            }
        }
        if (found < 0) return found;
    }
}

void kmes_merge_flush(struct kmes_merge* merge) {
    merge->is_flushing = true;
    merge->is_round_due = true; /* a CPU with an empty queue may have earlier events */
}

/* -- Waiting ----------------------------------------------------------------------------------- */

__u64 kmes_merge_due_ns(const struct kmes_merge* merge) {
    const struct merge_cpu* cpu;
    __u64 held_ns, now_ns;

    if (!merge->heap_count) return KMES_NO_TIMEOUT;
    cpu = &merge->cpu[merge->heap[0]];
    if (merge->is_flushing) return 0;
    now_ns = kmes_clock_monotonic_ns();
    held_ns = now_ns - cpu->first->arrival_ns;
    return held_ns < merge->hold_ns ? merge->hold_ns - held_ns : 0;
}

int kmes_merge_wait(struct kmes_merge* merge, __u64 timeout_ns) {
    const __u64 due_ns = kmes_merge_due_ns(merge);
    int result;

    if (merge->set_life->is_over) return -EBADF;
    if (due_ns == 0) return 1;
    result = kmes_reader_set_wait(merge->set, due_ns < timeout_ns ? due_ns : timeout_ns);
    if (result >= 0 || result == -EINTR) return result;
    return due_ns <= timeout_ns && merge->heap_count ? 1 : result;
}

/* -EBADF: the function has closed the merge, which must not be used any more. */
static int deliver(struct kmes_merge* merge, const struct kmes_event_view* view,
                   bool is_out_of_order, kmes_merge_function function, void* context) {
    struct kmes_object_life* life = kmes_life_hold(merge->life);
    const int result = function(context, view, is_out_of_order);

    return kmes_life_drop(life) && result >= 0 ? -EBADF : result;
}

static int consume(struct kmes_merge* merge, kmes_merge_function function, void* context) {
    unsigned count = 0;

    while (count < INT32_MAX) {
        struct kmes_event_view view;
        bool is_out_of_order;
        int result = kmes_merge_next(merge, &view, &is_out_of_order);

        if (result < 0) return result;
        if (result == KMES_READ_EMPTY) break;
        count++;
        result = deliver(merge, &view, is_out_of_order, function, context);
        if (result < 0) return result;
        if (result) break;
    }
    return (int)count;
}

int kmes_merge_poll(struct kmes_merge* merge, __u64 timeout_ns, kmes_merge_function function,
                    void* context) {
    const __u64 deadline_ns = kmes_set_deadline_ns(timeout_ns);

    for (;;) {
        int result = consume(merge, function, context);

        if (result) return result;
        result = kmes_merge_wait(merge, kmes_set_left_ns(deadline_ns));
        if (result == -ETIMEDOUT) return 0;
        if (result < 0) return result;
    }
}

/* -- Open and close ---------------------------------------------------------------------------- */

int kmes_merge_open(struct kmes_merge** merge, struct kmes_reader_set* set,
                    const struct kmes_merge_options* options) {
    const unsigned cpus = kmes_reader_set_cpus(set);
    struct kmes_merge* made =
        (struct kmes_merge*)calloc(1, sizeof(*made) + cpus * sizeof(made->cpu[0]));
    unsigned i;

    *merge = NULL;
    if (!made) return -ENOMEM;
    made->set = set;
    made->set_life = kmes_life_hold(set->life);
    made->life = kmes_life_begin();
    made->cpus = cpus;
    made->is_round_due = true;
    made->hold_ns = options && options->hold_ns ? options->hold_ns : HOLD_DEFAULT_NS;
    made->most_bytes = options && options->most_bytes ? options->most_bytes : MOST_DEFAULT_BYTES;
    made->heap = (unsigned*)calloc(cpus, sizeof(made->heap[0]));
    if (!made->heap || !made->life) {
        kmes_merge_close(made);
        return -ENOMEM;
    }
    for (i = 0; i < cpus; i++) made->cpu[i].place = kmes_reader_set_get_place(set, i);
    *merge = made;
    return 0;
}

void kmes_merge_close(struct kmes_merge* merge) {
    unsigned i;

    if (!merge) return;
    free(merge->delivered);
    for (i = 0; i < merge->cpus; i++) {
        while (merge->cpu[i].first) {
            struct bulk_copy* copy = merge->cpu[i].first;

            merge->cpu[i].first = copy->next;
            free(copy);
        }
    }
    kmes_life_drop(merge->set_life);
    kmes_life_end(merge->life);
    free(merge->heap);
    free(merge);
}

struct kmes_reader_place kmes_merge_get_place(const struct kmes_merge* merge, unsigned cpu) {
    const struct kmes_reader_place none = {0};

    return cpu < merge->cpus ? merge->cpu[cpu].place : none;
}

const struct kmes_reader_buffer* kmes_merge_buffer(const struct kmes_merge* merge, unsigned cpu) {
    return cpu < merge->cpus ? &merge->cpu[cpu].buffer : NULL;
}

struct kmes_merge_statistics kmes_merge_get_statistics(const struct kmes_merge* merge) {
    return merge->statistics;
}
