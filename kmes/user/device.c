// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Access to /dev/kmes by its ioctls. See device.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kmes.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

int kmes_device_open(void) {
    int fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);

    if (fd >= 0) return fd;
    switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return -errno;
        case EACCES:
        case EPERM:
            return -EPERM;
        default:
            return -ENODEV;
    }
}

/* Executes one ioctl on a newly opened file. -ENOTTY: the device does not know the request. */
static int ask_any(unsigned long request, void* argument) {
    int fd = kmes_device_open();
    int error = 0;

    if (fd < 0) return fd;
    if (ioctl(fd, request, argument) != 0) error = -errno;
    close(fd);
    return error;
}

/* A request that every version of the module knows. */
static int ask(unsigned long request, void* argument) {
    int error = ask_any(request, argument);

    return error == -ENOTTY ? -ENODEV : error;
}

static __u64 address_of(const void* pointer) {
    return (uintptr_t)pointer;
}

int kmes_device_attach(int* fds, int* count, __u64* capacity_bytes) {
    struct kmes_ioctl_attach attach = {0};
    int error;

    if (!count || !capacity_bytes) return -EFAULT;
    attach.fds_address = address_of(fds);
    attach.count = *count > 0 ? (__u32)*count : 0;
    error = ask(KMES_IOC_ATTACH, &attach);
    if (!error || error == -ERANGE) *count = (int)attach.count;
    if (!error) *capacity_bytes = attach.capacity;
    return error;
}

int kmes_device_attach_cpu(__u32 cpu, int* fd, __u64* capacity_bytes) {
    struct kmes_ioctl_attach_cpu attach = {0};
    int error;

    if (!fd || !capacity_bytes) return -EFAULT;
    attach.cpu = cpu;
    attach.fd = -1;
    error = ask_any(KMES_IOC_ATTACH_CPU, &attach);
    if (error) return error;
    *fd = attach.fd;
    *capacity_bytes = attach.capacity;
    return 0;
}

/* Returns 0 if the device does not say it. The buffer is identified already, so any later number is
 * that of an event after the attach. */
static __u64 next_sequence(__u32 cpu) {
    struct kmes_ioctl_statistics statistics = {.cpu = cpu};

    return ask_any(KMES_IOC_STATISTICS, &statistics) ? 0 : statistics.last_sequence + 1;
}

int kmes_device_identify(__u32 cpu, struct kmes_device_identity* identity) {
    struct kmes_ioctl_identify identify = {0};
    int error;

    if (!identity) return -EFAULT;
    identify.cpu = cpu;
    error = ask_any(KMES_IOC_IDENTIFY, &identify);
    if (error) return error;
    identity->next_sequence = next_sequence(cpu);
    identity->device = identify.device;
    identity->inode = identify.inode;
    identity->capacity = identify.capacity;
    identity->cpus = identify.cpus;
    return 0;
}

/* -ENODEV: this device is not KMES's. */
static int ask_on(int fd, unsigned long request, void* argument) {
    if (ioctl(fd, request, argument) == 0) return 0;
    return errno == ENOTTY ? -ENODEV : -errno;
}

int kmes_device_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len) {
    struct kmes_ioctl_emit emit = {0};

    emit.type_address = address_of(type);
    emit.payload_address = address_of(payload);
    emit.payload_len = payload_len;
    emit.type_len = type_len;
    return ask_on(fd, KMES_IOC_EMIT, &emit);
}

int kmes_device_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len) {
    int fd = kmes_device_open();
    int error;

    if (fd < 0) return fd;
    error = kmes_device_emit_on(fd, type, type_len, payload, payload_len);
    close(fd);
    return error;
}

int kmes_device_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted) {
    struct kmes_ioctl_emit_batch batch = {0};
    int error;

    batch.entries_address = address_of(entries);
    batch.count = count;
    error = ask_on(fd, KMES_IOC_EMIT_BATCH, &batch);
    if (error != -ENODEV) *emitted = batch.emitted;
    return error;
}

int kmes_device_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted) {
    int fd, error;

    if (!emitted) return -EFAULT;
    fd = kmes_device_open();
    if (fd < 0 && fd != -ENODEV) *emitted = 0;
    if (fd < 0) return fd;
    error = kmes_device_emit_batch_on(fd, entries, count, emitted);
    close(fd);
    return error;
}
