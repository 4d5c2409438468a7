// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Maps metadata and data as 5.1.5 lays them out. See double_map.h for the figure.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/double_map.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

bool kmes_double_map_capacity_is_valid(__u64 capacity_bytes) {
    return kmes_capacity_is_valid(capacity_bytes) && capacity_bytes >= KMES_USER_CAPACITY_MIN_BYTES;
}

/* An access to a page of a mapping past the end of its file raises SIGBUS. */
static int check_length(int fd, __u64 bytes) {
    struct stat status;

    if (fstat(fd, &status) != 0) return -errno;
    return status.st_size >= 0 && (__u64)status.st_size >= bytes ? 0 : -EINVAL;
}

static int place(__u8* at, __u64 bytes, int protection, int fd) {
    void* placed = mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0);

    return placed == MAP_FAILED ? -errno : 0;
}

/* Makes another mapping of the same shared pages, readable. (An old size of 0 copies.) */
static int place_copy(__u8* at, __u64 bytes, void* mapped) {
    if (mremap(mapped, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) return -errno;
    return mprotect(at, bytes, PROT_READ) == 0 ? 0 : -errno;
}

/* Reserves the range first, so that no mapping of another thread can be inside it. NULL:
 * -ENOMEM. */
static __u8* reserve(__u64 bytes) {
    void* range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return range == MAP_FAILED ? NULL : (__u8*)range;
}

int kmes_double_map(int metadata_fd, int data_fd, __u64 capacity_bytes, bool data_is_writable,
                    void** base) {
    int protection = data_is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
    __u64 bytes = kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes);
    __u8 *range, *data;
    int error;

    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return -EINVAL;
    error = check_length(metadata_fd, KMES_METADATA_BYTES);
    if (!error) error = check_length(data_fd, capacity_bytes);
    if (error) return error;
    range = reserve(bytes);
    if (!range) return -ENOMEM;
    data = range + kmes_data_offset_bytes(KMES_VERSION_1);
    error = place(range, KMES_METADATA_BYTES, PROT_READ | PROT_WRITE, metadata_fd);
    if (!error) error = place(data, capacity_bytes, protection, data_fd);
    if (!error) error = place(data + capacity_bytes, capacity_bytes, protection, data_fd);
    if (error)
        munmap(range, bytes);
    else
        *base = range;
    return error;
}

int kmes_double_map_copy(int metadata_fd, void* mapped_data, __u64 capacity_bytes, void** base) {
    __u64 bytes = kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes);
    __u8 *range, *data;
    int error;

    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return -EINVAL;
    error = check_length(metadata_fd, KMES_METADATA_BYTES);
    if (error) return error;
    range = reserve(bytes);
    if (!range) return -ENOMEM;
    data = range + kmes_data_offset_bytes(KMES_VERSION_1);
    error = place(range, KMES_METADATA_BYTES, PROT_READ | PROT_WRITE, metadata_fd);
    if (!error) error = place_copy(data, capacity_bytes, mapped_data);
    if (!error) error = place_copy(data + capacity_bytes, capacity_bytes, mapped_data);
    if (error)
        munmap(range, bytes);
    else
        *base = range;
    return error;
}

int kmes_double_unmap(void* base, __u64 capacity_bytes) {
    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return -EINVAL;
    return munmap(base, kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes)) ? -errno : 0;
}

int kmes_double_unmap_data(void* base, __u64 capacity_bytes) {
    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return -EINVAL;
    return munmap((__u8*)base + kmes_data_offset_bytes(KMES_VERSION_1), 2 * capacity_bytes) ? -errno
                                                                                            : 0;
}
