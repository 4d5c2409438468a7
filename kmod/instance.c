// SPDX-License-Identifier: GPL-2.0-only
/*
 * An instance: its CPUs and their first buffers, attach, statistics. Resize is in configure.c.
 */
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "instance.h"

struct kmes_instance* kmes_real_instance;

static void free_instance(struct kref* holders) {
    struct kmes_instance* instance = container_of(holders, struct kmes_instance, holders);
    u32 i;

    for (i = 0; i < instance->cpus; i++) kfree(instance->cpu[i]);
    kfree(instance);
}

void kmes_instance_get(struct kmes_instance* instance) {
    kref_get(&instance->holders);
}

void kmes_instance_put(struct kmes_instance* instance) {
    kref_put(&instance->holders, free_instance);
}

static void init_platform(struct kmes_instance* instance, struct kmes_platform* platform) {
    platform->is_real = instance->is_real;
    platform->clock_ns = &instance->clock_ns;
    platform->clock_step_ns = &instance->clock_step_ns;
}

static int make_cpu(struct kmes_instance* instance, const struct kmes_instance_setup* how,
                    u32 number) {
    struct kmes_memory_setup setup = {
        .capacity = how->capacity,
        .generation = how->is_boot ? 0 : max(how->first_generation, 1ull),
        .start_pos = how->start_positions ? how->start_positions[number] : 0,
        .cpu = number,
        .futex_counter = how->first_futex_counter,
    };
    int node = how->is_real && cpu_possible(number) ? cpu_to_node((int)number) : NUMA_NO_NODE;
    struct kmes_instance_cpu* cpu = kzalloc_node(sizeof(*cpu), GFP_KERNEL_ACCOUNT, node);

    if (!cpu) return -ENOMEM;
    instance->cpu[number] = cpu;
    cpu->instance = instance;
    cpu->number = number;
    init_platform(instance, &cpu->platform);
    cpu->memory = kmes_memory_make(instance, &setup);
    if (IS_ERR(cpu->memory)) {
        int error = PTR_ERR(cpu->memory);

        cpu->memory = NULL;
        return error;
    }
    kmes_cpu_init(&cpu->core, (u16)(how->first_cpu_id + number), &cpu->memory->buffer,
                  &cpu->platform, how->last_sequence);
    return 0;
}

static void init_instance(struct kmes_instance* instance, const struct kmes_instance_setup* setup) {
    kref_init(&instance->holders);
    mutex_init(&instance->configuration_lock);
    mutex_init(&instance->lock);
    spin_lock_init(&instance->list_lock);
    INIT_LIST_HEAD(&instance->buffers);
    instance->is_real = setup->is_real;
    instance->is_boot = setup->is_boot;
    instance->cpus = setup->cpus;
    instance->first_cpu_id = setup->first_cpu_id;
    instance->capacity = setup->capacity;
    instance->max_event_bytes = setup->max_event_bytes;
    instance->clock_ns = setup->clock_ns;
    instance->clock_step_ns = setup->clock_step_ns;
    if (instance->is_real) kmes_nudge_init(instance);
}

struct kmes_instance* kmes_instance_make(const struct kmes_instance_setup* setup) {
    struct kmes_instance* instance;
    int error = 0;
    u32 i;

    if (setup->cpus == 0 || setup->cpus > KMES_CPUS_MAX) return ERR_PTR(-EINVAL);
    instance = kzalloc(struct_size(instance, cpu, setup->cpus), GFP_KERNEL_ACCOUNT);
    if (!instance) return ERR_PTR(-ENOMEM);
    init_instance(instance, setup);
    for (i = 0; i < setup->cpus && !error; i++) error = make_cpu(instance, setup, i);
    if (!error) return instance;
    kmes_instance_end(instance);
    kmes_instance_put(instance);
    return ERR_PTR(error);
}

void kmes_instance_end(struct kmes_instance* instance) {
    u32 i;

    mutex_lock(&instance->lock);
    for (i = 0; i < instance->cpus; i++) {
        struct kmes_instance_cpu* cpu = instance->cpu[i];

        if (!cpu || !cpu->memory) continue;
        spin_lock(&instance->list_lock);
        cpu->memory->is_retired = true;
        spin_unlock(&instance->list_lock);
        kmes_memory_put(cpu->memory);
        cpu->memory = NULL;
    }
    mutex_unlock(&instance->lock);
}

int kmes_instance_attach(struct kmes_instance* instance, struct kmes_memory** memories,
                         u64* capacity) {
    int error = 0;
    u32 i;

    mutex_lock(&instance->lock);
    if (instance->is_boot) error = -EAGAIN;
    for (i = 0; i < instance->cpus && !error; i++) {
        struct kmes_memory* memory = instance->cpu[i]->memory;

        if (!memory) {
            error = -ESHUTDOWN;
            while (i > 0) kmes_memory_put(memories[--i]);
            break;
        }
        kmes_memory_get(memory);
        memories[i] = memory;
        *capacity = memory->buffer.capacity;
    }
    mutex_unlock(&instance->lock);
    return error;
}

struct kmes_memory* kmes_instance_attach_cpu(struct kmes_instance* instance, u32 cpu) {
    struct kmes_memory* memory;

    mutex_lock(&instance->lock);
    if (instance->is_boot) {
        memory = ERR_PTR(-EAGAIN);
    } else if (cpu >= instance->cpus) {
        memory = ERR_PTR(-EINVAL);
    } else {
        memory = instance->cpu[array_index_nospec(cpu, instance->cpus)]->memory;
        if (memory)
            kmes_memory_get(memory);
        else
            memory = ERR_PTR(-ESHUTDOWN);
    }
    mutex_unlock(&instance->lock);
    return memory;
}

/*
 * Reads from this processor, while the CPU may emit. Each counter is consistent, but they may be
 * from different moments. Nothing waits for the CPU, and nothing disturbs it. data_race: the owner
 * uses plain stores.
 */
static void fill_statistics(const struct kmes_instance_cpu* cpu,
                            struct kmes_ioctl_statistics* statistics) {
#define KMES_SEEN(field) data_race(READ_ONCE(cpu->core.field))
    statistics->events = KMES_SEEN(statistics.events);
    statistics->bytes = KMES_SEEN(statistics.bytes);
    statistics->dropped = KMES_SEEN(statistics.dropped);
    /* An emission that is still owed its number is dropped all the same. */
    statistics->dropped_nested = KMES_SEEN(statistics.dropped_nested) + KMES_SEEN(nested_missed);
    statistics->dropped_no_cpu = (u64)atomic64_read(&kmes_dropped_no_cpu);
    statistics->overwritten = KMES_SEEN(statistics.overwritten);
    statistics->wakes = KMES_SEEN(statistics.wakes);
    statistics->corrupt = KMES_SEEN(statistics.corrupt);
    statistics->swaps = KMES_SEEN(statistics.swaps);
    statistics->left_behind = KMES_SEEN(statistics.left_behind);
    statistics->last_sequence = KMES_SEEN(sequence);
    statistics->longest_pause_ns = READ_ONCE(cpu->longest_pause_ns);
#undef KMES_SEEN
}

int kmes_instance_statistics_locked(struct kmes_instance* instance,
                                    struct kmes_ioctl_statistics* statistics) {
    const struct kmes_instance_cpu* cpu;
    u32 number = statistics->cpu;

    if (number >= instance->cpus) return -EINVAL;
    cpu = instance->cpu[array_index_nospec(number, instance->cpus)];
    if (!cpu->memory) return -EINVAL; /* the instance has ended */
    memset(statistics, 0, sizeof(*statistics));
    statistics->cpu = number;
    fill_statistics(cpu, statistics);
    statistics->phase = instance->is_boot ? 0 : 1;
    statistics->capacity = cpu->memory->buffer.capacity;
    statistics->max_event_size = READ_ONCE(instance->max_event_bytes);
    return 0;
}

int kmes_instance_statistics(struct kmes_instance* instance,
                             struct kmes_ioctl_statistics* statistics) {
    int error;

    mutex_lock(&instance->lock);
    error = kmes_instance_statistics_locked(instance, statistics);
    mutex_unlock(&instance->lock);
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

/* A snapshot for people. For a buffer that is being written to, the positions may be from different
 * moments. They are therefore read from this processor, without synchronisation. */
u32 kmes_instance_buffers(struct kmes_instance* instance, struct kmes_buffer_info* infos,
                          u32 slots) {
    struct kmes_memory* memory;
    u32 count = 0;

    spin_lock(&instance->list_lock);
    list_for_each_entry(memory, &instance->buffers, in_instance) {
        if (count < slots) fill_info(memory, &infos[count]);
        count++;
    }
    spin_unlock(&instance->list_lock);
    return count;
}
