// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libkmes: which way a call goes, and the mapping of what attach gave. See libkmes.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/libkmes.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmes/abi.h"
#include "kmes/user/device.h"
#include "kmes/user/double_map.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"

static int by_errno(int error) {
    if (error == 0) return 0;
    errno = -error;
    return -1;
}

/* Gives the pairs of an attachment to the caller and to the table; all or none. */
static int hand_out(struct kmes_socket_attachment* attachment, int* fds) {
    __u32 i;

    for (i = 0; i < attachment->count; i++) {
        int error = kmes_data_table_add(attachment->metadata_fds[i], attachment->data_fds[i],
                                        attachment->capacity);

        if (error)
            return error; /* those before are swept: their metadata is closed with the rest */
        attachment->data_fds[i] = -1;
    }
    for (i = 0; i < attachment->count; i++) {
        fds[i] = attachment->metadata_fds[i];
        attachment->metadata_fds[i] = -1;
    }
    return 0;
}

static int socket_attach(int* fds, int* count, __u64* capacity_bytes) {
    struct kmes_socket_identity identity;
    struct kmes_socket_attachment attachment;
    int error;

    if (!count || !capacity_bytes || (!fds && *count > 0)) return -EFAULT;
    error = kmes_socket_identify(0, &identity);
    if (error) return error;
    if (*count < 0 || (__u32)*count < identity.cpus) {
        *count = (int)identity.cpus;
        return -ERANGE; /* before any descriptor is made */
    }
    error = kmes_socket_attach(KMES_SOCKET_ALL_CPUS, &attachment);
    if (error) return error;
    /* Another producer, of more CPUs, may have taken the address in between. */
    error = (__u32)*count < attachment.count ? -ERANGE : hand_out(&attachment, fds);
    if (!error || error == -ERANGE) *count = (int)attachment.count;
    if (!error) *capacity_bytes = attachment.capacity;
    kmes_socket_attachment_free(&attachment);
    if (error) kmes_data_table_sweep();
    return error;
}

int kmes_attach(int* fds, int* count, __u64* capacity_bytes) {
    int call_error, error;

    if (syscall(KMES_SYSCALL_ATTACH, fds, count, capacity_bytes) == 0) return 0;
    call_error = -errno;
    if (!kmes_call_is_absent(call_error)) return by_errno(call_error);
    error = kmes_device_attach(fds, count, capacity_bytes);
    if (error != -ENODEV) return by_errno(error);
    kmes_data_table_sweep();
    error = socket_attach(fds, count, capacity_bytes);
    return by_errno(kmes_last_word(call_error, error));
}

int kmes_check_file_length(int fd, __u64 bytes) {
    struct stat status;

    if (fstat(fd, &status) != 0) return -errno;
    return S_ISREG(status.st_mode) && (__u64)status.st_size < bytes ? -EINVAL : 0;
}

/* A file that is one with its mapping: the kernel's, or one that looks like it. */
static int map_whole(int fd, __u64 capacity_bytes, void** base) {
    __u64 bytes = kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes);
    int error = kmes_check_file_length(fd, bytes);
    void* mapped;

    if (error) return error;
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return -errno;
    *base = mapped;
    return 0;
}

int kmes_map(int fd, __u64 capacity_bytes, void** base) {
    __u64 capacity_there;
    int data_fd, error;

    if (!base) return by_errno(-EFAULT);
    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return by_errno(-EINVAL);
    data_fd = kmes_data_table_find(fd, &capacity_there);
    if (data_fd == -ENOENT) return by_errno(map_whole(fd, capacity_bytes, base));
    if (data_fd < 0) return by_errno(data_fd);
    error = capacity_there == capacity_bytes
                ? kmes_double_map(fd, data_fd, capacity_bytes, false, base)
                : -EINVAL;
    close(data_fd);
    return by_errno(error);
}

int kmes_unmap(void* base, __u64 capacity_bytes) {
    int error = kmes_double_unmap(base, capacity_bytes);

    kmes_data_table_sweep();
    return by_errno(error);
}

int kmes_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len) {
    int call_error, error;

    if (syscall(KMES_SYSCALL_EMIT, type, type_len, payload, payload_len) == 0) return 0;
    call_error = -errno;
    if (!kmes_call_is_absent(call_error)) return by_errno(call_error);
    error = kmes_device_emit(type, type_len, payload, payload_len);
    if (error != -ENODEV) return by_errno(error);
    error = kmes_socket_emit(type, type_len, payload, payload_len);
    return by_errno(kmes_last_word(call_error, error));
}

int kmes_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted) {
    int call_error, error;

    if (syscall(KMES_SYSCALL_EMIT_BATCH, entries, count, emitted) == 0) return 0;
    call_error = -errno;
    if (!kmes_call_is_absent(call_error)) return by_errno(call_error);
    error = kmes_device_emit_batch(entries, count, emitted);
    if (error != -ENODEV) return by_errno(error);
    error = kmes_socket_emit_batch(entries, count, emitted);
    return by_errno(kmes_last_word(call_error, error));
}
