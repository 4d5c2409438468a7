// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A buffer of a userspace producer is two files, and kmes_attach returns one descriptor for each
 * buffer. This table keeps the data until kmes_map. See libkmes_parts.h and
 * docs/decisions/0010-two-memory-files.md.
 *
 * The table keeps the data as a mapping without access, and not as a descriptor. A program may
 * close all its descriptors, as daemons do. A stored number could then be another file of the
 * program. The caller owns the descriptors of the metadata; the table only identifies them by
 * device and inode.
 *
 * A fork waits for the lock, so that the child finds the table unlocked and consistent.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "kmes/user/double_map.h"
#include "kmes/user/fork_lock.h"
#include "kmes/user/libkmes_parts.h"

/* One metadata descriptor that was returned to the caller. A buffer with two attaches has two
 * entries. */
struct entry {
    __u64 device;
    __u64 inode;
    __u64 capacity;
    void* data;
    struct kmes_lease* lease;
    int metadata_fd;
};

/* A mapping that kmes_map has made of an entry. The entry may be gone. */
struct mapped {
    const void* base;
    struct kmes_lease* lease;
    struct mapped* next;
};

static struct kmes_fork_lock table_lock = KMES_FORK_LOCK_INITIALIZER;
static struct entry* entries;
static unsigned entry_count;
static unsigned entry_room;
static struct mapped* all_mapped;

static void lock_table(void) {
    kmes_fork_lock_take(&table_lock);
}

static void unlock_table(void) {
    kmes_fork_lock_release(&table_lock);
}

/* If it has no memory, a fork works without this protection. */
KMES_FORK_LOCK_SETUP static void watch_forks(void) {
    pthread_atfork(lock_table, unlock_table, unlock_table);
}

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

int kmes_data_table_add(int metadata_fd, int data_fd, __u64 capacity_bytes,
                        struct kmes_lease* lease) {
    struct stat status;
    void* data;
    bool is_added;

    if (!kmes_double_map_capacity_is_valid(capacity_bytes)) return -EPROTO;
    if (fstat(metadata_fd, &status) != 0) return -errno;
    data = mmap(NULL, capacity_bytes, PROT_NONE, MAP_SHARED, data_fd, 0);
    if (data == MAP_FAILED) return -errno;
    lock_table();
    is_added = make_room();
    if (is_added) {
        struct entry* entry = &entries[entry_count++];

        entry->device = status.st_dev;
        entry->inode = status.st_ino;
        entry->capacity = capacity_bytes;
        entry->data = data;
        entry->lease = kmes_lease_hold(lease);
        entry->metadata_fd = metadata_fd;
    }
    unlock_table();
    if (is_added) return 0;
    munmap(data, capacity_bytes);
    return -ENOMEM;
}

static const struct entry* find(const struct stat* status) {
    unsigned i;

    for (i = 0; i < entry_count; i++) {
        if (entries[i].device == status->st_dev && entries[i].inode == status->st_ino)
            return &entries[i];
    }
    return NULL;
}

static int map_entry(int fd, const struct entry* entry, void** base) {
    struct mapped* mapped = (struct mapped*)malloc(sizeof(*mapped));
    int error;

    if (!mapped) return -ENOMEM;
    error = kmes_double_map_copy(fd, entry->data, entry->capacity, base);
    if (error) {
        free(mapped);
        return error;
    }
    mapped->base = *base;
    mapped->lease = kmes_lease_hold(entry->lease);
    mapped->next = all_mapped;
    all_mapped = mapped;
    return 0;
}

int kmes_data_table_map(int fd, __u64 capacity_bytes, void** base) {
    const struct entry* entry;
    struct stat status;
    int error;

    if (fstat(fd, &status) != 0) return -errno;
    lock_table(); /* until it is mapped: a sweep may run in between */
    entry = find(&status);
    if (!entry)
        error = -ENOENT;
    else if (entry->capacity != capacity_bytes)
        error = -EINVAL;
    else
        error = map_entry(fd, entry, base);
    unlock_table();
    return error;
}

void kmes_data_table_forget(const void* base) {
    struct mapped** place;

    lock_table();
    for (place = &all_mapped; *place; place = &(*place)->next) {
        struct mapped* mapped = *place;

        if (mapped->base != base) continue;
        *place = mapped->next;
        kmes_lease_drop(mapped->lease);
        free(mapped);
        break;
    }
    unlock_table();
}

void kmes_data_table_drop(struct kmes_lease* lease) {
    lock_table();
    kmes_lease_drop(lease);
    unlock_table();
}

/* The number may be open again, as another file. */
static bool is_stale(const struct entry* entry) {
    return !kmes_fd_is(entry->metadata_fd, entry->device, entry->inode);
}

void kmes_data_table_sweep(void) {
    unsigned i = 0;

    lock_table();
    while (i < entry_count) {
        if (is_stale(&entries[i])) {
            munmap(entries[i].data, entries[i].capacity);
            kmes_lease_drop(entries[i].lease);
            entries[i] = entries[--entry_count];
        } else {
            i++;
        }
    }
    unlock_table();
}

unsigned kmes_data_table_entries(void) {
    unsigned count;

    lock_table();
    count = entry_count;
    unlock_table();
    return count;
}
