// SPDX-License-Identifier: GPL-2.0-only
/*
 * Planted bugs: insmod kmes_bugs.ko bug=NAME performs one forbidden action. A test proves that
 * `tools/kmes vm` reports it (kmod/bugs/planted.txt has the kind of the report). Each bug needs a
 * boot of its own: a detector may be off after its first report.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

static char* bug = "";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "name of the bug (kmod/bugs/planted.txt)");

static DEFINE_SPINLOCK(outer_lock);
static DEFINE_SPINLOCK(inner_lock);
static DEFINE_RAW_SPINLOCK(raw_lock);
static DEFINE_MUTEX(first_mutex);
static DEFINE_MUTEX(second_mutex);
static int __rcu* rcu_pointer;

/* Hides a pointer from the compiler, which would report most of these bugs itself. */
static void* hidden(void* pointer) {
    OPTIMIZER_HIDE_VAR(pointer);
    return pointer;
}

static void touch(void* pointer) {
    u8* byte = hidden(pointer);

    WRITE_ONCE(*byte, READ_ONCE(*byte) + 1);
}

static void use_after_free(void) {
    u8* memory = kmalloc(40, GFP_KERNEL);
    u8* kept = hidden(memory);

    kfree(memory);
    touch(kept + 3);
}

static void out_of_bounds(void) {
    u8* memory = kmalloc(40, GFP_KERNEL);

    touch(memory + 40);
    kfree(memory);
}

/* Maps pages twice in a row, like a ring, and accesses one byte beyond the end. */
static void ring_overrun(void) {
    struct page* page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    struct page* twice[] = {page, page};
    u8* mapping = vmap(twice, 2, VM_MAP, PAGE_KERNEL);

    touch(mapping + 2 * PAGE_SIZE - 1);
    touch(mapping + 2 * PAGE_SIZE);
    vunmap(mapping);
    __free_page(page);
}

/* Accesses a mapping after vunmap, as if a CPU wrote to a freed buffer. */
static void ring_after_unmap(void) {
    struct page* page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    u8* mapping = vmap(&page, 1, VM_MAP, PAGE_KERNEL);

    touch(mapping);
    vunmap(mapping);
    touch(mapping);
    __free_page(page);
}

static void page_after_free(void) {
    struct page* page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    u8* memory = page_address(page);

    __free_page(page);
    touch(memory);
}

static void sleep_in_atomic(void) {
    spin_lock(&outer_lock);
    msleep(1);
    spin_unlock(&outer_lock);
}

static void allocate_with_interrupts_off(void) {
    unsigned long flags;
    void* memory;

    local_irq_save(flags);
    memory = hidden(kmalloc(64, GFP_KERNEL));
    local_irq_restore(flags);
    kfree(memory);
}

static void lock_order(void) {
    mutex_lock(&first_mutex);
    mutex_lock(&second_mutex);
    mutex_unlock(&second_mutex);
    mutex_unlock(&first_mutex);
    mutex_lock(&second_mutex);
    mutex_lock(&first_mutex);
    mutex_unlock(&first_mutex);
    mutex_unlock(&second_mutex);
}

static void take_raw(void* unused) {
    raw_spin_lock(&raw_lock);
    raw_spin_unlock(&raw_lock);
}

/* Takes a lock of process context in an interrupt. It deadlocks if the interrupt comes while a
 * process holds the lock. */
static void lock_in_interrupt(void) {
    take_raw(NULL);
    smp_call_function_single(!raw_smp_processor_id(), take_raw, NULL, 1);
}

/* Takes a spin lock, which sleeps on PREEMPT_RT, under a raw spin lock. An emission must not. */
static void spin_lock_in_raw(void) {
    raw_spin_lock(&raw_lock);
    spin_lock(&inner_lock);
    spin_unlock(&inner_lock);
    raw_spin_unlock(&raw_lock);
}

static void rcu_without_lock(void) {
    touch(rcu_dereference(rcu_pointer) ?: (void*)&bug);
}

static void leak(void) {
    int i;

    for (i = 0; i < 10; i++) hidden(kmalloc(333, GFP_KERNEL));
}

static void do_nothing(struct work_struct* work) {}

static void free_active_work(void) {
    struct delayed_work* work = kmalloc(sizeof *work, GFP_KERNEL);

    INIT_DELAYED_WORK(work, do_nothing);
    schedule_delayed_work(work, 60 * HZ);
    kfree(work);
}

static void refcount_underflow(void) {
    refcount_t count = REFCOUNT_INIT(1);

    refcount_dec(&count);
    refcount_dec(&count);
}

static void list_corruption(void) {
    LIST_HEAD(list);
    LIST_HEAD(entry);

    list_add(&entry, &list);
    list_del(&entry);
    list_del(&entry);
}

static void null_pointer(void) {
    touch(NULL);
}

static void warning(void) {
    WARN_ON(1);
}

static void reference_kept(void) {
    __module_get(THIS_MODULE);
}

static void endless_loop(void) {
    while (!READ_ONCE(rcu_pointer)) cpu_relax();
}

static u64 raced;

static int race_thread(void* other) {
    int i;

    while (!kthread_should_stop()) {
        for (i = 0; i < 10000; i++) {
            raced++;
            barrier();
        }
        cond_resched();
    }
    return 0;
}

static void race(void) {
    struct task_struct* threads[2];
    int i;

    for (i = 0; i < 2; i++) threads[i] = kthread_run(race_thread, NULL, "kmes_race/%d", i);
    msleep(5000);
    for (i = 0; i < 2; i++) kthread_stop(threads[i]);
}

static const struct {
    const char* name;
    void (*plant)(void);
} bugs[] = {
    {"use-after-free", use_after_free},
    {"out-of-bounds", out_of_bounds},
    {"ring-overrun", ring_overrun},
    {"ring-after-unmap", ring_after_unmap},
    {"page-after-free", page_after_free},
    {"sleep-in-atomic", sleep_in_atomic},
    {"allocate-with-interrupts-off", allocate_with_interrupts_off},
    {"lock-order", lock_order},
    {"lock-in-interrupt", lock_in_interrupt},
    {"spin-lock-in-raw", spin_lock_in_raw},
    {"rcu-without-lock", rcu_without_lock},
    {"leak", leak},
    {"free-active-work", free_active_work},
    {"refcount-underflow", refcount_underflow},
    {"list-corruption", list_corruption},
    {"null-pointer", null_pointer},
    {"warning", warning},
    {"reference-kept", reference_kept},
    {"endless-loop", endless_loop},
    {"race", race},
};

static int __init load(void) {
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(bugs); i++) {
        if (strcmp(bug, bugs[i].name)) continue;
        bugs[i].plant();
        return 0;
    }
    pr_err("no such bug: '%s'\n", bug);
    return -EINVAL;
}

static void __exit unload(void) {}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("KMES: planted bugs, for virtual machines");
MODULE_LICENSE("GPL");
