// SPDX-License-Identifier: GPL-2.0-only
/*
 * Emits from all contexts on all CPUs at the same time, with the calls of kmes_kernel.h. The
 * contexts are a thread (events and batches), an hrtimer in softirq, an hrtimer in hard interrupt,
 * and NMIs that the threads send to each other. Counts the results of the calls. A consumer
 * (kmod/vm/tests) compares the counts with the events that it reads.
 *
 *   insmod kmes_load.ko events=TASK,SOFTIRQ,HARDIRQ,NMI     numbers of events on each CPU
 *   cat /sys/module/kmes_load/parameters/running            number of CPUs that still emit
 *   cat /sys/module/kmes_load/parameters/counts             a line for each CPU and context:
 *                                                           cpu context emitted refused failed
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/version.h>

#include <asm/apic.h>
#include <asm/nmi.h>

#include "kmes_kernel.h"

enum context { TASK, SOFTIRQ, HARDIRQ, NMI, CONTEXTS };
static const char* const context_names[] = {"task", "softirq", "hardirq", "nmi"};

static uint events[CONTEXTS] = {20000, 1500, 4000, 2000};
module_param_array(events, uint, NULL, 0444);
MODULE_PARM_DESC(events, "numbers of events on each CPU: task, softirq, hardirq, nmi");
static uint period_us = 300;
module_param(period_us, uint, 0444);
MODULE_PARM_DESC(period_us, "period of the two timers in microseconds");

/* The payload of an event; kmod/vm/tests/load.cc has the same structure. */
struct load_payload {
    u64 number; /* number of the event among the emitted ones of this CPU and context */
    u32 context;
    u32 cpu;
    u8 filler[16]; /* each byte is the lowest byte of `number` */
};

/* Only the context writes it, on its CPU; any thread may read it. */
struct load_count {
    u64 emitted;
    u64 refused; /* -EBUSY: from inside an emission (E16) */
    u64 failed;
};

struct load_cpu {
    struct load_count counts[CONTEXTS];
    struct hrtimer timers[CONTEXTS]; /* of SOFTIRQ and HARDIRQ */
    struct task_struct* thread;
    bool is_nmi_wanted;
    bool has_timers;
    bool is_done;
};

static DEFINE_PER_CPU(struct load_cpu, load_cpus);

static void count(struct load_count* counts, int error) {
    u64* counter = !error ? &counts->emitted : error == -EBUSY ? &counts->refused : &counts->failed;

    WRITE_ONCE(*counter, *counter + 1);
}

static u64 tries_of(const struct load_count* counts) {
    return READ_ONCE(counts->emitted) + READ_ONCE(counts->refused) + READ_ONCE(counts->failed);
}

static void fill(struct load_payload* payload, enum context context, u64 number) {
    payload->number = number;
    payload->context = context;
    payload->cpu = raw_smp_processor_id();
    memset(payload->filler, (u8)number, sizeof payload->filler);
}

/* Runs on the CPU of these counters. The caller prevents migration. */
static void emit(struct load_cpu* cpu, enum context context) {
    struct load_count* counts = &cpu->counts[context];
    const char* name = context_names[context];
    struct load_payload payload;

    fill(&payload, context, counts->emitted);
    count(counts, kmes_emit_kernel(name, strlen(name), &payload, sizeof payload, 0));
}

static void emit_batch(struct load_cpu* cpu) {
    struct load_count* counts = &cpu->counts[TASK];
    struct kmes_kernel_batch batch;
    struct load_payload payload;
    int i;

    kmes_kernel_batch_begin(&batch);
    for (i = 0; i < 8; i++) {
        fill(&payload, TASK, counts->emitted);
        count(counts,
              kmes_kernel_batch_add(&batch, context_names[TASK], 4, &payload, sizeof payload, 0));
    }
    kmes_kernel_batch_end(&batch);
}

static enum hrtimer_restart on_timer(struct load_cpu* cpu, enum context context) {
    emit(cpu, context);
    if (tries_of(&cpu->counts[context]) >= events[context]) return HRTIMER_NORESTART;
    hrtimer_forward_now(&cpu->timers[context], ns_to_ktime(period_us * 1000ull));
    return HRTIMER_RESTART;
}

static enum hrtimer_restart on_soft_timer(struct hrtimer* timer) {
    return on_timer(container_of(timer, struct load_cpu, timers[SOFTIRQ]), SOFTIRQ);
}

static enum hrtimer_restart on_hard_timer(struct hrtimer* timer) {
    return on_timer(container_of(timer, struct load_cpu, timers[HARDIRQ]), HARDIRQ);
}

static int on_nmi(unsigned int command, struct pt_regs* registers) {
    struct load_cpu* cpu = this_cpu_ptr(&load_cpus);

    if (!READ_ONCE(cpu->is_nmi_wanted)) return NMI_DONE;
    WRITE_ONCE(cpu->is_nmi_wanted, false);
    emit(cpu, NMI);
    return NMI_HANDLED;
}

/* Sends an NMI to the next CPU. */
static void send_nmi(int from) {
    int to = cpumask_next(from, cpu_online_mask);
    struct load_cpu* cpu;

    if (to >= nr_cpu_ids) to = cpumask_first(cpu_online_mask);
    cpu = per_cpu_ptr(&load_cpus, to);
    if (READ_ONCE(cpu->is_nmi_wanted) || tries_of(&cpu->counts[NMI]) >= events[NMI]) return;
    WRITE_ONCE(cpu->is_nmi_wanted, true);
    apic->send_IPI_mask(cpumask_of(to), NMI_VECTOR);
}

static void start_timers(struct load_cpu* cpu) {
    ktime_t period = ns_to_ktime(period_us * 1000ull);

    if (events[SOFTIRQ]) hrtimer_start(&cpu->timers[SOFTIRQ], period, HRTIMER_MODE_REL_PINNED_SOFT);
    if (events[HARDIRQ]) hrtimer_start(&cpu->timers[HARDIRQ], period, HRTIMER_MODE_REL_PINNED_HARD);
}

static bool is_done(const struct load_cpu* cpu) {
    int context;

    for (context = 0; context < CONTEXTS; context++)
        if (tries_of(&cpu->counts[context]) < events[context]) return false;
    return true;
}

/* Bound to its CPU. */
static int load_thread(void* argument) {
    struct load_cpu* cpu = argument;
    u64 turn;

    start_timers(cpu);
    for (turn = 0; !kthread_should_stop() && !is_done(cpu); turn++) {
        if (tries_of(&cpu->counts[TASK]) >= events[TASK]) {
            usleep_range(100, 200);
        } else {
            preempt_disable();
            if (turn % 16)
                emit(cpu, TASK);
            else
                emit_batch(cpu);
            preempt_enable();
        }
        if (turn % 4 == 0) send_nmi(raw_smp_processor_id());
        cond_resched();
    }
    WRITE_ONCE(cpu->is_done, true);
    /* The next CPU may still need NMIs. No other CPU sends to it. */
    while (!kthread_should_stop()) {
        send_nmi(raw_smp_processor_id());
        usleep_range(1000, 2000);
    }
    return 0;
}

static int get_running(char* text, const struct kernel_param* parameter) {
    int number, running = 0;

    for_each_online_cpu(number) running += !READ_ONCE(per_cpu_ptr(&load_cpus, number)->is_done);
    return sysfs_emit(text, "%d\n", running);
}

static int get_counts(char* text, const struct kernel_param* parameter) {
    int number, context, bytes = 0;

    for_each_online_cpu(number) {
        for (context = 0; context < CONTEXTS; context++) {
            const struct load_count* counts = &per_cpu_ptr(&load_cpus, number)->counts[context];

            bytes += sysfs_emit_at(text, bytes, "%d %s %llu %llu %llu\n", number,
                                   context_names[context], READ_ONCE(counts->emitted),
                                   READ_ONCE(counts->refused), READ_ONCE(counts->failed));
        }
    }
    return bytes;
}

static const struct kernel_param_ops running_operations = {.get = get_running};
static const struct kernel_param_ops counts_operations = {.get = get_counts};
module_param_cb(running, &running_operations, NULL, 0444);
module_param_cb(counts, &counts_operations, NULL, 0444);

static void stop(void) {
    int number;

    for_each_possible_cpu(number) {
        struct load_cpu* cpu = per_cpu_ptr(&load_cpus, number);

        if (cpu->thread) kthread_stop(cpu->thread);
        if (!cpu->has_timers) continue;
        hrtimer_cancel(&cpu->timers[SOFTIRQ]);
        hrtimer_cancel(&cpu->timers[HARDIRQ]);
    }
    unregister_nmi_handler(NMI_LOCAL, "kmes_load");
}

static void set_up_timer(struct hrtimer* timer, enum hrtimer_restart (*function)(struct hrtimer*),
                         enum hrtimer_mode mode) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
    hrtimer_setup(timer, function, CLOCK_MONOTONIC, mode);
#else
    hrtimer_init(timer, CLOCK_MONOTONIC, mode);
    timer->function = function;
#endif
}

static int __init load(void) {
    int number, error = register_nmi_handler(NMI_LOCAL, on_nmi, 0, "kmes_load");

    if (error) return error;
    for_each_online_cpu(number) {
        struct load_cpu* cpu = per_cpu_ptr(&load_cpus, number);
        struct task_struct* thread;

        set_up_timer(&cpu->timers[SOFTIRQ], on_soft_timer, HRTIMER_MODE_REL_PINNED_SOFT);
        set_up_timer(&cpu->timers[HARDIRQ], on_hard_timer, HRTIMER_MODE_REL_PINNED_HARD);
        cpu->has_timers = true;
        thread = kthread_create(load_thread, cpu, "kmes_load/%d", number);
        if (IS_ERR(thread)) {
            stop();
            return PTR_ERR(thread);
        }
        kthread_bind(thread, number);
        cpu->thread = thread;
    }
    for_each_online_cpu(number) wake_up_process(per_cpu_ptr(&load_cpus, number)->thread);
    return 0;
}

static void __exit unload(void) {
    stop();
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("KMES: emits from all contexts, for tests in virtual machines");
MODULE_LICENSE("GPL");
