// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wakes consumers (5.1.7 step 9): a FUTEX_WAKE, shared (E17), on the metadata page of a buffer,
 * requested in any context.
 *
 *   kmes_wake_queue   any context: adds the buffer, referenced (E16), to a list of this processor,
 *                     and raises an irq_work
 *   irq_work          hard interrupt, soon after interrupts are on again: marks the list, and wakes
 *                     the waker
 *   the waker         a kernel thread: takes the marked lists, and calls do_futex for each buffer
 *
 * A processor that dies or starts executes code while it is not online. An irq_work that is raised
 * there may never run: its self-IPI is lost, and the work stays pending. kmes_wake_queue therefore
 * marks the list itself on such a processor. It cannot wake the waker in every context. A callback
 * of CPU hotplug wakes the waker after the processor is dead or online.
 *
 * The kernel exports no function that wakes a futex. A kprobe that is never armed finds do_futex,
 * and a static call calls it, which is correct under IBT and CFI too. do_futex takes an address of
 * a process. The waker therefore has an mm, that of the process that loads the module, in which the
 * metadata file is mapped. The mm is released at unload.
 *
 * The mapping is writable. For a futex the kernel first requests a writable page; if that fails, it
 * takes a slow path and tries again. The mapping never has a huge page, even if shmem is configured
 * to use them always: one page of it could not be freed alone. So the pages of the metadata file
 * are made by this mapping.
 */
#include <linux/completion.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h> /* futex.h of 6.12 needs it */

#include <linux/futex.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/static_call.h>
#include <linux/version.h>
#include <linux/wait.h>

#include "instance.h"
#include "module.h"

#define KMES_IS_QUEUED 0 /* bit of kmes_memory.is_wake_queued */

/* A request to the waker. Its sender waits until it is done. */
struct wake_request {
    struct llist_node node;
    struct completion done;
    struct kmes_memory* memory;
    long result;
};

/* The wakes that were queued on one processor. No processor writes to the data of another one. */
struct wake_cpu {
    struct llist_head queue; /* of kmes_memory.wake_node */
    struct irq_work raise;
    atomic64_t queued; /* wakes so far */
    atomic64_t issued; /* by the waker */
};

DEFINE_STATIC_CALL_NULL(kmes_do_futex, do_futex);

static DEFINE_PER_CPU_ALIGNED(struct wake_cpu, wake_cpus);
static struct cpumask marked; /* processors whose list may be non-empty */
static LLIST_HEAD(requests);  /* of wake_request.node */
static struct task_struct* waker;
static struct mm_struct* waker_mm;
static unsigned long waker_address; /* of the metadata file, in waker_mm */
static DECLARE_WAIT_QUEUE_HEAD(settled);
static int state_dead; /* of CPU hotplug: a processor is dead */
static int state_online;

static void raise(struct irq_work* work) {
    cpumask_set_cpu(smp_processor_id(), &marked);
    wake_up_process(waker);
}

/* Runs on a processor that is online. The list of `number` may be marked since that processor was
 * not online. The hotplug code orders the mark before this call. */
static int wake_waker(unsigned number) {
    wake_up_process(waker);
    return 0;
}

/* Called in the critical section of the CPU that wrote to the buffer. Its reference keeps the
 * buffer until here. The mark is a full barrier: see issue_queued. */
void kmes_wake_queue(struct kmes_memory* memory) {
    struct wake_cpu* cpu;

    if (test_and_set_bit(KMES_IS_QUEUED, &memory->is_wake_queued)) return;
    kmes_memory_get(memory);
    /* A nudge comes without a critical section. It must not migrate before the irq_work is raised,
     * which marks the list of its processor. Without preemption the processor also stays online, or
     * stays not online. A dying processor still runs each irq_work that it raised before. */
    preempt_disable_notrace();
    cpu = raw_cpu_ptr(&wake_cpus);
    atomic64_inc(&cpu->queued);
    llist_add(&memory->wake_node, &cpu->queue);
    if (likely(cpu_online(raw_smp_processor_id())))
        irq_work_queue(&cpu->raise);
    else
        cpumask_set_cpu(raw_smp_processor_id(), &marked);
    preempt_enable_notrace();
}

void kmes_platform_queue_wake(struct kmes_platform* platform, struct kmes_buffer* buffer) {
    kmes_wake_queue(kmes_memory_of(buffer));
}

/* Returns the address of the first metadata page in waker_mm. */
static unsigned long address_of(const struct kmes_memory* memory) {
    return waker_address + (unsigned long)memory->slot * KMES_METADATA_BYTES;
}

static long wake(struct kmes_memory* memory) {
    unsigned long word = address_of(memory) + offsetof(struct kmes_metadata_v1, futex_counter);

    return static_call(kmes_do_futex)((u32 __user*)word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0, 0);
}

static long issue(struct kmes_memory* memory) {
    long woken = wake(memory);

    atomic64_inc(&memory->instance->wakes_issued);
    if (woken > 0) atomic64_add(woken, &memory->instance->threads_woken);
    if (woken < 0) pr_err_ratelimited("FUTEX_WAKE: error %ld\n", -woken);
    return woken;
}

/*
 * The mark is cleared before the wake is issued; both are full barriers. A producer that finds the
 * mark still set has stored its counter before this wake checks for sleepers. A consumer that goes
 * to sleep after that finds the new counter.
 */
static void issue_queued(struct wake_cpu* cpu) {
    struct llist_node* list = llist_reverse_order(llist_del_all(&cpu->queue));
    struct kmes_memory *memory, *next;

    llist_for_each_entry_safe(memory, next, list, wake_node) {
        test_and_clear_bit(KMES_IS_QUEUED, &memory->is_wake_queued);
        issue(memory);
        atomic64_inc(&cpu->issued);
        kmes_memory_put(memory);
        cond_resched();
    }
    if (list) wake_up_all(&settled);
}

/* Reads one word of `marked`, once. The loops of <linux/cpumask.h> use plain reads, and irq_works
 * set bits meanwhile. */
static unsigned long marked_word(unsigned number) {
    return READ_ONCE(cpumask_bits(&marked)[number]);
}

static bool is_any_marked(void) {
    unsigned number;

    for (number = 0; number < BITS_TO_LONGS(nr_cpu_ids); number++)
        if (marked_word(number)) return true;
    return false;
}

/* The mark is cleared before the list is taken: a later addition marks the list again. Both are
 * full barriers here, and llist_add is one before the mark is set. */
static void issue_marked(void) {
    unsigned number;

    for (number = 0; number < BITS_TO_LONGS(nr_cpu_ids); number++) {
        unsigned long word = marked_word(number);
        unsigned bit;

        for_each_set_bit(bit, &word, BITS_PER_LONG) {
            int cpu = number * BITS_PER_LONG + bit;

            if (cpumask_test_and_clear_cpu(cpu, &marked))
                issue_queued(per_cpu_ptr(&wake_cpus, cpu));
        }
    }
}

static void serve_requests(void) {
    struct wake_request *request, *next;

    llist_for_each_entry_safe(request, next, llist_del_all(&requests), node) {
        request->result = issue(request->memory);
        complete(&request->done);
    }
}

/* After the loader has exited, only this module's area in its mm is still needed. */
static bool is_loader_there(void) {
    return atomic_read(&waker_mm->mm_users) > 1;
}

static void unmap_loader(void) {
    unsigned long end = waker_address + kmes_metadata_file_bytes();

    vm_munmap(0, waker_address);
    vm_munmap(end, TASK_SIZE - end);
}

static int run_waker(void* unused) {
    bool has_loader = true;

    kthread_use_mm(waker_mm);
    for (;;) {
        set_current_state(TASK_IDLE);
        if (!is_any_marked() && llist_empty(&requests)) {
            if (kthread_should_stop()) break;
            schedule();
        }
        __set_current_state(TASK_RUNNING);
        if (has_loader && !is_loader_there()) {
            unmap_loader();
            has_loader = false;
        }
        issue_marked();
        serve_requests();
    }
    __set_current_state(TASK_RUNNING);
    vm_munmap(waker_address, kmes_metadata_file_bytes()); /* the loader may still run */
    kthread_unuse_mm(waker_mm);
    return 0;
}

long kmes_wake_now(struct kmes_memory* memory) {
    struct wake_request request = {.memory = memory};

    init_completion(&request.done);
    llist_add(&request.node, &requests);
    wake_up_process(waker);
    wait_for_completion(&request.done);
    return request.result;
}

static long get_page_of_waker(unsigned long address, struct page** page) {
    long pages;

    mmap_read_lock(waker_mm);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
    pages = get_user_pages_remote(waker_mm, address, 1, FOLL_WRITE, page, NULL);
#else
    pages = get_user_pages_remote(waker_mm, address, 1, FOLL_WRITE, page, NULL, NULL);
#endif
    mmap_read_unlock(waker_mm);
    return pages;
}

static int make_page(struct kmes_memory* memory, u32 index) {
    struct page* page;
    long pages;

    mutex_lock(&kmes_metadata_file_lock);
    pages = get_page_of_waker(address_of(memory) + index * PAGE_SIZE, &page);
    mutex_unlock(&kmes_metadata_file_lock);
    if (pages != 1) return -ENOMEM;
    if (PageCompound(page)) {
        pr_err_ratelimited("a metadata page is part of a huge page\n");
        put_page(page);
        return -ENOMEM;
    }
    memory->pages[index] = page;
    return 0;
}

/* From then on a wake needs no memory: the page does not move, and the mapping contains it. The
 * caller does it, not the waker: where memory is short this may take long, and nobody would be
 * woken meanwhile. */
int kmes_wake_make_pages(struct kmes_memory* memory) {
    int error = 0;
    u32 i;

    for (i = 0; i < KMES_METADATA_PAGES && !error; i++) error = make_page(memory, i);
    return error;
}

void kmes_wake_settle(void) {
    int number;

    for_each_possible_cpu(number) {
        struct wake_cpu* cpu = per_cpu_ptr(&wake_cpus, number);
        s64 until = atomic64_read(&cpu->queued);

        wait_event(settled, atomic64_read(&cpu->issued) >= until);
    }
}

static int find_do_futex(void) {
    struct kprobe probe = {.symbol_name = "do_futex", .flags = KPROBE_FLAG_DISABLED};
    int error = register_kprobe(&probe);

    if (error) {
        pr_err(
            "not loaded: do_futex cannot be found (needs CONFIG_KPROBES and CONFIG_KALLSYMS; "
            "error %d), so nobody could be woken\n",
            -error);
        return error;
    }
    /* Under IBT the address is after the ENDBR of the function. Only a direct call may use it, and
     * a static call is a direct call. */
    static_call_update(kmes_do_futex, (typeof(&do_futex))(unsigned long)probe.addr);
    unregister_kprobe(&probe);
    return 0;
}

/* Forks of the loader do not inherit the mapping, its core dumps omit it, and it gets only small
 * pages. */
static void hide_waker_area(void) {
    const vm_flags_t flags = VM_DONTCOPY | VM_DONTDUMP | VM_NOHUGEPAGE;
    struct vm_area_struct* area;

    mmap_write_lock(waker_mm);
    area = find_vma(waker_mm, waker_address);
    if (area && area->vm_start == waker_address) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
        vm_flags_set(area, flags);
#else
        area->vm_flags |= flags;
#endif
    }
    mmap_write_unlock(waker_mm);
}

static int adopt_mm(void) {
    waker_mm = get_task_mm(current);
    if (!waker_mm) {
        pr_err("not loaded: it has to be loaded by a process, whose mm the waker takes\n");
        return -EINVAL;
    }
    waker_address = vm_mmap(kmes_metadata_file(), 0, kmes_metadata_file_bytes(),
                            PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    if (IS_ERR_VALUE(waker_address)) {
        mmput(waker_mm);
        return (int)waker_address;
    }
    hide_waker_area();
    return 0;
}

/* The waker exists, and no emission is possible yet. Call it without locks: it takes the CPU
 * hotplug lock. */
static int follow_cpus(void) {
    state_dead = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "kmes:dead", NULL, wake_waker);
    if (state_dead < 0) return state_dead;
    state_online = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "kmes:online", wake_waker, NULL);
    if (state_online >= 0) return 0;
    cpuhp_remove_state_nocalls(state_dead);
    return state_online;
}

static int start_waker(void) {
    int error;

    waker = kthread_run(run_waker, NULL, "kmes_waker");
    if (IS_ERR(waker)) return PTR_ERR(waker);
    /* The scheduler moves a real-time task away from a processor that another one monopolises. An
     * ordinary task can remain there, and with it every wake of every CPU. */
    sched_set_fifo_low(waker);
    error = follow_cpus();
    if (error) kthread_stop(waker);
    return error;
}

int kmes_wake_init(void) {
    int error = find_do_futex();
    int cpu;

    if (!error) error = adopt_mm();
    if (error) return error;
    for_each_possible_cpu(cpu) {
        init_llist_head(&per_cpu(wake_cpus, cpu).queue);
        per_cpu(wake_cpus, cpu).raise = IRQ_WORK_INIT_HARD(raise);
    }
    error = start_waker();
    if (error) mmput(waker_mm);
    return error;
}

/* No emission is possible any more. Queued wakes are still issued: the waker stops with empty
 * lists. A callback of CPU hotplug has returned before its state is removed, so the waker exists
 * until then. Call it without locks. */
void kmes_wake_exit(void) {
    int cpu;

    cpuhp_remove_state_nocalls(state_online);
    cpuhp_remove_state_nocalls(state_dead);
    for_each_possible_cpu(cpu) irq_work_sync(&per_cpu(wake_cpus, cpu).raise);
    kthread_stop(waker);
    mmput(waker_mm);
}
