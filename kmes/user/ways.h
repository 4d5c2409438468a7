/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one rule of libkmes.h: which way a call goes. Knows no call.
 */
#ifndef KMES_USER_WAYS_H
#define KMES_USER_WAYS_H

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

/* One call by each of the three ways. A function returns -ENOSYS where its way is not there; -EPERM
 * may be the word of a filter around a container. Any other result is the answer. */
struct kmes_ways {
    int (*by_system_call)(void* call);
    int (*by_device)(void* call);
    int (*by_socket)(void* call);
};

/*
 * The answer of the first way that has one. Where KMES_SOCKET names a socket that is the only way.
 * Else -EPERM if one way said so and none answered, or -ENOSYS.
 */
int kmes_call_by(const struct kmes_ways* ways, void* call);

/* What KMES_SOCKET names; NULL where it is not set, empty, or not to be trusted because the program
 * has more privileges than who started it. */
const char* kmes_named_socket(void);

KMES_EXTERN_C_END

#endif
