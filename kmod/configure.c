// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resize, and the end of the boot phase (5.1.2, 5.1.8.4; event-model.md, Configuration). All new
 * buffers are there before the first CPU is swapped; from then on nothing can fail. They are made
 * without world->lock, which an attach waits for: it then has all the old ones. A CPU is swapped by
 * a worker on its own processor, in pieces with interrupts off that are bounded (E18), between
 * which emission goes on.
 */
#include <linux/slab.h>

#include "module.h"
#include "world.h"

struct swap_work {
    struct kmes_world_cpu* cpu;
    struct kmes_memory* fresh;
};

bool kmes_capacity_is_configurable(u64 bytes) {
    return bytes >= KMES_CONFIG_CAPACITY_MIN_BYTES && bytes <= KMES_CONFIG_CAPACITY_MAX_BYTES &&
           kmes_capacity_is_valid(bytes);
}

bool kmes_event_size_is_configurable(u64 bytes) {
    return bytes >= KMES_CONFIG_EVENT_MIN_BYTES && bytes <= KMES_CONFIG_EVENT_MAX_BYTES;
}

static int check(struct kmes_world* world, const struct kmes_ioctl_configure* wanted) {
    if (wanted->buffer_capacity && !kmes_capacity_is_configurable(wanted->buffer_capacity)) {
        kmes_say("kmes.config.refused",
                 "BufferCapacity %llu: not a power of two, %llu..%llu; %llu stays",
                 wanted->buffer_capacity, KMES_CONFIG_CAPACITY_MIN_BYTES,
                 KMES_CONFIG_CAPACITY_MAX_BYTES, world->capacity);
        return -EINVAL;
    }
    if (wanted->max_event_size && !kmes_event_size_is_configurable(wanted->max_event_size)) {
        kmes_say("kmes.config.refused", "MaxEventSize %llu: not %llu..%llu; %llu stays",
                 wanted->max_event_size, KMES_CONFIG_EVENT_MIN_BYTES, KMES_CONFIG_EVENT_MAX_BYTES,
                 world->max_event_bytes);
        return -EINVAL;
    }
    return 0;
}

/* All or none. */
static int make_all(struct kmes_world* world, u64 capacity, struct kmes_memory** fresh) {
    u32 i;

    for (i = 0; i < world->cpus; i++) {
        struct kmes_memory_setup setup = {.capacity = capacity, .generation = 1, .cpu = i};

        fresh[i] = kmes_memory_make(world, &setup);
        if (IS_ERR(fresh[i])) {
            int error = PTR_ERR(fresh[i]);

            while (i > 0) kmes_memory_put(fresh[--i]);
            return error;
        }
    }
    return 0;
}

static long swap_here(void* context) {
    struct swap_work* work = context;
    struct kmes_platform* platform = &work->cpu->platform;
    int error;

    WRITE_ONCE(platform->measured, current);
    error = kmes_swap_run(&work->cpu->core, &work->fresh->buffer, KMES_SWAP_KEEP, 0);
    WRITE_ONCE(platform->measured, NULL);
    return error;
}

void kmes_world_swapped(struct kmes_world_cpu* cpu, struct kmes_memory* fresh) {
    struct kmes_memory* old = cpu->memory;

    lockdep_assert_held(&cpu->world->lock);
    cpu->memory = fresh;
    old->is_retired = true;
    if (cpu->world->is_real) kmes_nudge_begin(old);
    kmes_memory_put(old);
}

/* Attach sees all CPUs before it or all behind it (E14). */
static void swap_all(struct kmes_world* world, struct kmes_memory** fresh, u64 capacity) {
    u32 i;

    mutex_lock(&world->lock);
    for (i = 0; i < world->cpus; i++) {
        struct swap_work work = {.cpu = world->cpu[i], .fresh = fresh[i]};

        /* -EBUSY would be a swap from inside an emission: a task on its processor is not. */
        if (WARN_ON_ONCE(kmes_on_cpu(work.cpu, swap_here, &work))) {
            kmes_memory_put(fresh[i]);
            continue;
        }
        kmes_world_swapped(world->cpu[i], fresh[i]);
    }
    world->capacity = capacity;
    world->is_boot = false;
    mutex_unlock(&world->lock);
}

static int resize(struct kmes_world* world, u64 capacity) {
    struct kmes_memory** fresh = kcalloc(world->cpus, sizeof(*fresh), GFP_KERNEL);
    int error = fresh ? make_all(world, capacity, fresh) : -ENOMEM;

    if (error) {
        kmes_say("kmes.resize.failed", "BufferCapacity %llu: no memory, error %d; %llu stays",
                 capacity, -error, world->capacity);
        kfree(fresh);
        return -ENOMEM;
    }
    swap_all(world, fresh, capacity);
    kfree(fresh);
    return 0;
}

static void set_max_event_size(struct kmes_world* world,
                               const struct kmes_ioctl_configure* wanted) {
    if (wanted->max_event_size) WRITE_ONCE(world->max_event_bytes, wanted->max_event_size);
}

/* Of the rings to come. */
static void set_boot_capacity(struct kmes_world* world, u64 capacity) {
    mutex_lock(&world->lock);
    world->capacity = capacity;
    mutex_unlock(&world->lock);
}

int kmes_world_configure(struct kmes_world* world, const struct kmes_ioctl_configure* wanted) {
    int error;

    mutex_lock(&world->configuration_lock);
    error = check(world, wanted);
    if (!error && wanted->buffer_capacity) {
        if (world->is_boot)
            set_boot_capacity(world, wanted->buffer_capacity);
        else
            error = resize(world, wanted->buffer_capacity);
    }
    if (!error) set_max_event_size(world, wanted);
    mutex_unlock(&world->configuration_lock);
    return error;
}

int kmes_world_registry_available(struct kmes_world* world,
                                  const struct kmes_ioctl_configure* wanted) {
    int error;

    mutex_lock(&world->configuration_lock);
    error = world->is_boot ? check(world, wanted) : -EALREADY;
    if (!error)
        error = resize(world, wanted->buffer_capacity ? wanted->buffer_capacity : world->capacity);
    if (!error) set_max_event_size(world, wanted);
    mutex_unlock(&world->configuration_lock);
    return error;
}
