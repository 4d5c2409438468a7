// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a buffer: pages, the kernel's double mapping, the boundary index. It knows no
 * device.
 *
 * Data pages are ordinary pages of the CPU's node. A metadata page carries a futex that processes
 * share, and the kernel finds such a futex by the file of the page. The metadata pages of all
 * buffers are therefore pages of one shmem file, those of each buffer in its own slot. The pages of
 * a slot are freed with its buffer, and no other buffer uses them. The reason is that a process may
 * hold a page itself (by vmsplice, for example) longer than the buffer has an owner.
 */
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "instance.h"
#include "module.h"

/* An allocation fails without a warning, and without the OOM killer. Allocations of other processes
 * can still start the OOM killer at that time: see configure.c. */
#define KMES_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

static struct file* metadata_file;
static DEFINE_IDA(slots);
DEFINE_MUTEX(kmes_metadata_file_lock);
static atomic_long_t pages_live;
static atomic_long_t buffers_live;

int kmes_memory_init(void) {
    metadata_file =
        shmem_file_setup("kmes-metadata", (loff_t)kmes_metadata_file_bytes(), VM_NORESERVE);
    if (IS_ERR(metadata_file)) return PTR_ERR(metadata_file);
    /* Never swapped out, and never in memory that can be unplugged: the producer writes to its
     * pages in any context. Shmem itself charges them. */
    mapping_set_unevictable(metadata_file->f_mapping);
    mapping_set_gfp_mask(metadata_file->f_mapping, KMES_GFP & ~__GFP_ACCOUNT);
    return 0;
}

void kmes_memory_exit(void) {
    long pages = atomic_long_read(&pages_live);
    long buffers = atomic_long_read(&buffers_live);

    ida_destroy(&slots);
    fput(metadata_file);
    if (WARN_ON(pages || buffers)) pr_err("left behind: %ld pages, %ld buffers\n", pages, buffers);
}

struct file* kmes_metadata_file(void) {
    return metadata_file;
}

u64 kmes_metadata_file_bytes(void) {
    return (u64)kmes_parameters.buffers_max * KMES_METADATA_BYTES;
}

long kmes_memory_pages_live(void) {
    return atomic_long_read(&pages_live);
}

long kmes_memory_buffers_live(void) {
    return atomic_long_read(&buffers_live);
}

static void free_metadata_slot(struct kmes_memory* memory) {
    loff_t start = (loff_t)memory->slot * KMES_METADATA_BYTES;

    mutex_lock(&kmes_metadata_file_lock);
    shmem_truncate_range(file_inode(metadata_file), start, start + KMES_METADATA_BYTES - 1);
    mutex_unlock(&kmes_metadata_file_lock);
    ida_free(&slots, memory->slot);
}

static void put_metadata_pages(struct kmes_memory* memory) {
    u32 i;

    for (i = 0; i < KMES_METADATA_PAGES && memory->pages[i]; i++) put_page(memory->pages[i]);
}

static int take_metadata_pages(struct kmes_memory* memory) {
    int slot = ida_alloc_max(&slots, kmes_parameters.buffers_max - 1, GFP_KERNEL);
    int error;

    if (slot < 0) return slot == -ENOSPC ? -ENFILE : slot;
    memory->slot = (u32)slot;
    error = kmes_wake_make_pages(memory);
    if (error) {
        put_metadata_pages(memory);
        memory->pages[0] = NULL;
        /* No other buffer may use the rest of this attempt in the file. */
        free_metadata_slot(memory);
        return error;
    }
    atomic_long_add(KMES_METADATA_PAGES, &pages_live);
    return 0;
}

static void give_metadata_pages(struct kmes_memory* memory) {
    if (!memory->pages[0]) return;
    put_metadata_pages(memory);
    free_metadata_slot(memory);
    atomic_long_sub(KMES_METADATA_PAGES, &pages_live);
}

/* Returns the processor's node, or any node for a CPU that is no processor. */
static int node_of(const struct kmes_instance* instance, u32 cpu) {
    return instance->is_real && cpu_possible(cpu) ? cpu_to_node((int)cpu) : NUMA_NO_NODE;
}

/* 5.1.4: each data page occurs twice. */
static int take_data_pages(struct kmes_memory* memory, int node) {
    struct page** pages = memory->pages + KMES_METADATA_PAGES;
    u32 i;

    for (i = 0; i < memory->data_pages; i++) {
        struct page* page;

        if (fatal_signal_pending(current)) return -EINTR;
        page = alloc_pages_node(node, KMES_GFP | __GFP_ZERO, 0);
        if (!page) return -ENOMEM;
        pages[i] = page;
        pages[memory->data_pages + i] = page;
        atomic_long_inc(&pages_live);
        cond_resched();
    }
    return 0;
}

static void give_data_pages(struct kmes_memory* memory) {
    struct page** pages = memory->pages + KMES_METADATA_PAGES;
    u32 i;

    for (i = 0; i < memory->data_pages && pages[i]; i++) {
        put_page(pages[i]);
        atomic_long_dec(&pages_live);
        cond_resched();
    }
}

/* Frees the parts that kmes_memory_make has made so far. */
static void unmake(struct kmes_memory* memory) {
    vunmap(memory->mapping);
    if (memory->pages) {
        give_data_pages(memory);
        give_metadata_pages(memory);
    }
    kvfree(memory->pages);
    kvfree(memory->buffer.index);
    kmes_instance_put(memory->instance);
    kfree(memory);
    atomic_long_dec(&buffers_live);
}

static int make_core_buffer(struct kmes_memory* memory, const struct kmes_memory_setup* how,
                            struct kmes_boundary* index) {
    struct kmes_buffer_setup setup = {
        .mapping = memory->mapping,
        .index = index,
        .capacity_bytes = how->capacity,
        .generation = how->generation,
        .start_pos = how->start_pos,
        .version = KMES_VERSION_1,
        .cpu_id = (u16)(memory->instance->first_cpu_id + how->cpu),
    };
    int error = kmes_buffer_init(&memory->buffer, &setup);

    if (error) return error;
    memory->buffer.futex_counter = how->futex_counter;
    kmes_store_relaxed_u32(memory->buffer.shared.futex_counter, how->futex_counter,
                           KMES_ORDER_FRESH);
    return 0;
}

static int make_parts(struct kmes_memory* memory, const struct kmes_memory_setup* how) {
    int node = node_of(memory->instance, how->cpu);
    u64 entries = kmes_index_entries(how->capacity);
    int error;

    memory->pages = kvcalloc(kmes_memory_mapped_pages(memory), sizeof(*memory->pages), KMES_GFP);
    memory->buffer.index = kvmalloc_node(entries * sizeof(struct kmes_boundary), KMES_GFP, node);
    if (!memory->pages || !memory->buffer.index) return -ENOMEM;
    error = take_metadata_pages(memory);
    if (!error) error = take_data_pages(memory, node);
    if (error) return error;
    memory->mapping = vmap(memory->pages, kmes_memory_mapped_pages(memory), VM_MAP, PAGE_KERNEL);
    if (!memory->mapping) return -ENOMEM;
    memory->inode_number = kmes_file_system_new_number();
    return make_core_buffer(memory, how, memory->buffer.index);
}

struct kmes_memory* kmes_memory_make(struct kmes_instance* instance,
                                     const struct kmes_memory_setup* setup) {
    struct kmes_memory* memory;
    int error;

    if (!kmes_capacity_is_valid(setup->capacity) || setup->capacity < PAGE_SIZE ||
        setup->capacity > KMES_CONFIG_CAPACITY_MAX_BYTES)
        return ERR_PTR(-EINVAL);
    memory = kzalloc_node(sizeof(*memory), KMES_GFP, node_of(instance, setup->cpu));
    if (!memory) return ERR_PTR(-ENOMEM);
    atomic_long_inc(&buffers_live);
    kmes_instance_get(instance);
    memory->instance = instance;
    memory->cpu = setup->cpu;
    memory->data_pages = (u32)(setup->capacity / PAGE_SIZE);
    refcount_set(&memory->holders, 1);
    spin_lock_init(&memory->users_lock);
    INIT_LIST_HEAD(&memory->in_instance);
    error = make_parts(memory, setup);
    if (error) {
        unmake(memory);
        return ERR_PTR(error);
    }
    spin_lock(&instance->list_lock);
    memory->number = instance->buffers_made++;
    list_add_tail(&memory->in_instance, &instance->buffers);
    spin_unlock(&instance->list_lock);
    return memory;
}

void kmes_memory_get(struct kmes_memory* memory) {
    refcount_inc(&memory->holders);
}

void kmes_memory_put(struct kmes_memory* memory) {
    might_sleep();
    if (!refcount_dec_and_test(&memory->holders)) return;
    spin_lock(&memory->instance->list_lock);
    list_del(&memory->in_instance);
    spin_unlock(&memory->instance->list_lock);
    unmake(memory);
}

struct kmes_memory* kmes_memory_find(struct kmes_instance* instance, u32 number) {
    struct kmes_memory* memory;
    struct kmes_memory* found = NULL;

    spin_lock(&instance->list_lock);
    list_for_each_entry(memory, &instance->buffers, in_instance) {
        if (memory->number == number && refcount_inc_not_zero(&memory->holders)) found = memory;
    }
    spin_unlock(&instance->list_lock);
    return found;
}
