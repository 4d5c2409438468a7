/* SPDX-License-Identifier: MIT */
/*
 * Included before every file of the core in //props/threads:core_droppable. The fences are those
 * that ship, but a test can leave some out while it runs. Every fence is in an accessor of
 * kmes/user/order_plain.h, which knows its label. Knows nothing else of the core.
 */
#ifndef KMES_PROPS_THREADS_DROPPABLE_FENCE_H_
#define KMES_PROPS_THREADS_DROPPABLE_FENCE_H_

#ifdef __cplusplus
extern "C" {
#endif

/* One bit for each label (1 << KMES_ORDER_WAKE_FENCE): these fences are left out. Set it only
 * while no other thread is in the core. */
extern unsigned long long kmes_dropped_fences;

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
#define __atomic_thread_fence(order) \
    ((kmes_dropped_fences >> (unsigned)label & 1) ? (void)0 : __atomic_thread_fence(order))
#endif

#endif
