/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kmes/platform.h for the kernel. Only kmes/platform.h includes it.
 *
 * The critical section of a CPU of the real instance is "interrupts off" on that processor. A mark
 * detects an NMI, which can still come (E16). The section takes no lock, so it works in any
 * context, also on PREEMPT_RT. A CPU of a test instance has only the mark. instance->lock
 * serialises its operations, and its critical section may stay open from one ioctl to the next.
 */
#ifndef KMES_KMOD_PLATFORM_KERNEL_H
#define KMES_KMOD_PLATFORM_KERNEL_H

#include <linux/irqflags.h>
#include <linux/ktime.h>

#include "kmes/order.h"
#include "kmes/types.h"

struct kmes_platform {
    bool is_real;
    unsigned is_held;         /* kmes_local_load, kmes_local_store */
    unsigned long interrupts; /* saved by the holder */
    u64* clock_ns;            /* of a test instance */
    u64* clock_step_ns;
};

/* Defined in wake.c, and declared here because the core does not know struct kmes_memory. */
void kmes_platform_queue_wake(struct kmes_platform* platform, struct kmes_buffer* buffer);

/* The fast accessor: the ordinary one waits for the writer of the time, which an NMI may have
 * interrupted. */
static inline __u64 kmes_platform_clock_ns(struct kmes_platform* platform) {
    __u64 now;

    if (KMES_LIKELY(platform->is_real)) return ktime_get_real_fast_ns();
    now = *platform->clock_ns;
    *platform->clock_ns += *platform->clock_step_ns;
    return now;
}

/*
 * An NMI before the mark is set emits completely, between two emissions. An NMI after it is
 * rejected. So only the holder accesses the fields after the mark here, or before the mark is
 * cleared below.
 */
static inline bool kmes_platform_enter(struct kmes_platform* platform) {
    unsigned long interrupts = 0;

    if (KMES_LIKELY(platform->is_real)) local_irq_save(interrupts);
    if (KMES_UNLIKELY(kmes_local_load(&platform->is_held))) {
        if (platform->is_real) local_irq_restore(interrupts);
        return false;
    }
    kmes_local_store(&platform->is_held, 1);
    platform->interrupts = interrupts;
    return true;
}

static inline void kmes_platform_exit(struct kmes_platform* platform) {
    unsigned long interrupts = platform->interrupts;

    kmes_local_store(&platform->is_held, 0);
    if (KMES_LIKELY(platform->is_real)) local_irq_restore(interrupts);
}

#endif
