/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The asymmetric barrier between processes: membarrier(2), GLOBAL_EXPEDITED. A producer registers,
 * and leaves out its full fence (WAKE_FENCE_LIGHT); a consumer calls the barrier before it sleeps
 * (SLEEP_BARRIER in kmes/order.h). Both run on one kernel.
 */
#ifndef KMES_USER_MEMBARRIER_H
#define KMES_USER_MEMBARRIER_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/*
 * From now on this process takes part in kmes_membarrier, until it executes another program. 0;
 * -ENOSYS: the kernel has no such barrier; -EPERM or another error of a system call filter.
 */
int kmes_membarrier_register(void);

/*
 * Upon return, every thread that runs in a registered process has executed a full fence since the
 * call. 0; else as above, or -ENOMEM: there was no barrier.
 */
int kmes_membarrier(void);

KMES_EXTERN_C_END

#endif
