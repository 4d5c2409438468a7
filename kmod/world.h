/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the module know of each other. Never included by anybody else: other modules
 * have kmes_kernel.h, programs have <linux/kmes.h>.
 *
 *   world    the CPUs that one /dev/kmes speaks of. There is the real one; a test build makes
 *            others, whose CPUs are no processors of the machine.
 *   memory   one buffer: pages, mappings, inode, and the core's `struct kmes_buffer` in them
 *   open     one open file of /dev/kmes
 *
 * Who holds a memory: its world, while a CPU writes to it; each open file of it (and with the file
 * its mappings); its inode, while that exists; a queued wake (E16); whoever called kmes_memory_get.
 * The last one frees it. Each memory holds its world. All but kmes_memory_get may sleep in
 * kmes_memory_put.
 *
 * Six files call each other in a circle, and both directions are right. file_system.c, map.c,
 * wake.c, nudge.c and world.c hold memories, and release them by kmes_memory_put. memory.c calls
 * three of them when it makes a memory, for what only they can give: file_system.c for an inode
 * number that no other file has, wake.c for a slot in the metadata file, world.c for a reference
 * to the world. file_system.c has map.c count a new open file, and nudge.c nudge a memory that was
 * swapped out meanwhile. Callbacks would hide the circle and not remove it: a memory holds its
 * world, and the world holds its memories.
 *
 * Locks, outermost first: the mmap lock of a process; world->configuration_lock; the CPU hotplug
 * lock; world->lock; world->list_lock; memory->users_lock (spin locks, process context only). The
 * path of an emission takes none of them. Nobody waits for a CPU, for memory of a process or for
 * the hotplug lock with world->lock held.
 */
#ifndef KMES_KMOD_WORLD_H
#define KMES_KMOD_WORLD_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/kmes.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kmes/call.h"
#include "kmes/ring.h"

#define KMES_BOOT_CAPACITY_BYTES (256ull << 10) /* 5.1.2: compiled in */
#define KMES_CPUS_MAX 1024u

struct kmes_world;

/* One buffer. See above for who holds it. */
struct kmes_memory {
    struct kmes_buffer buffer; /* of the core */
    struct kmes_world* world;
    refcount_t holders;
    struct list_head in_world; /* world->buffers, while it exists */
    u32 cpu;    /* its index in the world; buffer.shared.cpu_id is first_cpu_id more */
    u32 number; /* in the order in which the world's buffers were made, from 0 */
    u32 slot;   /* of its metadata page in the metadata file */
    u32 data_pages;

    /* 5.1.5: pages[0] is the metadata page; the data pages follow, twice. */
    struct page** pages;        /* 1 + 2 x data_pages */
    void* mapping;              /* of the kernel: 4096 + 2 x capacity bytes, writable */
    unsigned long inode_number; /* one for all its fds (E19) */

    /* `inode`, the two counts, and that need_wake is cleared with the last mapping (E12). */
    spinlock_t users_lock;
    struct inode* inode; /* not referenced: NULL where nobody outside has it (file_system.c) */
    u32 mappings;        /* areas of processes; one that is cut in two counts twice */
    u32 descriptors;     /* open files, also those that only a mapping holds */

    unsigned long is_wake_queued; /* bit 0 */
    struct llist_node wake_node;

    /* Under world->list_lock. */
    bool is_retired;              /* no CPU writes to it any more */
    unsigned long nudge_due;      /* jiffies; the real world only */
    unsigned long nudge_interval; /* jiffies */
};

/* One CPU of a world. */
struct kmes_world_cpu {
    struct kmes_cpu core;
    struct kmes_platform platform;
    struct kmes_memory* memory; /* what core.buffer is part of; under world->lock */
    struct kmes_world* world;
    u32 number;           /* its index */
    u64 longest_pause_ns; /* of emission, by a resize (E18): WRITE_ONCE, by its processor */
};

struct kmes_world {
    struct kref holders;
    bool is_real; /* CPU i is processor i */
    u32 id;       /* of a test world */
    u32 cpus;
    u16 first_cpu_id;

    struct mutex configuration_lock; /* one change of the configuration at a time */
    struct mutex lock;               /* attach, swaps and all else that is not emission (E14) */
    bool is_boot;        /* 5.1.2: there are no rings. This and `capacity` are changed under both */
    u64 capacity;        /* of the rings; in the boot phase, of those to come */
    u64 max_event_bytes; /* of the emit calls: READ_ONCE, written under configuration_lock */

    spinlock_t list_lock;
    struct list_head buffers; /* of struct kmes_memory: all that exist */
    u32 buffers_made;

    atomic64_t wakes_issued;  /* FUTEX_WAKEs */
    atomic64_t threads_woken; /* by those */

    /* The injected clock of a test world. Under the lock. */
    u64 clock_ns;
    u64 clock_step_ns;

    /* The real world's. */
    struct delayed_work nudge;
    struct kmes_cpu nudger; /* see nudge.c */
    struct kmes_platform nudger_platform;

    struct kmes_world_cpu* cpu[]; /* `cpus` of them, each on its node */
};

/* What kmes_world_make makes a world of. */
struct kmes_world_setup {
    u64 capacity; /* of the first buffers: boot buffers, or rings */
    u64 max_event_bytes;
    u64 last_sequence;
    u64 first_generation; /* of rings; 0: 1 */
    u64 clock_ns;
    u64 clock_step_ns;
    const u64* start_positions; /* of each CPU; NULL: 0 */
    u32 cpus;
    u32 first_futex_counter;
    u16 first_cpu_id;
    bool is_real;
    bool is_boot;
};

/* One open file of /dev/kmes. */
struct kmes_open {
    struct mutex lock;            /* joined, test */
    struct kmes_world* joined;    /* held; NULL: the real one */
    void* test;                   /* of a test build: kmod/test_*.c */
    struct kmes_staging* staging; /* of emit calls: kept from one to the next; xchg (device.c) */
};

/* -- world.c --------------------------------------------------------------------------------- */

extern struct kmes_world* kmes_real_world;

/* A world with its first buffers (generation 0 in the boot phase, 1 otherwise); an ERR_PTR. */
struct kmes_world* kmes_world_make(const struct kmes_world_setup* setup);
void kmes_world_get(struct kmes_world* world);
void kmes_world_put(struct kmes_world* world);
/* Nobody emits in it any more: its CPUs let go of their buffers. The caller still holds it. */
void kmes_world_end(struct kmes_world* world);

/* Of each CPU of the world its buffer, held, all of one capacity (E14): `memories` has room for
 * world->cpus. -EAGAIN: the boot phase; -ESHUTDOWN: the world has ended. */
int kmes_world_attach(struct kmes_world* world, struct kmes_memory** memories, u64* capacity);
/* The buffer that one CPU writes to now, referenced; an ERR_PTR: the errors above, and -EINVAL
 * where the world has no such CPU. */
struct kmes_memory* kmes_world_attach_cpu(struct kmes_world* world, u32 cpu);

/* Fills in what the producer of one CPU has counted; -EINVAL: no such CPU. Waits for no CPU.
 * _locked: under world->lock; in a test world also while a reservation is open. */
int kmes_world_statistics(struct kmes_world* world, struct kmes_ioctl_statistics* statistics);
int kmes_world_statistics_locked(struct kmes_world* world,
                                 struct kmes_ioctl_statistics* statistics);
/* As the ioctl: writes at most `slots` of them; how many there are. */
u32 kmes_world_buffers(struct kmes_world* world, struct kmes_buffer_info* infos, u32 slots);

/* -- configure.c ----------------------------------------------------------------------------- */

bool kmes_capacity_is_configurable(u64 bytes);
bool kmes_event_size_is_configurable(u64 bytes);

/* Under world->lock, after a swap to `fresh` has finished: cpu->memory is `fresh`, whose reference
 * is taken over. The old one is retired; its reference is the caller's now. */
struct kmes_memory* kmes_world_swapped(struct kmes_world_cpu* cpu, struct kmes_memory* fresh);

/* The two ioctls; capabilities are the caller's part. 0 in a field leaves a value as it is. */
int kmes_world_configure(struct kmes_world* world, const struct kmes_ioctl_configure* wanted);
int kmes_world_registry_available(struct kmes_world* world,
                                  const struct kmes_ioctl_configure* wanted);

/* -- memory.c -------------------------------------------------------------------------------- */

/* How a new buffer of `cpu` (an index) begins. */
struct kmes_memory_setup {
    u64 capacity;
    u64 generation;
    u64 start_pos;
    u32 cpu;
    u32 futex_counter;
};

int kmes_memory_init(void);
void kmes_memory_exit(void);

/* A fresh buffer, held once, by the caller; an ERR_PTR: -ENOMEM, -EINVAL, -ENFILE (no slot). */
struct kmes_memory* kmes_memory_make(struct kmes_world* world,
                                     const struct kmes_memory_setup* setup);
void kmes_memory_get(struct kmes_memory* memory); /* any context */
void kmes_memory_put(struct kmes_memory* memory); /* may sleep */
/* The buffer of that number, held; NULL where it does not exist any more. */
struct kmes_memory* kmes_memory_find(struct kmes_world* world, u32 number);

/* The metadata file, for the waker; where the page of `memory` is in it. */
struct file* kmes_metadata_file(void);
/* One at a time changes its pages: shmem reads their number without the lock that it is written
 * under, which KCSAN reports where two do. Whoever has it waits for nobody. */
extern struct mutex kmes_metadata_file_lock;
u64 kmes_metadata_file_bytes(void);

static inline struct kmes_memory* kmes_memory_of(struct kmes_buffer* buffer) {
    return container_of(buffer, struct kmes_memory, buffer);
}

/* Bytes of memory->mapping. */
static inline u64 kmes_memory_bytes(const struct kmes_memory* memory) {
    return kmes_mapping_bytes(KMES_VERSION_1, memory->buffer.capacity);
}

/* -- map.c, file_system.c -------------------------------------------------------------------- */

extern const struct file_operations kmes_buffer_file_operations;
/* A mapping or an open file comes or goes. */
void kmes_memory_count(struct kmes_memory* memory, int mappings, int descriptors);

int kmes_file_system_init(void);
void kmes_file_system_exit(void);
/* st_dev of all buffers, as a process sees it; and an inode number that no buffer has had. */
u64 kmes_file_system_device(void);
unsigned long kmes_file_system_new_number(void);
/* A new open file of `memory`, O_RDWR, with a reference of its own; an ERR_PTR. */
struct file* kmes_memory_open(struct kmes_memory* memory);

/* -- wake.c ---------------------------------------------------------------------------------- */

int kmes_wake_init(void);
void kmes_wake_exit(void);
/* kmes_platform_queue_wake: any context, NMI too. */
void kmes_wake_queue(struct kmes_memory* memory);
/* FUTEX_WAKE now; threads woken. May sleep. */
long kmes_wake_now(struct kmes_memory* memory);
/* Makes memory->pages[0], the page of memory->slot in the metadata file: a small page, referenced,
 * that a wake finds without memory from now on. -ENOMEM. */
int kmes_wake_make_page(struct kmes_memory* memory);
/* Waits until every wake that was queued has been issued. */
void kmes_wake_settle(void);

/* -- nudge.c --------------------------------------------------------------------------------- */

/* Under world->list_lock: `memory` was retired just now, or has its first user since. */
void kmes_nudge_begin(struct kmes_memory* memory);
void kmes_nudge_init(struct kmes_world* world);
void kmes_nudge_exit(struct kmes_world* world);

/* -- emit.c ---------------------------------------------------------------------------------- */

extern atomic64_t kmes_dropped_no_cpu;

/* The CPU on which the caller runs, who stays on it; NULL, counted: it came after the module. */
struct kmes_world_cpu* kmes_emit_cpu(void);
/* KMES says something of itself: an event of origin class 1, the payload as printf makes it. */
__printf(2, 3) void kmes_say(const char* type, const char* format, ...);

/* -- attach.c -------------------------------------------------------------------------------- */

/* The world that an open file attaches to, referenced. */
struct kmes_world* kmes_world_of(struct kmes_open* open);
/* The ioctls of these names, with their capability checks; `argument` is the process's. */
int kmes_ioctl_attach(struct kmes_open* open, void __user* argument);
int kmes_ioctl_attach_cpu(struct kmes_open* open, void __user* argument);
int kmes_ioctl_identify(struct kmes_open* open, void __user* argument);

/* -- device.c -------------------------------------------------------------------------------- */

int kmes_device_init(void);
void kmes_device_exit(void);

/* -- test_device.c: a test build only -------------------------------------------------------- */

#ifdef KMES_TEST
/* -ENOTTY for an ioctl that is none of <linux/kmes_test.h>'s. Nothing is locked. */
long kmes_test_ioctl(struct kmes_open* open, unsigned int command, unsigned long argument);
/* The open file goes: its world ends. */
void kmes_test_release(struct kmes_open* open);
#else
static inline long kmes_test_ioctl(struct kmes_open* open, unsigned int command,
                                   unsigned long argument) {
    return -ENOTTY;
}
static inline void kmes_test_release(struct kmes_open* open) {}
#endif

#endif
