// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * /dev/kmes. See device.h for why it is never there yet.
 */
#include "kmes/user/device.h"

#include <errno.h>

int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes) {
    (void)fds;
    (void)count;
    (void)capacity_bytes;
    return -ENODEV;
}

int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len) {
    (void)type;
    (void)type_len;
    (void)payload;
    (void)payload_len;
    return -ENODEV;
}

int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted) {
    (void)entries;
    (void)count;
    (void)emitted;
    return -ENODEV;
}
