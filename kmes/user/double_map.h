/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The layout of 5.1.5 made of two files: one metadata page, and the data twice behind it. Used by
 * the producer (memory.cc) and by consumers (libkmes_reader.c, data_table.c); knows nothing of what
 * stands in them.
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

/* The smallest capacity of which pages can be mapped twice (5.1.4): one page. */
#define KMES_USER_CAPACITY_MIN_BYTES KMES_PAGE_BYTES

/* A power of two that the core takes and that whole pages can hold. */
bool kmes_double_map_capacity_is_valid(__u64 capacity_bytes);

/*
 * Maps the two files at one contiguous range of 4096 + 2 x capacity bytes; *base is its start.
 * The metadata is readable and writable, the data writable only where data_is_writable. 0, or a
 * negative error number with nothing mapped: -EINVAL for a capacity that cannot be mapped, or a
 * file that is shorter than its part of the range (touching it would be SIGBUS), -EACCES or -EPERM
 * where the files do not allow it, -ENOMEM, -EBADF.
 */
int kmes_double_map(int metadata_fd, int data_fd, __u64 capacity_bytes, bool data_is_writable,
                    void** base);

/*
 * The same for a consumer, where the data is mapped already: `mapped_data` is a shared mapping of
 * all of the data file, with any protection. Needs no descriptor of it. Errors as kmes_double_map.
 */
int kmes_double_map_copy(int metadata_fd, void* mapped_data, __u64 capacity_bytes, void** base);

/* Unmaps what kmes_double_map mapped. 0, -EINVAL for a capacity that it cannot have had. */
int kmes_double_unmap(void* base, __u64 capacity_bytes);

/* Unmaps the data alone; the metadata page at `base` stays, and is the caller's to munmap. */
int kmes_double_unmap_data(void* base, __u64 capacity_bytes);

KMES_EXTERN_C_END

#endif
