// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A buffer of a userspace producer is two files, and kmes_attach has one descriptor a buffer to
 * give. This is where the other one waits for kmes_map. See libkmes_parts.h and
 * docs/decisions/0010-two-memory-files.md.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmes/user/libkmes_parts.h"

/* One metadata descriptor that was given away. A buffer that was attached to twice has two. */
struct entry {
    __u64 device;
    __u64 inode;
    __u64 capacity;
    int metadata_fd;
    int data_fd;
};

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct entry* entries;
static unsigned entry_count;
static unsigned entry_room;

static bool make_room(void) {
    unsigned room = entry_room ? 2 * entry_room : 16;
    struct entry* grown;

    if (entry_count < entry_room) return true;
    grown = (struct entry*)realloc(entries, room * sizeof(*entries));
    if (!grown) return false;
    entries = grown;
    entry_room = room;
    return true;
}

int kmes_data_table_add(int metadata_fd, int data_fd, __u64 capacity_bytes) {
    struct stat status;
    int error = 0;

    if (fstat(metadata_fd, &status) != 0) return -errno;
    pthread_mutex_lock(&table_mutex);
    if (make_room()) {
        struct entry* entry = &entries[entry_count++];

        entry->device = status.st_dev;
        entry->inode = status.st_ino;
        entry->capacity = capacity_bytes;
        entry->metadata_fd = metadata_fd;
        entry->data_fd = data_fd;
    } else {
        error = -ENOMEM;
    }
    pthread_mutex_unlock(&table_mutex);
    return error;
}

int kmes_data_table_find(int fd, __u64* capacity_bytes) {
    struct stat status;
    int found = -ENOENT;
    unsigned i;

    if (fstat(fd, &status) != 0) return -errno;
    pthread_mutex_lock(&table_mutex);
    for (i = 0; i < entry_count; i++) {
        if (entries[i].device != status.st_dev || entries[i].inode != status.st_ino) continue;
        *capacity_bytes = entries[i].capacity;
        /* A descriptor of its own: a sweep may come in between. */
        found = fcntl(entries[i].data_fd, F_DUPFD_CLOEXEC, 0);
        if (found < 0) found = -errno;
        break;
    }
    pthread_mutex_unlock(&table_mutex);
    return found;
}

/* The number may be open again, as something else. */
static bool is_stale(const struct entry* entry) {
    struct stat status;

    return fstat(entry->metadata_fd, &status) != 0 || status.st_dev != entry->device ||
           status.st_ino != entry->inode;
}

void kmes_data_table_sweep(void) {
    unsigned i = 0;

    pthread_mutex_lock(&table_mutex);
    while (i < entry_count) {
        if (is_stale(&entries[i])) {
            close(entries[i].data_fd);
            entries[i] = entries[--entry_count];
        } else {
            i++;
        }
    }
    pthread_mutex_unlock(&table_mutex);
}

unsigned kmes_data_table_entries(void) {
    unsigned count;

    pthread_mutex_lock(&table_mutex);
    count = entry_count;
    pthread_mutex_unlock(&table_mutex);
    return count;
}
