// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libkmes: the calls by each way, and the mapping of the descriptors of an attach. See libkmes.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/libkmes.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmes/abi.h"
#include "kmes/user/device.h"
#include "kmes/user/double_map.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/uncancelled.h"
#include "kmes/user/ways.h"

static int by_errno(int error) {
    if (error == 0) return 0;
    errno = -error;
    return -1;
}

static int or_errno(long result) {
    return result == 0 ? 0 : -errno;
}

/* Converts the error to the terms of ways.h: a device that does not exist is an absent way. */
static int or_absent(int error) {
    return error == -ENODEV ? -ENOSYS : error;
}

struct attach {
    int* fds;
    int* count;
    __u64* capacity_bytes;
};

static int attach_by_system_call(void* call) {
    const struct attach* attach = (const struct attach*)call;

    return or_errno(
        syscall(KMES_SYSCALL_ATTACH, attach->fds, attach->count, attach->capacity_bytes));
}

static int attach_by_device(void* call) {
    const struct attach* attach = (const struct attach*)call;

    return or_absent(kmes_device_attach(attach->fds, attach->count, attach->capacity_bytes));
}

/* Gives the metadata of an attachment to the caller and its data to the table; all or none. */
static int hand_out(struct kmes_socket_attachment* attachment, struct kmes_lease* lease, int* fds) {
    __u32 i;

    for (i = 0; i < attachment->count; i++) {
        int error = kmes_data_table_add(attachment->metadata_fds[i], attachment->data_fds[i],
                                        attachment->capacity, lease);

        if (error)
            return error; /* a sweep removes the earlier entries: all their metadata is closed */
    }
    for (i = 0; i < attachment->count; i++) {
        fds[i] = attachment->metadata_fds[i];
        attachment->metadata_fds[i] = -1;
    }
    return 0;
}

static int attach_by_socket(void* call) {
    const struct attach* attach = (const struct attach*)call;
    struct kmes_socket_identity identity;
    struct kmes_socket_attachment attachment;
    struct kmes_lease* lease;
    int* const count = attach->count;
    int error;

    kmes_data_table_sweep();
    if (!count || !attach->capacity_bytes || (!attach->fds && *count > 0)) return -EFAULT;
    error = kmes_socket_identify(0, KMES_SOCKET_ANSWER_MS, &identity);
    if (error) return error;
    if (*count < 0 || (__u32)*count < identity.cpus) {
        *count = (int)identity.cpus;
        return -ERANGE; /* before any descriptor is made */
    }
    error = kmes_socket_attach(KMES_SOCKET_ALL_CPUS, &attachment);
    if (error) return error;
    lease = kmes_lease_make(attachment.lease_fd);
    attachment.lease_fd = -1;
    /* Another producer with more CPUs may have taken the address in between. */
    error = (__u32)*count < attachment.count ? -ERANGE : hand_out(&attachment, lease, attach->fds);
    if (!error || error == -ERANGE) *count = (int)attachment.count;
    if (!error) *attach->capacity_bytes = attachment.capacity;
    kmes_socket_attachment_free(&attachment);
    kmes_data_table_drop(lease);
    if (error) kmes_data_table_sweep();
    return error;
}

int kmes_attach(int* fds, int* count, __u64* capacity_bytes) {
    static const struct kmes_ways ways = {attach_by_system_call, attach_by_device,
                                          attach_by_socket};
    struct attach attach = {fds, count, capacity_bytes};
    KMES_UNCANCELLED;

    return by_errno(kmes_call_by(&ways, &attach));
}

/* Maps a file that is identical to its mapping: the kernel's, or one that looks like it. */
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
    KMES_UNCANCELLED;
    int error;

    if (!base) return by_errno(-EFAULT);
    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return by_errno(-EINVAL);
    error = kmes_data_table_map(fd, capacity_bytes, base);
    return by_errno(error == -ENOENT ? map_whole(fd, capacity_bytes, base) : error);
}

int kmes_unmap(void* base, __u64 capacity_bytes) {
    KMES_UNCANCELLED;
    int error = -EINVAL;

    if (kmes_double_map_capacity_is_valid(capacity_bytes)) {
        kmes_data_table_forget(base);
        error = kmes_double_unmap(base, capacity_bytes);
    }
    kmes_data_table_sweep();
    return by_errno(error);
}

struct emit {
    const char* type;
    const void* payload;
    __u32 payload_len;
    __u16 type_len;
};

static int emit_by_system_call(void* call) {
    const struct emit* emit = (const struct emit*)call;

    return or_errno(
        syscall(KMES_SYSCALL_EMIT, emit->type, emit->type_len, emit->payload, emit->payload_len));
}

static int emit_by_device(void* call) {
    const struct emit* emit = (const struct emit*)call;

    return or_absent(
        kmes_device_emit(emit->type, emit->type_len, emit->payload, emit->payload_len));
}

static int emit_by_socket(void* call) {
    const struct emit* emit = (const struct emit*)call;

    return kmes_socket_emit(emit->type, emit->type_len, emit->payload, emit->payload_len);
}

int kmes_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len) {
    static const struct kmes_ways ways = {emit_by_system_call, emit_by_device, emit_by_socket};
    struct emit emit = {type, payload, payload_len, type_len};
    KMES_UNCANCELLED;

    return by_errno(kmes_call_by(&ways, &emit));
}

struct emit_batch {
    const struct kmes_emit_entry* entries;
    __u32* emitted;
    __u32 count;
};

static int emit_batch_by_system_call(void* call) {
    const struct emit_batch* batch = (const struct emit_batch*)call;

    return or_errno(syscall(KMES_SYSCALL_EMIT_BATCH, batch->entries, batch->count, batch->emitted));
}

static int emit_batch_by_device(void* call) {
    const struct emit_batch* batch = (const struct emit_batch*)call;

    return or_absent(kmes_device_emit_batch(batch->entries, batch->count, batch->emitted));
}

static int emit_batch_by_socket(void* call) {
    const struct emit_batch* batch = (const struct emit_batch*)call;

    return kmes_socket_emit_batch(batch->entries, batch->count, batch->emitted);
}

int kmes_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted) {
    static const struct kmes_ways ways = {emit_batch_by_system_call, emit_batch_by_device,
                                          emit_batch_by_socket};
    struct emit_batch batch = {entries, emitted, count};
    KMES_UNCANCELLED;

    return by_errno(kmes_call_by(&ways, &batch));
}
