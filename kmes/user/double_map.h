/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The layout of 5.1.5 from two files: one metadata page, then the data twice. The producer
 * (memory.cc) and consumers (libkmes_reader.c, data_table.c) use it. It does not access their
 * content.
 *
 *   one reserved range    | metadata (4096)   | data (capacity)    | data (capacity)    |
 *                           metadata file       data file, from 0    data file, from 0
 *   producer                read, write         read, write          read, write
 *   consumer                read, write         read                 read
 */
#ifndef KMES_USER_DOUBLE_MAP_H
#define KMES_USER_DOUBLE_MAP_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

/* The smallest capacity whose pages can be mapped twice (5.1.4): one page. */
#define KMES_USER_CAPACITY_MIN_BYTES KMES_PAGE_BYTES

/* True for a power of two that the core accepts and that consists of whole pages. */
bool kmes_double_map_capacity_is_valid(__u64 capacity_bytes);

/*
 * Maps the two files at one contiguous range of 4096 + 2 x capacity bytes, which starts at *base.
 * The metadata is readable and writable. The data is writable only if data_is_writable. Returns 0,
 * or a negative error number with nothing mapped. -EINVAL: the capacity cannot be mapped, or a file
 * is shorter than its part of the range, so that an access would raise SIGBUS. -EACCES or -EPERM:
 * the files do not allow it. Others: -ENOMEM, -EBADF.
 */
int kmes_double_map(int metadata_fd, int data_fd, __u64 capacity_bytes, bool data_is_writable,
                    void** base);

/*
 * As kmes_double_map, for a consumer that has already mapped the data. `mapped_data` is a shared
 * mapping of the whole data file, with any protection. No descriptor of the data file is needed.
 * Errors as kmes_double_map.
 */
int kmes_double_map_copy(int metadata_fd, void* mapped_data, __u64 capacity_bytes, void** base);

/* Unmaps a mapping of kmes_double_map. 0, or -EINVAL for an impossible capacity. */
int kmes_double_unmap(void* base, __u64 capacity_bytes);

/* Unmaps only the data. The metadata page at `base` remains, and the caller unmaps it. */
int kmes_double_unmap_data(void* base, __u64 capacity_bytes);

KMES_EXTERN_C_END

#endif
