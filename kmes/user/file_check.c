// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checks of a consumer before it maps a file, so that no access to the mapping raises SIGBUS.
 * See libkmes_parts.h.
 *
 * A server that passes memory files may still have them open. It could truncate a file, or return
 * pages by a hole, and the next access of the consumer would need memory that may not exist.
 * F_SEAL_SHRINK forbids the first permanently, F_SEAL_WRITE or F_SEAL_FUTURE_WRITE the second. The
 * code checks the seals first. A file without seals, such as one of FUSE, gets no further request.
 * Values that are read after the seals remain true.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kmes/user/libkmes_parts.h"
#include "kmes/user/under_tsan.h"

#define BLOCK_BYTES 512u /* unit of st_blocks */
#define WRITE_SEALS (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* fstat, unseen by ThreadSanitizer. If the program has closed the number, another thread may use
 * and close it at the same time. This is no race: the answer is then about another file, or about
 * none. */
static int stat_unseen(int fd, struct stat* status) {
#if KMES_UNDER_TSAN
    return (int)syscall(SYS_fstat, fd, status);
#else
    return fstat(fd, status);
#endif
}

bool kmes_fd_is(int fd, __u64 device, __u64 inode) {
    struct stat status;

    return stat_unseen(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

int kmes_check_file_length(int fd, __u64 bytes) {
    struct stat status;

    if (fstat(fd, &status) != 0) return -errno;
    return S_ISREG(status.st_mode) && (__u64)status.st_size < bytes ? -EINVAL : 0;
}

/* Checks for a memory file of plain pages that keeps its length, with a page at every byte below
 * `bytes`. */
static int check_memory_file(int fd, __u64 bytes, int* seals) {
    struct statfs system;
    struct stat status;

    *seals = fcntl(fd, F_GET_SEALS);
    if (*seals < 0 || !(*seals & F_SEAL_SHRINK)) return -EPROTO;
    /* Pages of hugetlbfs come from a pool; an access raises SIGBUS if the pool is empty. */
    if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) return -EPROTO;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return -EPROTO;
    if (status.st_size < 0 || (__u64)status.st_size < bytes) return -EPROTO;
    return (__u64)status.st_blocks * BLOCK_BYTES < bytes ? -EPROTO : 0;
}

int kmes_check_buffer_files(int metadata_fd, int data_fd, __u64 capacity_bytes) {
    int seals;
    int error = check_memory_file(metadata_fd, KMES_METADATA_BYTES, &seals);

    if (error) return error;
    if (seals & WRITE_SEALS) return -EPROTO; /* need_wake must be writable */
    error = check_memory_file(data_fd, capacity_bytes, &seals);
    if (error) return error;
    return seals & WRITE_SEALS ? 0 : -EPROTO;
}
