/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The critical section of one CPU's producer (E16), shared by the writer and the swap, and by
 * nobody else. The platform keeps every other context of the CPU out, but for one that cannot be
 * kept out (an NMI, a signal handler): that one finds `inside` set, counts itself and writes
 * nothing.
 */
#ifndef KMES_GUARD_H
#define KMES_GUARD_H

#include "kmes/order.h"
#include "kmes/ring.h"

/* False: nested inside the same CPU's critical section; nothing was entered. */
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

/* An emission that was turned away by kmes_guard_enter: its sequence number is used before the next
 * one is given, so that the gap shows (E16). */
static inline void kmes_guard_count_nested(struct kmes_cpu* cpu) {
    kmes_local_add(&cpu->nested_missed, 1);
}

/* Inside: uses the numbers of those that were turned away. */
static inline void kmes_guard_settle_nested(struct kmes_cpu* cpu) {
    unsigned missed = kmes_local_load(&cpu->nested_missed);

    if (KMES_LIKELY(!missed)) return;
    kmes_local_add(&cpu->nested_missed, 0u - missed);
    cpu->sequence += missed;
    cpu->statistics.dropped_nested += missed;
}

/* Inside: makes the unpublished part of the buffer visible (5.1.7 step 8). Defined in producer.c.
 */
void kmes_publish(struct kmes_buffer* buffer);

/* Inside: a size in the ring is impossible (E13): publishes what is pending, empties the CPU's
 * buffer and counts. Defined in producer.c. */
void kmes_empty_corrupt(struct kmes_cpu* cpu);

#endif
