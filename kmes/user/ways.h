/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rule of libkmes.h that selects the way of a call. It knows no particular call.
 */
#ifndef KMES_USER_WAYS_H
#define KMES_USER_WAYS_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/* One call by each of the three ways. A function returns -ENOSYS if its way does not exist. -EPERM
 * may come from a filter around a container. Any other result is the answer. */
struct kmes_ways {
    int (*by_system_call)(void* call);
    int (*by_device)(void* call);
    int (*by_socket)(void* call);
};

/*
 * Returns the answer of the first way that has one. If KMES_SOCKET names a socket, that is the only
 * way. Otherwise returns -EPERM if a way returned it and none answered, or -ENOSYS.
 */
int kmes_call_by(const struct kmes_ways* ways, void* call);

/* Returns the value of KMES_SOCKET. NULL if it is unset, empty, or not trusted, because the program
 * has more privileges than the process that started it. */
const char* kmes_named_socket(void);

KMES_EXTERN_C_END

#endif
