/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the files of the module. Only they include it: other modules have
 * kmes_kernel.h, programs have <linux/kmes.h>.
 *
 *   instance  the CPUs of one /dev/kmes. There is the real instance; a test build makes others,
 *             whose CPUs are no processors of the machine.
 *   memory    one buffer: pages, mappings, inode, and the core's `struct kmes_buffer` in them
 *   open      one open file of /dev/kmes
 *
 * The holders of a memory are its instance, while a CPU writes to it, and each open file of it,
 * with the file's mappings. Others are its inode, while that exists, a queued wake (E16), and each
 * caller of kmes_memory_get. The last holder frees it. Each memory holds its instance. All but
 * kmes_memory_get may sleep in kmes_memory_put.
 *
 * Six files call each other in a circle, and both directions are correct. file_system.c, map.c,
 * wake.c, nudge.c and instance.c hold memories, and release them by kmes_memory_put. memory.c calls
 * three of them when it makes a memory. It needs an inode number that no other file has
 * (file_system.c), a slot in the metadata file (wake.c), and a reference to the instance
 * (instance.c). file_system.c calls map.c to count a new open file, and nudge.c to nudge a memory
 * that was swapped out meanwhile. Callbacks would hide the circle and not remove it: a memory holds
 * its instance, and the instance holds its memories.
 *
 * The order of locks, outermost first:
 *   the mmap lock of a process
 *   instance->configuration_lock
 *   the CPU hotplug lock
 *   instance->lock
 *   instance->list_lock
 *   memory->users_lock (spin locks, process context only)
 * An emission takes none of them. No thread waits for a CPU, for memory of a process or for the
 * hotplug lock while it holds instance->lock.
 */
#ifndef KMES_KMOD_INSTANCE_H
#define KMES_KMOD_INSTANCE_H

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

#define KMES_BOOT_CAPACITY_BYTES (256ull << 10) /* 5.1.2: a compiled-in constant */
#define KMES_CPUS_MAX 1024u

struct kmes_instance;

/* One buffer. See above for its holders. */
struct kmes_memory {
    struct kmes_buffer buffer; /* of the core */
    struct kmes_instance* instance;
    refcount_t holders;
    struct list_head in_instance; /* instance->buffers, while it exists */
    u32 cpu;    /* its index in the instance; buffer.shared.cpu_id is first_cpu_id more */
    u32 number; /* position in the order of creation of the instance's buffers, from 0 */
    u32 slot;   /* of its metadata pages in the metadata file */
    u32 data_pages;

    /* 5.1.5: the metadata page, or two (docs/layouts.md); the data pages follow, twice. */
    struct page** pages;        /* kmes_memory_mapped_pages() */
    void* mapping;              /* mapping of the kernel, of all these pages, writable */
    unsigned long inode_number; /* the same for all its fds (E19) */

    /* For `inode` and the two counts, and for the clear of need_wake with the last mapping
     * (E12). */
    spinlock_t users_lock;
    struct inode* inode; /* not referenced: NULL if nothing outside uses it (file_system.c) */
    u32 mappings;        /* areas of processes; a split area counts twice */
    u32 descriptors;     /* open files, including those that only a mapping holds */

    unsigned long is_wake_queued; /* bit 0 */
    struct llist_node wake_node;

    /* Under instance->list_lock. */
    bool is_retired;              /* no CPU writes to it any more */
    unsigned long nudge_due;      /* jiffies; the real instance only */
    unsigned long nudge_interval; /* jiffies */
};

/* One CPU of an instance. */
struct kmes_instance_cpu {
    struct kmes_cpu core;
    struct kmes_platform platform;
    struct kmes_memory* memory; /* the memory that contains core.buffer; under instance->lock */
    struct kmes_instance* instance;
    u32 number;           /* its index */
    u64 longest_pause_ns; /* of emission, by a resize (E18): WRITE_ONCE, by its processor */
};

struct kmes_instance {
    struct kref holders;
    bool is_real; /* CPU i is processor i */
    u32 id;       /* of a test instance */
    u32 cpus;
    u16 first_cpu_id;

    struct mutex configuration_lock; /* one change of the configuration at a time */
    struct mutex lock;               /* for attach, swaps and everything but emission (E14) */
    bool is_boot;        /* 5.1.2: there are no rings. Both locks protect changes of this and
                            `capacity` */
    u64 capacity;        /* of the rings; in the boot phase, of the rings to come */
    u64 max_event_bytes; /* of the emit calls: READ_ONCE, written under configuration_lock */

    spinlock_t list_lock;
    struct list_head buffers; /* of struct kmes_memory: all existing buffers */
    u32 buffers_made;

    atomic64_t wakes_issued;  /* FUTEX_WAKEs */
    atomic64_t threads_woken; /* threads that these wakes have woken */

    /* The injected clock of a test instance. Under the lock. */
    u64 clock_ns;
    u64 clock_step_ns;

    /* Only for the real instance. */
    struct delayed_work nudge;
    unsigned long nudge_at; /* jiffies: when the queued work is due; under list_lock */
    struct kmes_cpu nudger; /* see nudge.c */
    struct kmes_platform nudger_platform;

    struct kmes_instance_cpu* cpu[]; /* `cpus` of them, each on its node */
};

/* The parameters of kmes_instance_make. */
struct kmes_instance_setup {
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
    struct kmes_instance* joined; /* referenced; NULL: the real one */
    void* test;                   /* of a test build: kmod/test_*.c */
    struct kmes_staging* staging; /* memory of emit calls, kept between calls; xchg (device.c) */
};

/* -- instance.c ---------------------------------------------------------------------------------
 */

extern struct kmes_instance* kmes_real_instance;

/* Makes an instance with its first buffers (generation 0 in the boot phase, 1 otherwise), or
 * returns an ERR_PTR. */
struct kmes_instance* kmes_instance_make(const struct kmes_instance_setup* setup);
void kmes_instance_get(struct kmes_instance* instance);
void kmes_instance_put(struct kmes_instance* instance);
/* Ends an instance in which no emission is possible any more: its CPUs release their buffers. The
 * caller still holds the instance. */
void kmes_instance_end(struct kmes_instance* instance);

/* Returns the buffer of each CPU of the instance, referenced, all of one capacity (E14). `memories`
 * has room for instance->cpus. -EAGAIN: the boot phase. -ESHUTDOWN: the instance has ended. */
int kmes_instance_attach(struct kmes_instance* instance, struct kmes_memory** memories,
                         u64* capacity);
/* Returns the current buffer of one CPU, referenced, or an ERR_PTR: the errors above, and -EINVAL
 * if the instance has no such CPU. */
struct kmes_memory* kmes_instance_attach_cpu(struct kmes_instance* instance, u32 cpu);

/* Fills in the counters of one CPU's producer; -EINVAL: no such CPU. Waits for no CPU. _locked:
 * call it under instance->lock; in a test instance also while a reservation is open. */
int kmes_instance_statistics(struct kmes_instance* instance,
                             struct kmes_ioctl_statistics* statistics);
int kmes_instance_statistics_locked(struct kmes_instance* instance,
                                    struct kmes_ioctl_statistics* statistics);
/* As the ioctl: writes at most `slots` of them, and returns how many exist. */
u32 kmes_instance_buffers(struct kmes_instance* instance, struct kmes_buffer_info* infos,
                          u32 slots);

/* -- configure.c ----------------------------------------------------------------------------- */

bool kmes_capacity_is_configurable(u64 bytes);
bool kmes_event_size_is_configurable(u64 bytes);

/* Call it under instance->lock, after a swap to `fresh` has finished. Sets cpu->memory to `fresh`
 * and takes over its reference. The old memory is retired, and the caller now owns its reference.
 */
struct kmes_memory* kmes_instance_swapped(struct kmes_instance_cpu* cpu, struct kmes_memory* fresh);

/* The two ioctls; the caller checks capabilities. 0 in a field leaves a value unchanged. */
int kmes_instance_configure(struct kmes_instance* instance,
                            const struct kmes_ioctl_configure* wanted);
int kmes_instance_registry_available(struct kmes_instance* instance,
                                     const struct kmes_ioctl_configure* wanted);

/* -- memory.c -------------------------------------------------------------------------------- */

/* The initial state of a new buffer of `cpu` (an index). */
struct kmes_memory_setup {
    u64 capacity;
    u64 generation;
    u64 start_pos;
    u32 cpu;
    u32 futex_counter;
};

int kmes_memory_init(void);
void kmes_memory_exit(void);

/* Makes a fresh buffer with one reference, owned by the caller. An ERR_PTR: -ENOMEM, -EINVAL,
 * -ENFILE (no slot), -EINTR (a fatal signal). */
struct kmes_memory* kmes_memory_make(struct kmes_instance* instance,
                                     const struct kmes_memory_setup* setup);
void kmes_memory_get(struct kmes_memory* memory); /* any context */
void kmes_memory_put(struct kmes_memory* memory); /* may sleep */
/* Returns the buffer with that number, referenced, or NULL if it does not exist any more. */
struct kmes_memory* kmes_memory_find(struct kmes_instance* instance, u32 number);

/* The metadata file, for the waker. */
struct file* kmes_metadata_file(void);
/* Serialises changes of its pages. Shmem reads their number without the lock of its writers, which
 * KCSAN reports for two concurrent changes. The holder waits for no other lock. */
extern struct mutex kmes_metadata_file_lock;
u64 kmes_metadata_file_bytes(void);

static inline struct kmes_memory* kmes_memory_of(struct kmes_buffer* buffer) {
    return container_of(buffer, struct kmes_memory, buffer);
}

#define KMES_METADATA_PAGES (KMES_METADATA_BYTES / KMES_PAGE_BYTES)

/* Returns the number of pages of a mapping: the data pages count twice. */
static inline unsigned long kmes_memory_mapped_pages(const struct kmes_memory* memory) {
    return KMES_METADATA_PAGES + 2 * (unsigned long)memory->data_pages;
}

/* Returns the bytes of memory->mapping. */
static inline u64 kmes_memory_bytes(const struct kmes_memory* memory) {
    return kmes_mapping_bytes(KMES_VERSION_1, memory->buffer.capacity);
}

/* -- map.c, file_system.c -------------------------------------------------------------------- */

extern const struct file_operations kmes_buffer_file_operations;
/* Counts a mapping or an open file that comes or goes. */
void kmes_memory_count(struct kmes_memory* memory, int mappings, int descriptors);

int kmes_file_system_init(void);
void kmes_file_system_exit(void);
/* st_dev of all buffers, as a process sees it, and an inode number that no buffer has had. */
u64 kmes_file_system_device(void);
unsigned long kmes_file_system_new_number(void);
/* Returns a new open file of `memory`, O_RDWR, with its own reference, or an ERR_PTR. */
struct file* kmes_memory_open(struct kmes_memory* memory);

/* -- wake.c ---------------------------------------------------------------------------------- */

int kmes_wake_init(void);
void kmes_wake_exit(void);
/* kmes_platform_queue_wake, in any context, also NMI. */
void kmes_wake_queue(struct kmes_memory* memory);
/* Executes FUTEX_WAKE now, and returns the number of woken threads. May sleep. */
long kmes_wake_now(struct kmes_memory* memory);
/* Makes the metadata pages in memory->pages: those of memory->slot in the metadata file. They are
 * small pages, referenced, which a wake finds without memory from now on. -ENOMEM: some may be
 * made, and the others are NULL. */
int kmes_wake_make_pages(struct kmes_memory* memory);
/* Waits until every queued wake has been issued. */
void kmes_wake_settle(void);

/* -- nudge.c --------------------------------------------------------------------------------- */

/* Call it under instance->list_lock, after `memory` was retired, or after a retired one has got its
 * first user. */
void kmes_nudge_begin(struct kmes_memory* memory);
void kmes_nudge_init(struct kmes_instance* instance);
void kmes_nudge_exit(struct kmes_instance* instance);

/* -- emit.c ---------------------------------------------------------------------------------- */

extern atomic64_t kmes_dropped_no_cpu;

/* Returns the CPU of the caller, who stays on it. NULL, counted: the processor came after the
 * module. */
struct kmes_instance_cpu* kmes_emit_cpu(void);
/* Emits an event of KMES about itself: origin class 1, with a payload as of printf. */
__printf(2, 3) void kmes_say(const char* type, const char* format, ...);

/* -- attach.c -------------------------------------------------------------------------------- */

/* Returns the instance that an open file attaches to, referenced. */
struct kmes_instance* kmes_instance_of(struct kmes_open* open);
/* The ioctls of these names, with their capability checks. `argument` is memory of the process. */
int kmes_ioctl_attach(struct kmes_open* open, void __user* argument);
int kmes_ioctl_attach_cpu(struct kmes_open* open, void __user* argument);
int kmes_ioctl_identify(struct kmes_open* open, void __user* argument);

/* -- device.c -------------------------------------------------------------------------------- */

int kmes_device_init(void);
void kmes_device_exit(void);

/* -- test_device.c: a test build only -------------------------------------------------------- */

#ifdef KMES_TEST
/* -ENOTTY for an ioctl that is not in <linux/kmes_test.h>. Call it without locks. */
long kmes_test_ioctl(struct kmes_open* open, unsigned int command, unsigned long argument);
/* The open file is released: its instance ends. */
void kmes_test_release(struct kmes_open* open);
#else
static inline long kmes_test_ioctl(struct kmes_open* open, unsigned int command,
                                   unsigned long argument) {
    return -ENOTTY;
}
static inline void kmes_test_release(struct kmes_open* open) {}
#endif

#endif
