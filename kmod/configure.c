// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resize, and the end of the boot phase (5.1.2, 5.1.8.4; event-model.md, Configuration).
 *
 *   make      all new buffers exist before the first CPU is changed. Only configuration_lock is
 *             held, here and during the next step.
 *   copy      most of the surviving events, CPU by CPU, in pieces
 *   switch    of all CPUs under instance->lock, since attach sees all before it or all after it
 * (E14). Only events that were emitted since are left to copy. Nothing can fail any more.
 *
 * A piece, and the switch, run on the processor of the CPU in a hard interrupt. Emission is off for
 * one bounded piece at a time (E18), and a real-time task that monopolises the processor delays
 * nothing. A resize can only wait for a CPU that comes online or goes offline. It waits before it
 * takes instance->lock, reports the wait, and can be killed there.
 */
#include <linux/cpu.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "instance.h"
#include "module.h"

/* The time that a resize waits for such a CPU before it reports it, and between two reports. */
#define KMES_WAIT_SAID_AFTER_MS 2000
#define KMES_WAIT_SAID_AGAIN_MS 30000

enum swap_step { SWAP_BEGIN, SWAP_COPY, SWAP_FINISH };

/* The swap of one CPU. */
struct swap_work {
    struct kmes_instance_cpu* cpu;
    struct kmes_memory* fresh; /* referenced until the swap has finished */
    struct kmes_memory* old;   /* from then on, referenced */
    struct kmes_swap swap;
    enum swap_step step;
    bool has_more;
    int error;
};

bool kmes_capacity_is_configurable(u64 bytes) {
    return bytes >= KMES_CONFIG_CAPACITY_MIN_BYTES && bytes <= KMES_CONFIG_CAPACITY_MAX_BYTES &&
           kmes_capacity_is_valid(bytes);
}

bool kmes_event_size_is_configurable(u64 bytes) {
    return bytes >= KMES_CONFIG_EVENT_MIN_BYTES && bytes <= KMES_CONFIG_EVENT_MAX_BYTES;
}

static int check(struct kmes_instance* instance, const struct kmes_ioctl_configure* wanted) {
    if (wanted->buffer_capacity && !kmes_capacity_is_configurable(wanted->buffer_capacity)) {
        kmes_say("kmes.config.refused",
                 "BufferCapacity %llu: not a power of two, %llu..%llu; %llu stays",
                 wanted->buffer_capacity, KMES_CONFIG_CAPACITY_MIN_BYTES,
                 KMES_CONFIG_CAPACITY_MAX_BYTES, instance->capacity);
        return -EINVAL;
    }
    if (wanted->max_event_size && !kmes_event_size_is_configurable(wanted->max_event_size)) {
        kmes_say("kmes.config.refused", "MaxEventSize %llu: not %llu..%llu; %llu stays",
                 wanted->max_event_size, KMES_CONFIG_EVENT_MIN_BYTES, KMES_CONFIG_EVENT_MAX_BYTES,
                 instance->max_event_bytes);
        return -EINVAL;
    }
    return 0;
}

/* Returns whether memory for a new buffer of each CPU is available now: the data, and 1/64 more for
 * the rest of a buffer. */
static bool is_memory_there(const struct kmes_instance* instance, u64 capacity) {
    u64 bytes = capacity + capacity / 64 + KMES_METADATA_BYTES;

    return bytes * instance->cpus / PAGE_SIZE < (u64)si_mem_available();
}

/* All or none. */
static int make_all(struct kmes_instance* instance, u64 capacity, struct swap_work* works) {
    u32 i;

    for (i = 0; i < instance->cpus; i++) {
        struct kmes_memory_setup setup = {.capacity = capacity, .generation = 1, .cpu = i};

        works[i].cpu = instance->cpu[i];
        works[i].fresh = kmes_memory_make(instance, &setup);
        if (IS_ERR(works[i].fresh)) {
            int error = PTR_ERR(works[i].fresh);

            works[i].fresh = NULL;
            return error;
        }
    }
    return 0;
}

/* Releases the remaining buffers: the new ones of a failed resize, or the old ones. */
static void put_all(const struct kmes_instance* instance, const struct swap_work* works) {
    u32 i;

    for (i = 0; i < instance->cpus; i++) {
        if (works[i].fresh) kmes_memory_put(works[i].fresh);
        if (works[i].old) kmes_memory_put(works[i].old);
        cond_resched();
    }
}

static void step_here(void* context) {
    struct swap_work* work = context;
    u64 pause_ns = ktime_get_mono_fast_ns();

    switch (work->step) {
        case SWAP_BEGIN:
            work->error = kmes_swap_begin(&work->swap, &work->cpu->core, &work->fresh->buffer,
                                          KMES_SWAP_KEEP, 0);
            break;
        case SWAP_COPY:
            work->has_more = kmes_swap_copy(&work->swap);
            break;
        case SWAP_FINISH:
            work->error = kmes_swap_finish(&work->swap);
            break;
    }
    if (!irqs_disabled()) return; /* of a CPU that is offline: no emission there */
    pause_ns = ktime_get_mono_fast_ns() - pause_ns;
    if (pause_ns > work->cpu->longest_pause_ns) WRITE_ONCE(work->cpu->longest_pause_ns, pause_ns);
}

/* Executes one step with the CPU hotplug lock held: on the processor of the CPU, or here for a CPU
 * that is offline. No emission is possible there until the hotplug lock is released. */
static void do_step(struct swap_work* work, enum swap_step step) {
    int processor = (int)work->cpu->number;

    work->step = step;
    if (!cpu_online(processor) || smp_call_function_single(processor, step_here, work, true))
        step_here(work);
}

/* Takes the CPU hotplug lock. Its holder may wait for a CPU that a real-time task monopolises. This
 * function therefore reports the wait, and a fatal signal ends it with -EINTR. */
static int hold_cpus(void) {
    unsigned long said_at = jiffies + msecs_to_jiffies(KMES_WAIT_SAID_AFTER_MS);

    while (!cpus_read_trylock()) {
        if (fatal_signal_pending(current)) return -EINTR;
        if (time_after(jiffies, said_at)) {
            pr_warn(
                "a resize waits for a CPU that is coming or going; attach and emission go on\n");
            said_at = jiffies + msecs_to_jiffies(KMES_WAIT_SAID_AGAIN_MS);
        }
        schedule_timeout_killable(1);
    }
    return 0;
}

/* Copies most of the events. Other CPUs may come online or go offline between two pieces. */
static int copy_bulk(struct swap_work* work) {
    enum swap_step step = SWAP_BEGIN;
    u64 rounds = 0;

    do {
        int error = hold_cpus();

        if (error) return error;
        do_step(work, step);
        cpus_read_unlock();
        /* -EBUSY would mean a swap from inside an emission, which has interrupts off. */
        if (WARN_ON_ONCE(work->error)) return work->error;
        if (step == SWAP_BEGIN) {
            rounds = kmes_swap_rounds(&work->swap);
            work->has_more = true;
        }
        step = SWAP_COPY;
        cond_resched();
    } while (work->has_more && rounds-- > 0);
    return 0;
}

struct kmes_memory* kmes_instance_swapped(struct kmes_instance_cpu* cpu,
                                          struct kmes_memory* fresh) {
    struct kmes_instance* instance = cpu->instance;
    struct kmes_memory* old = cpu->memory;

    lockdep_assert_held(&instance->lock);
    cpu->memory = fresh;
    spin_lock(&instance->list_lock);
    old->is_retired = true;
    if (instance->is_real) kmes_nudge_begin(old);
    spin_unlock(&instance->list_lock);
    return old;
}

/* Copies the events that were emitted since copy_bulk, and switches. */
static void switch_over(struct swap_work* work) {
    u64 rounds = kmes_swap_rounds(&work->swap);

    do {
        do_step(work, SWAP_COPY);
    } while (work->has_more && rounds-- > 0);
    do_step(work, SWAP_FINISH);
    if (WARN_ON_ONCE(work->error)) return; /* as in copy_bulk; the CPU keeps its buffer */
    work->old = kmes_instance_swapped(work->cpu, work->fresh);
    work->fresh = NULL;
}

static int swap_all(struct kmes_instance* instance, struct swap_work* works, u64 capacity) {
    int error = 0;
    u32 i;

    for (i = 0; i < instance->cpus && !error; i++) error = copy_bulk(&works[i]);
    if (!error) error = hold_cpus();
    if (error) return error;
    mutex_lock(&instance->lock);
    for (i = 0; i < instance->cpus; i++) {
        switch_over(&works[i]);
        cond_resched();
    }
    instance->capacity = capacity;
    instance->is_boot = false;
    mutex_unlock(&instance->lock);
    cpus_read_unlock();
    return 0;
}

/* Makes all new buffers. Other processes may need memory meanwhile. The OOM killer then ends the
 * calling process first, and no other one because of the new buffers. */
static int make_all_as_oom_origin(struct kmes_instance* instance, u64 capacity,
                                  struct swap_work* works) {
    int error;

    if (!is_memory_there(instance, capacity)) return -ENOMEM;
    set_current_oom_origin();
    error = make_all(instance, capacity, works);
    clear_current_oom_origin();
    return error;
}

/* Emits the event of a failed resize. Returns the error of the ioctl. */
static int say_failed(const struct kmes_instance* instance, u64 capacity, int error) {
    /* Some allocations in the kernel also fail because of the signal. */
    if (error == -EINTR || fatal_signal_pending(current)) {
        kmes_say("kmes.resize.failed", "BufferCapacity %llu: ended by a signal; %llu stays",
                 capacity, instance->capacity);
        return -EINTR;
    }
    kmes_say("kmes.resize.failed", "BufferCapacity %llu: no memory, error %d; %llu stays", capacity,
             -error, instance->capacity);
    return -ENOMEM;
}

static int resize(struct kmes_instance* instance, u64 capacity) {
    struct swap_work* works = kvcalloc(instance->cpus, sizeof(*works), GFP_KERNEL);
    int error = works ? make_all_as_oom_origin(instance, capacity, works) : -ENOMEM;

    if (!error) error = swap_all(instance, works, capacity);
    if (error) error = say_failed(instance, capacity, error);
    if (works) put_all(instance, works);
    kvfree(works);
    return error;
}

static void set_max_event_size(struct kmes_instance* instance,
                               const struct kmes_ioctl_configure* wanted) {
    if (wanted->max_event_size) WRITE_ONCE(instance->max_event_bytes, wanted->max_event_size);
}

/* Sets the capacity of the rings to come. */
static void set_boot_capacity(struct kmes_instance* instance, u64 capacity) {
    mutex_lock(&instance->lock);
    instance->capacity = capacity;
    mutex_unlock(&instance->lock);
}

/* Takes configuration_lock. A fatal signal ends the wait with -EINTR and an event. Another change
 * of the configuration is in progress then, so the event does not name the current values. */
static int lock_configuration(struct kmes_instance* instance,
                              const struct kmes_ioctl_configure* wanted) {
    if (!mutex_lock_killable(&instance->configuration_lock)) return 0;
    kmes_say("kmes.config.refused",
             "BufferCapacity %llu, MaxEventSize %llu: ended by a signal; nothing changes",
             wanted->buffer_capacity, wanted->max_event_size);
    return -EINTR;
}

int kmes_instance_configure(struct kmes_instance* instance,
                            const struct kmes_ioctl_configure* wanted) {
    int error = lock_configuration(instance, wanted);

    if (error) return error;
    error = check(instance, wanted);
    if (!error && wanted->buffer_capacity) {
        if (instance->is_boot)
            set_boot_capacity(instance, wanted->buffer_capacity);
        else
            error = resize(instance, wanted->buffer_capacity);
    }
    if (!error) set_max_event_size(instance, wanted);
    mutex_unlock(&instance->configuration_lock);
    return error;
}

int kmes_instance_registry_available(struct kmes_instance* instance,
                                     const struct kmes_ioctl_configure* wanted) {
    int error = lock_configuration(instance, wanted);

    if (error) return error;
    error = instance->is_boot ? check(instance, wanted) : -EALREADY;
    if (!error)
        error = resize(instance,
                       wanted->buffer_capacity ? wanted->buffer_capacity : instance->capacity);
    if (!error) set_max_event_size(instance, wanted);
    mutex_unlock(&instance->configuration_lock);
    return error;
}
