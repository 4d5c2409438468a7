/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The critical section of one CPU's producer (E16). Only the writer and the swap use it. The
 * platform excludes every other context of the CPU, except those that cannot be excluded (an NMI, a
 * signal handler). Such a context finds `inside` set, increments a counter and writes nothing.
 */
#ifndef KMES_GUARD_H
#define KMES_GUARD_H

#include "kmes/order.h"
#include "kmes/ring.h"

/* False: the call is nested in the same CPU's critical section, and has not entered it. */
static inline bool kmes_guard_enter(struct kmes_cpu* cpu) {
    if (!kmes_platform_enter(cpu->platform)) return false;
    if (kmes_local_load(&cpu->inside)) {
        kmes_platform_exit(cpu->platform);
        return false;
    }
    kmes_local_store(&cpu->inside, 1);
    return true;
}

static inline void kmes_guard_exit(struct kmes_cpu* cpu) {
    kmes_local_store(&cpu->inside, 0);
    kmes_platform_exit(cpu->platform);
}

/* Counts an emission that kmes_guard_enter rejected. Its sequence number is used before the next
 * one is assigned, so that the gap is visible (E16). */
static inline void kmes_guard_count_nested(struct kmes_cpu* cpu) {
    kmes_local_add(&cpu->nested_missed, 1);
}

/* Inside: uses the sequence numbers of the rejected emissions. */
static inline void kmes_guard_settle_nested(struct kmes_cpu* cpu) {
    unsigned missed = kmes_local_load(&cpu->nested_missed);

    if (KMES_LIKELY(!missed)) return;
    kmes_local_add(&cpu->nested_missed, 0u - missed);
    cpu->sequence += missed;
    cpu->statistics.dropped_nested += missed;
}

/* Inside: publishes the unpublished part of the buffer (5.1.7 step 8). Defined in producer.c. */
void kmes_publish(struct kmes_buffer* buffer);

/* Inside, after an impossible size in the ring (E13): publishes the pending events, empties the
 * CPU's buffer and counts it. Defined in producer.c. */
void kmes_empty_corrupt(struct kmes_cpu* cpu);

#endif
