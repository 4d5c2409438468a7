/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkmes's access to the kernel module: /dev/kmes and the ioctls of <linux/kmes.h>. Each call
 * opens the device and closes it at its end. A program that closes all its descriptors, or forks,
 * therefore keeps no descriptor of it.
 *
 * Each function returns -ENODEV if there is no such device, or if it is another device. It returns
 * -EPERM if the program may not open it. All other errors come from the device. After an error
 * nothing is written through the pointers, unless a function says so.
 */
#ifndef KMES_USER_DEVICE_H
#define KMES_USER_DEVICE_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* As kmes_attach. */
int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes);

/*
 * Attaches to CPU `cpu` alone: a close-on-exec descriptor in *fd, the bytes of its ring in
 * *capacity_bytes. -EINVAL: no such CPU. -ENOTTY: the device does not know this request, so it is
 * an older module or another device. The caller then calls kmes_device_attach, which distinguishes
 * the two. Other errors as kmes_attach.
 */
int kmes_device_attach_cpu(__u32 cpu, int* fd, __u64* capacity_bytes);

/* Identifies the current buffer of a CPU. */
struct kmes_device_identity {
    __u64 device; /* st_dev and st_ino of its descriptors */
    __u64 inode;
    __u64 capacity;      /* bytes */
    __u64 next_sequence; /* the number of the CPU's next event; 0: unknown */
    __u32 cpus;          /* the number of CPUs that have a buffer */
};

/*
 * Identifies the buffer of CPU `cpu` without making a descriptor (E19). Errors as
 * kmes_device_attach_cpu. After -ENOTTY only an attach identifies the buffer.
 */
int kmes_device_identify(__u32 cpu, struct kmes_device_identity* identity);

/* As kmes_emit. */
int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len);

/* As kmes_emit_batch. */
int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted);

/* As kmes_device_emit, by an open device. -ENODEV: it is not KMES's device. */
int kmes_device_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len);
int kmes_device_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted);

/* Returns a close-on-exec descriptor of the device, or -ENODEV, -EPERM, -EMFILE, -ENFILE,
 * -ENOMEM. */
int kmes_device_open(void);

KMES_EXTERN_C_END

#endif
