/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where libkmes meets the kernel module: /dev/kmes. The module brings its ioctls with it; until
 * then nothing is known that could be asked of the device, and so it counts as absent, whether the
 * node is there or not. The place in the order of libkmes.h is kept.
 */
#ifndef KMES_USER_DEVICE_H
#define KMES_USER_DEVICE_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

#define KMES_DEVICE_PATH "/dev/kmes"

/* As kmes_attach. -ENODEV: there is no device that this library knows how to ask. */
int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes);

/* As kmes_emit. -ENODEV likewise. */
int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/* As kmes_emit_batch. -ENODEV likewise. */
int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
