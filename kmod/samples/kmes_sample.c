// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sample module that emits an event from a timer (a hard interrupt), and one at each call of the
 * kernel function `symbol` (from a kprobe, in the context of the call). Needs kmes.ko.
 *
 *   insmod kmes_sample.ko period_ms=100 symbol=do_sys_openat2
 */
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/version.h>

#include "kmes_kernel.h"

#define SAMPLE_ORIGIN 2 /* KACS: an emitter in the kernel that is not KMES itself */

static unsigned period_ms = 1000;
module_param(period_ms, uint, 0444);
MODULE_PARM_DESC(period_ms, "milliseconds between two events sample.tick, at least 1 (1000)");

static char* symbol = "";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "emit an event sample.call at each call of this function (none)");

static void emit(const char* type, const void* payload, u32 bytes) {
    /* The error can be ignored: KMES counts a dropped event, and consumers see a gap. */
    (void)kmes_emit_kernel(type, (u16)strlen(type), payload, bytes, SAMPLE_ORIGIN);
}

static enum hrtimer_restart tick(struct hrtimer* timer) {
    static u64 ticks;

    ticks++;
    emit("sample.tick", &ticks, sizeof(ticks));
    hrtimer_forward_now(timer, ms_to_ktime(period_ms));
    return HRTIMER_RESTART;
}

static int called(struct kprobe* probe, struct pt_regs* registers) {
    emit("sample.call", current->comm, (u32)strnlen(current->comm, TASK_COMM_LEN));
    return 0;
}

static struct hrtimer timer;
static struct kprobe probe = {.pre_handler = called};

static void init_timer(void) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
    hrtimer_setup(&timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
    hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
    timer.function = tick;
#endif
}

static int __init load(void) {
    int error;

    if (period_ms == 0) return -EINVAL;
    if (*symbol) {
        probe.symbol_name = symbol;
        error = register_kprobe(&probe);
        if (error) return error;
    }
    init_timer();
    hrtimer_start(&timer, ms_to_ktime(period_ms), HRTIMER_MODE_REL_HARD);
    return 0;
}

static void __exit unload(void) {
    hrtimer_cancel(&timer);
    if (*symbol) unregister_kprobe(&probe);
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("A sample emitter of KMES events");
MODULE_LICENSE("GPL");
