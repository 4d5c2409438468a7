/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where libkmes meets the kernel module: /dev/kmes, asked by the ioctls of <linux/kmes.h>. The
 * device is opened for each call and closed behind it, so that nothing of it is left in a program
 * that closes all its descriptors, or forks.
 *
 * -ENODEV from any of these: there is no such device, or it is not this one; a permission that is
 * missing to open it is -EPERM. Everything else is the device's own word.
 */
#ifndef KMES_USER_DEVICE_H
#define KMES_USER_DEVICE_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* As kmes_attach. */
int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes);

/* As kmes_emit. */
int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/* As kmes_emit_batch. */
int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
