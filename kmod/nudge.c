// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nudging retired buffers (E19): for as long as somebody has an fd or a mapping of one, its
 * generation and its counter move on and who sleeps on it is woken, at growing intervals. The real
 * world only: in a test world a nudge is a step of the test.
 */
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "world.h"

#define KMES_NUDGE_FIRST_MS 10
#define KMES_NUDGE_LONGEST_MS 5000

struct nudge_work {
    struct kmes_world_cpu* cpu;
    struct kmes_memory* memory;
};

static long nudge_here(void* context) {
    struct nudge_work* work = context;

    return kmes_buffer_nudge(&work->cpu->core, &work->memory->buffer);
}

static bool is_wanted(struct kmes_memory* memory) {
    bool wanted;

    spin_lock(&memory->users_lock);
    wanted = memory->is_retired && (memory->mappings || memory->descriptors);
    spin_unlock(&memory->users_lock);
    return wanted;
}

/* A retired buffer that is due, held, with its next time set; NULL where there is none, and then
 * *next is when there will be, if *is_any. */
static struct kmes_memory* take_due(struct kmes_world* world, unsigned long* next, bool* is_any) {
    struct kmes_memory *memory, *due = NULL;

    *is_any = false;
    spin_lock(&world->list_lock);
    list_for_each_entry(memory, &world->buffers, in_world) {
        if (!is_wanted(memory)) continue;
        if (time_after_eq(jiffies, memory->nudge_due) && refcount_inc_not_zero(&memory->holders)) {
            due = memory;
            break;
        }
        if (!*is_any || time_before(memory->nudge_due, *next)) *next = memory->nudge_due;
        *is_any = true;
    }
    spin_unlock(&world->list_lock);
    if (!due) return NULL;
    due->nudge_interval = min(2 * due->nudge_interval, msecs_to_jiffies(KMES_NUDGE_LONGEST_MS));
    due->nudge_due = jiffies + due->nudge_interval;
    return due;
}

static void nudge_due_ones(struct work_struct* delayed) {
    struct kmes_world* world = container_of(to_delayed_work(delayed), struct kmes_world, nudge);
    struct kmes_memory* memory;
    unsigned long next;
    bool is_any;

    mutex_lock(&world->lock);
    while ((memory = take_due(world, &next, &is_any)) != NULL) {
        struct nudge_work work = {.cpu = world->cpu[memory->cpu], .memory = memory};

        kmes_on_cpu(work.cpu, nudge_here, &work);
        kmes_memory_put(memory);
    }
    if (is_any)
        schedule_delayed_work(&world->nudge, time_after(next, jiffies) ? next - jiffies : 1);
    mutex_unlock(&world->lock);
}

void kmes_nudge_begin(struct kmes_memory* memory) {
    struct kmes_world* world = memory->world;

    lockdep_assert_held(&world->lock);
    memory->nudge_interval = max(msecs_to_jiffies(KMES_NUDGE_FIRST_MS), 1ul);
    memory->nudge_due = jiffies + memory->nudge_interval;
    mod_delayed_work(system_wq, &world->nudge, memory->nudge_interval);
}

void kmes_nudge_init(struct kmes_world* world) {
    INIT_DELAYED_WORK(&world->nudge, nudge_due_ones);
}

void kmes_nudge_exit(struct kmes_world* world) {
    cancel_delayed_work_sync(&world->nudge);
}
