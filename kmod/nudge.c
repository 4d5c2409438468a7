// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nudges retired buffers (E19). While a process has an fd or a mapping of one, a nudge increments
 * its generation and its counter and wakes its sleepers, at growing intervals. Only for the real
 * instance: in a test instance a nudge is a step of the test.
 *
 * No CPU writes to a retired buffer, so a nudge needs no CPU, and no lock that a resize or an
 * attach holds. The nudges of an instance are one work item, which never runs concurrently with
 * itself. The work is unbound: it does not wait for a CPU that a real-time task monopolises, and
 * does not run on an isolated CPU.
 */
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "instance.h"

#define KMES_NUDGE_FIRST_MS 10
#define KMES_NUDGE_LONGEST_MS 5000

/* Call it under list_lock. */
static bool is_wanted(struct kmes_memory* memory) {
    bool wanted;

    spin_lock(&memory->users_lock);
    wanted = memory->is_retired && (memory->mappings || memory->descriptors);
    spin_unlock(&memory->users_lock);
    return wanted;
}

/* Returns a due retired buffer, referenced, with its next time set. If there is none, returns NULL
 * and sets *next to the next time, if *is_any. */
static struct kmes_memory* take_due(struct kmes_instance* instance, unsigned long* next,
                                    bool* is_any) {
    struct kmes_memory *memory, *due = NULL;

    *is_any = false;
    spin_lock(&instance->list_lock);
    list_for_each_entry(memory, &instance->buffers, in_instance) {
        if (!is_wanted(memory)) continue;
        if (time_after_eq(jiffies, memory->nudge_due) && refcount_inc_not_zero(&memory->holders)) {
            due = memory;
            break;
        }
        if (!*is_any || time_before(memory->nudge_due, *next)) *next = memory->nudge_due;
        *is_any = true;
    }
    if (due) {
        due->nudge_interval = min(2 * due->nudge_interval, msecs_to_jiffies(KMES_NUDGE_LONGEST_MS));
        due->nudge_due = jiffies + due->nudge_interval;
    }
    spin_unlock(&instance->list_lock);
    return due;
}

/* Queues the work for this time, unless it is queued for an earlier one: a series of resizes does
 * not postpone the nudges of the buffers that they retire. Call it under list_lock. */
static void queue_nudges(struct kmes_instance* instance, unsigned long at) {
    if (delayed_work_pending(&instance->nudge) && time_before_eq(instance->nudge_at, at)) return;
    instance->nudge_at = at;
    mod_delayed_work(system_unbound_wq, &instance->nudge,
                     time_after(at, jiffies) ? at - jiffies : 1);
}

static void nudge_due_ones(struct work_struct* delayed) {
    struct kmes_instance* instance =
        container_of(to_delayed_work(delayed), struct kmes_instance, nudge);
    struct kmes_memory* memory;
    unsigned long next;
    bool is_any;

    while ((memory = take_due(instance, &next, &is_any)) != NULL) {
        WARN_ON_ONCE(kmes_buffer_nudge(&instance->nudger, &memory->buffer));
        kmes_memory_put(memory);
        cond_resched();
    }
    if (!is_any) return;
    spin_lock(&instance->list_lock);
    queue_nudges(instance, next);
    spin_unlock(&instance->list_lock);
}

void kmes_nudge_begin(struct kmes_memory* memory) {
    struct kmes_instance* instance = memory->instance;

    lockdep_assert_held(&instance->list_lock);
    memory->nudge_interval = max(msecs_to_jiffies(KMES_NUDGE_FIRST_MS), 1ul);
    memory->nudge_due = jiffies + memory->nudge_interval;
    queue_nudges(instance, memory->nudge_due);
}

/* The nudger is a producer without a buffer. It has its own critical section. */
void kmes_nudge_init(struct kmes_instance* instance) {
    kmes_cpu_init(&instance->nudger, 0, NULL, &instance->nudger_platform, 0);
    INIT_DELAYED_WORK(&instance->nudge, nudge_due_ones);
}

void kmes_nudge_exit(struct kmes_instance* instance) {
    cancel_delayed_work_sync(&instance->nudge);
}
