// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The selection of the way of a libkmes call. See ways.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/ways.h"

#include <errno.h>
#include <stdlib.h>

#include "kmes/user/socket_protocol.h"

const char* kmes_named_socket(void) {
    const char* named = secure_getenv(KMES_SOCKET_ENVIRONMENT);

    return named && named[0] ? named : NULL;
}

int kmes_call_by(const struct kmes_ways* ways, void* call) {
    int (*const in_order[])(void*) = {ways->by_system_call, ways->by_device, ways->by_socket};
    int refusal = -ENOSYS;
    unsigned i;

    if (kmes_named_socket()) return ways->by_socket(call);
    for (i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
        int error = in_order[i](call);

        if (error != -ENOSYS && error != -EPERM) return error;
        if (error == -EPERM) refusal = error;
    }
    return refusal;
}
