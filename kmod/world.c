// SPDX-License-Identifier: GPL-2.0-only
/*
 * A world: its CPUs and their first buffers, attach, statistics. Resize is in configure.c.
 */
#include <linux/cpu.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "world.h"

struct kmes_world* kmes_real_world;

static void free_world(struct kref* holders) {
    struct kmes_world* world = container_of(holders, struct kmes_world, holders);
    u32 i;

    for (i = 0; i < world->cpus; i++) kfree(world->cpu[i]);
    kfree(world);
}

void kmes_world_get(struct kmes_world* world) {
    kref_get(&world->holders);
}

void kmes_world_put(struct kmes_world* world) {
    kref_put(&world->holders, free_world);
}

static void init_platform(struct kmes_world* world, struct kmes_platform* platform) {
    platform->is_real = world->is_real;
    platform->clock_ns = &world->clock_ns;
    platform->clock_step_ns = &world->clock_step_ns;
}

static int make_cpu(struct kmes_world* world, const struct kmes_world_setup* how, u32 number) {
    struct kmes_memory_setup setup = {
        .capacity = how->capacity,
        .generation = how->is_boot ? 0 : max(how->first_generation, 1ull),
        .start_pos = how->start_positions ? how->start_positions[number] : 0,
        .cpu = number,
        .futex_counter = how->first_futex_counter,
    };
    int node = how->is_real && cpu_possible(number) ? cpu_to_node((int)number) : NUMA_NO_NODE;
    struct kmes_world_cpu* cpu = kzalloc_node(sizeof(*cpu), GFP_KERNEL_ACCOUNT, node);

    if (!cpu) return -ENOMEM;
    world->cpu[number] = cpu;
    cpu->world = world;
    cpu->number = number;
    init_platform(world, &cpu->platform);
    cpu->memory = kmes_memory_make(world, &setup);
    if (IS_ERR(cpu->memory)) {
        int error = PTR_ERR(cpu->memory);

        cpu->memory = NULL;
        return error;
    }
    kmes_cpu_init(&cpu->core, (u16)(how->first_cpu_id + number), &cpu->memory->buffer,
                  &cpu->platform, how->last_sequence);
    return 0;
}

static void init_world(struct kmes_world* world, const struct kmes_world_setup* setup) {
    kref_init(&world->holders);
    mutex_init(&world->configuration_lock);
    mutex_init(&world->lock);
    spin_lock_init(&world->list_lock);
    INIT_LIST_HEAD(&world->buffers);
    world->is_real = setup->is_real;
    world->is_boot = setup->is_boot;
    world->cpus = setup->cpus;
    world->first_cpu_id = setup->first_cpu_id;
    world->capacity = setup->capacity;
    world->max_event_bytes = setup->max_event_bytes;
    world->clock_ns = setup->clock_ns;
    world->clock_step_ns = setup->clock_step_ns;
    if (world->is_real) kmes_nudge_init(world);
}

struct kmes_world* kmes_world_make(const struct kmes_world_setup* setup) {
    struct kmes_world* world;
    int error = 0;
    u32 i;

    if (setup->cpus == 0 || setup->cpus > KMES_CPUS_MAX) return ERR_PTR(-EINVAL);
    world = kzalloc(struct_size(world, cpu, setup->cpus), GFP_KERNEL_ACCOUNT);
    if (!world) return ERR_PTR(-ENOMEM);
    init_world(world, setup);
    for (i = 0; i < setup->cpus && !error; i++) error = make_cpu(world, setup, i);
    if (!error) return world;
    kmes_world_end(world);
    kmes_world_put(world);
    return ERR_PTR(error);
}

void kmes_world_end(struct kmes_world* world) {
    u32 i;

    mutex_lock(&world->lock);
    for (i = 0; i < world->cpus; i++) {
        struct kmes_world_cpu* cpu = world->cpu[i];

        if (!cpu || !cpu->memory) continue;
        cpu->memory->is_retired = true;
        kmes_memory_put(cpu->memory);
        cpu->memory = NULL;
    }
    mutex_unlock(&world->lock);
}

long kmes_on_cpu(struct kmes_world_cpu* cpu, long (*work)(void*), void* context) {
    long result;

    if (!cpu->world->is_real) return work(context);
    cpus_read_lock();
    if (cpu_online(cpu->number))
        result = work_on_cpu((int)cpu->number, work, context);
    else
        result = work(context); /* nobody emits there, nor will before the lock is given back */
    cpus_read_unlock();
    return result;
}

int kmes_world_attach(struct kmes_world* world, struct kmes_memory** memories, u64* capacity) {
    int error = 0;
    u32 i;

    mutex_lock(&world->lock);
    if (world->is_boot) error = -EAGAIN;
    for (i = 0; i < world->cpus && !error; i++) {
        struct kmes_memory* memory = world->cpu[i]->memory;

        if (!memory) {
            error = -ESHUTDOWN;
            while (i > 0) kmes_memory_put(memories[--i]);
            break;
        }
        kmes_memory_get(memory);
        memories[i] = memory;
        *capacity = memory->buffer.capacity;
    }
    mutex_unlock(&world->lock);
    return error;
}

struct kmes_memory* kmes_world_attach_cpu(struct kmes_world* world, u32 cpu) {
    struct kmes_memory* memory;

    mutex_lock(&world->lock);
    if (world->is_boot) {
        memory = ERR_PTR(-EAGAIN);
    } else if (cpu >= world->cpus) {
        memory = ERR_PTR(-EINVAL);
    } else {
        memory = world->cpu[array_index_nospec(cpu, world->cpus)]->memory;
        if (memory)
            kmes_memory_get(memory);
        else
            memory = ERR_PTR(-ESHUTDOWN);
    }
    mutex_unlock(&world->lock);
    return memory;
}

/* What one look at a CPU's producer, on its processor, found. */
struct look {
    struct kmes_world_cpu* cpu;
    struct kmes_cpu core;
    u64 longest_pause_ns;
};

static long look_at(void* context) {
    struct look* look = context;
    struct kmes_platform* platform = &look->cpu->platform;

    if (!kmes_platform_enter(platform)) {
        /* A reservation of a test world is open: its operations are kept apart by the lock. */
        look->core = look->cpu->core;
        return 0;
    }
    look->core = look->cpu->core;
    look->longest_pause_ns = platform->longest_pause_ns;
    kmes_platform_exit(platform);
    return 0;
}

static void fill_statistics(const struct look* look, struct kmes_ioctl_statistics* statistics) {
    const struct kmes_statistics* counted = &look->core.statistics;

    statistics->events = counted->events;
    statistics->bytes = counted->bytes;
    statistics->dropped = counted->dropped;
    /* Those whose numbers are still owed are dropped all the same. */
    statistics->dropped_nested = counted->dropped_nested + look->core.nested_missed;
    statistics->dropped_no_cpu = (u64)atomic64_read(&kmes_dropped_no_cpu);
    statistics->overwritten = counted->overwritten;
    statistics->wakes = counted->wakes;
    statistics->corrupt = counted->corrupt;
    statistics->swaps = counted->swaps;
    statistics->left_behind = counted->left_behind;
    statistics->last_sequence = look->core.sequence;
    statistics->longest_pause_ns = look->longest_pause_ns;
}

int kmes_world_statistics_locked(struct kmes_world* world,
                                 struct kmes_ioctl_statistics* statistics) {
    struct look look = {};
    u32 cpu = statistics->cpu;

    if (cpu >= world->cpus) return -EINVAL;
    look.cpu = world->cpu[array_index_nospec(cpu, world->cpus)];
    if (!look.cpu->memory) return -EINVAL; /* the world has ended */
    kmes_on_cpu(look.cpu, look_at, &look);
    memset(statistics, 0, sizeof(*statistics));
    statistics->cpu = cpu;
    fill_statistics(&look, statistics);
    statistics->phase = world->is_boot ? 0 : 1;
    statistics->capacity = look.cpu->memory->buffer.capacity;
    statistics->max_event_size = world->max_event_bytes;
    return 0;
}

int kmes_world_statistics(struct kmes_world* world, struct kmes_ioctl_statistics* statistics) {
    int error;

    mutex_lock(&world->lock);
    error = kmes_world_statistics_locked(world, statistics);
    mutex_unlock(&world->lock);
    return error;
}

static void fill_info(struct kmes_memory* memory, struct kmes_buffer_info* info) {
    memset(info, 0, sizeof(*info));
    info->inode = memory->inode_number;
    info->capacity = memory->buffer.capacity;
    info->generation = data_race(memory->buffer.generation);
    info->write_pos = data_race(memory->buffer.published);
    info->tail_pos = data_race(memory->buffer.tail);
    info->cpu = memory->cpu;
    info->mappings = data_race(memory->mappings);
    info->descriptors = data_race(memory->descriptors);
    info->is_retired = memory->is_retired;
}

/* A picture for people: of a buffer that is being written to, positions that may not belong
 * together. So they are read from here, and as they come. */
u32 kmes_world_buffers(struct kmes_world* world, struct kmes_buffer_info* infos, u32 slots) {
    struct kmes_memory* memory;
    u32 count = 0;

    mutex_lock(&world->lock);
    spin_lock(&world->list_lock);
    list_for_each_entry(memory, &world->buffers, in_world) {
        if (count < slots) fill_info(memory, &infos[count]);
        count++;
    }
    spin_unlock(&world->list_lock);
    mutex_unlock(&world->lock);
    return count;
}
