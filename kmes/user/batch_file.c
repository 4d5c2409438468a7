// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A batch of the caller as a memory file, for a producer in another process (socket_protocol.h).
 * The file has the types and payloads in sequence, and after them the entries, whose pointers are
 * offsets in the file. This file uses no socket.
 *
 * Only the kernel accesses the caller's memory: it returns EFAULT where this process would end.
 * Bytes that cannot be read are omitted. The server of the batch detects this like a kernel would.
 * Either an entry is missing at the end of the file, or an offset is outside of every file. So one
 * place has the rules of the call and their order (kmes/call.h). Each byte is read once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kmes/user/file_size_signal.h"
#include "kmes/user/libkmes_parts.h"

/* An offset that is outside of every file. */
static const void* const no_offset = (const void*)~(__UINTPTR_TYPE__)0;

/* A file under construction. */
struct batch_file {
    int fd;
    __u64 end; /* bytes of types and payloads so far */
    struct kmes_emit_entry entries[KMES_BATCH_MAX_ENTRIES];
    __u32 count; /* entries so far */
};

static int write_at(int fd, const void* from, __u64 bytes, __u64 offset) {
    const char* at = (const char*)from;

    while (bytes > 0) {
        ssize_t written = pwrite(fd, at, bytes, (off_t)offset);

        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? -errno : -EIO;
        at += written;
        bytes -= (__u64)written;
        offset += (__u64)written;
    }
    return 0;
}

/* Copies the caller's entry to the file and from there to *entry, which the caller cannot change.
 */
static int read_entry(struct batch_file* file, const void* from, struct kmes_emit_entry* entry) {
    int error = write_at(file->fd, from, sizeof(*entry), file->end);

    if (error) return error;
    return pread(file->fd, entry, sizeof(*entry), (off_t)file->end) == (ssize_t)sizeof(*entry)
               ? 0
               : -EIO;
}

/* Appends `bytes` of the caller's memory. *place is set to the offset, or to no_offset if they
 * cannot be read. */
static int append(struct batch_file* file, __u64 bytes, const void** place) {
    const void* from = *place;
    int error = write_at(file->fd, from, bytes, file->end);

    *place = error ? no_offset : (const void*)(__UINTPTR_TYPE__)file->end;
    if (!error) file->end += bytes;
    return error;
}

/* Returns true if every kmes_emit rejects the entry. Then its bytes are not read. */
static bool is_hopeless(const struct kmes_emit_entry* entry) {
    return entry->type_len == 0 ||
           (__u64)KMES_EVENT_FIXED_BYTES + entry->type_len + entry->payload_len >
               KMES_CONFIG_EVENT_MAX_BYTES;
}

/* Adds one entry. -EFAULT: it is the last relevant one. */
static int add_entry(struct batch_file* file, const void* from) {
    struct kmes_emit_entry* entry = &file->entries[file->count];
    int error = read_entry(file, from, entry);

    if (error) return error;
    file->count++;
    if (is_hopeless(entry)) {
        entry->type = no_offset;
        entry->payload = no_offset;
        return -EFAULT;
    }
    error = append(file, entry->type_len, &entry->type);
    return error ? error : append(file, entry->payload_len, &entry->payload);
}

static int fill(struct batch_file* file, const struct kmes_emit_entry* entries, __u32 count) {
    __u32 i;
    int error = 0;

    /* Integer arithmetic, which may wrap, because the caller's array may be at any address. */
    for (i = 0; i < count && !error; i++)
        error = add_entry(file, (const void*)((__UINTPTR_TYPE__)entries + i * sizeof(*entries)));
    if (error && error != -EFAULT) return error;
    /* An entry that was read after the last byte may still be in the file. */
    if (ftruncate(file->fd, (off_t)file->end) != 0) return -errno;
    return write_at(file->fd, file->entries, file->count * sizeof(file->entries[0]), file->end);
}

int kmes_batch_file_make(const struct kmes_emit_entry* entries, __u32 count,
                         __u32* entries_offset) {
    struct kmes_file_size_signal saved;
    struct batch_file file;
    int error;

    file.fd = memfd_create("kmes-batch", MFD_CLOEXEC);
    if (file.fd < 0) return -errno;
    file.end = 0;
    file.count = 0;
    kmes_file_size_signal_block(&saved);
    error = fill(&file, entries, count);
    kmes_file_size_signal_restore(&saved);
    if (error) {
        close(file.fd);
        return error;
    }
    *entries_offset = (__u32)file.end;
    return file.fd;
}
