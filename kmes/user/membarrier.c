// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * See membarrier.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/membarrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A kernel that has the system call, but not this command, returns EINVAL. */
static int membarrier(int command) {
    if (syscall(SYS_membarrier, command, 0, 0) >= 0) return 0;
    return errno == EINVAL ? -ENOSYS : -errno;
}

int kmes_membarrier_register(void) {
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int kmes_membarrier(void) {
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
