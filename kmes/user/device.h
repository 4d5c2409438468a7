/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where libkmes meets the kernel module: /dev/kmes, asked by the ioctls of <linux/kmes.h>. The
 * device is opened for each call and closed behind it, so that nothing of it is left in a program
 * that closes all its descriptors, or forks.
 *
 * -ENODEV from any of these: there is no such device, or it is not this one; a permission that is
 * missing to open it is -EPERM. Everything else is the device's own word. On an error nothing is
 * written through the pointers, unless a function says so.
 */
#ifndef KMES_USER_DEVICE_H
#define KMES_USER_DEVICE_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* As kmes_attach. */
int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes);

/*
 * Attaches to CPU `cpu` alone: a close-on-exec descriptor in *fd, the bytes of its ring in
 * *capacity_bytes. -EINVAL: there is no such CPU; otherwise the errors of kmes_attach. -ENOTTY: the
 * device does not know this request, so it is an older module or not KMES's at all. The caller then
 * falls back to kmes_device_attach, which tells the two apart.
 */
int kmes_device_attach_cpu(__u32 cpu, int* fd, __u64* capacity_bytes);

/* Which buffer a CPU writes to now. */
struct kmes_device_identity {
    __u64 device; /* st_dev and st_ino of its descriptors */
    __u64 inode;
    __u64 capacity; /* bytes */
    __u32 cpus;     /* how many CPUs have a buffer */
};

/*
 * Identifies the buffer of CPU `cpu` without making a descriptor (E19). Errors as
 * kmes_device_attach_cpu, -ENOTTY too: then only an attach tells.
 */
int kmes_device_identify(__u32 cpu, struct kmes_device_identity* identity);

/* As kmes_emit. */
int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/* As kmes_emit_batch. */
int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

/* The same by an open device. -ENODEV: it is not KMES's. */
int kmes_device_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len);
int kmes_device_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted);

/* A close-on-exec descriptor of the device; -ENODEV, -EPERM, -EMFILE, -ENFILE, -ENOMEM. */
int kmes_device_open(void);

KMES_EXTERN_C_END

#endif
