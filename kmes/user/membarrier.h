/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The asymmetric barrier between processes: membarrier(2), GLOBAL_EXPEDITED. A producer registers,
 * and omits its full fence (WAKE_FENCE_LIGHT). A consumer calls the barrier before it sleeps
 * (SLEEP_BARRIER in kmes/order.h). Both run on one kernel.
 */
#ifndef KMES_USER_MEMBARRIER_H
#define KMES_USER_MEMBARRIER_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/*
 * From now on kmes_membarrier reaches this process, until it executes another program. Returns 0,
 * -ENOSYS if the kernel has no such barrier, or -EPERM or another error of a system call filter.
 */
int kmes_membarrier_register(void);

/*
 * After the return, every thread that runs in a registered process has executed a full fence since
 * the call. Returns 0, an error as above, or -ENOMEM. After an error there was no barrier.
 */
int kmes_membarrier(void);

KMES_EXTERN_C_END

#endif
