// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Places of readers as bytes. See places.h. All numbers are little-endian.
 *
 *    0   8   magic
 *    8   4   version
 *   12   4   count
 *   16  16   boot of the kernel: after it the sequence numbers of session 0 restart
 *   32  24   each place: session, last sequence, 4 bytes whether it is known, 4 bytes zero
 *   end  4   CRC-32 of all bytes before
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kmes/user/uncancelled.h"

#define MAGIC "KMESKEPT"
#define MAGIC_BYTES 8u
#define VERSION 1u
#define BOOT_BYTES 16u
#define HEAD_BYTES 32u
#define PLACE_BYTES 24u
#define CHECKSUM_BYTES 4u
#define OTHER_SESSION (~0ull) /* no producer has it: 0 is the kernel's, others are random */

static void put(__u8* to, __u64 value, unsigned bytes) {
    unsigned i;

    for (i = 0; i < bytes; i++) to[i] = (__u8)(value >> (8 * i));
}

static __u64 get(const __u8* from, unsigned bytes) {
    __u64 value = 0;
    unsigned i;

    for (i = 0; i < bytes; i++) value |= (__u64)from[i] << (8 * i);
    return value;
}

static __u32 checksum(const __u8* bytes, __u64 count) {
    __u32 sum = ~0u;
    __u64 i;
    int bit;

    for (i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
    return ~sum;
}

static int digit_of(char character) {
    if (character >= '0' && character <= '9') return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    return -1;
}

/* Zeros if the kernel does not provide it. A negative error number if it cannot be opened for lack
 * of a resource: zeros would make every later place that of another boot. */
static int read_boot(__u8 boot[BOOT_BYTES]) {
    KMES_UNCANCELLED;
    char text[37] = {0};
    unsigned at, digits = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    int error = errno;

    memset(boot, 0, BOOT_BYTES);
    if (fd < 0) return error == EMFILE || error == ENFILE || error == ENOMEM ? -error : 0;
    if (read(fd, text, sizeof(text) - 1) < 0) text[0] = '\0';
    close(fd);
    for (at = 0; text[at] && digits < 2 * BOOT_BYTES; at++) {
        const int digit = digit_of(text[at]);

        if (digit < 0) continue;
        boot[digits / 2] = (__u8)(boot[digits / 2] << 4 | digit);
        digits++;
    }
    return 0;
}

__u64 kmes_places_bytes(unsigned count) {
    return HEAD_BYTES + (__u64)count * PLACE_BYTES + CHECKSUM_BYTES;
}

int kmes_places_write(const struct kmes_reader_place* places, unsigned count, void* bytes,
                      __u64 room) {
    const __u64 total = kmes_places_bytes(count);
    __u8* at = (__u8*)bytes;
    __u8 boot[BOOT_BYTES];
    unsigned i;
    int error;

    if (count > KMES_PLACES_MAX) return -EINVAL;
    if (total > room) return -ENOSPC;
    error = read_boot(boot);
    if (error) return error;
    memcpy(at, MAGIC, MAGIC_BYTES);
    put(at + 8, VERSION, 4);
    put(at + 12, count, 4);
    memcpy(at + 16, boot, BOOT_BYTES);
    at += HEAD_BYTES;
    for (i = 0; i < count; i++) {
        const struct kmes_reader_place* place = &places[i];

        put(at, place->is_known ? place->session : 0, 8);
        put(at + 8, place->is_known ? place->last_sequence : 0, 8);
        put(at + 16, place->is_known, 8);
        at += PLACE_BYTES;
    }
    put(at, checksum((const __u8*)bytes, total - CHECKSUM_BYTES), CHECKSUM_BYTES);
    return (int)total;
}

/* Returns the number of places, or an error. */
static int check(const __u8* bytes, __u64 total) {
    __u64 count, i;

    if (total < HEAD_BYTES + CHECKSUM_BYTES) return -EBADMSG;
    if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0) return -EBADMSG;
    if (get(bytes + total - CHECKSUM_BYTES, CHECKSUM_BYTES) !=
        checksum(bytes, total - CHECKSUM_BYTES))
        return -EBADMSG;
    if (get(bytes + 8, 4) != VERSION) return -EPROTONOSUPPORT;
    count = get(bytes + 12, 4);
    if (count > KMES_PLACES_MAX || total != kmes_places_bytes((unsigned)count)) return -EBADMSG;
    for (i = 0; i < count; i++)
        if (get(bytes + HEAD_BYTES + i * PLACE_BYTES + 16, 8) > 1) return -EBADMSG;
    return (int)count;
}

int kmes_places_read(const void* bytes, __u64 count, struct kmes_reader_place* places,
                     unsigned room) {
    const __u8* at = (const __u8*)bytes;
    const int found = check(at, count);
    __u8 boot[BOOT_BYTES];
    unsigned i;
    int error;

    if (found < 0) return found;
    error = read_boot(boot);
    if (error) return error;
    for (i = 0; i < (unsigned)found && i < room; i++) {
        const __u8* place = at + HEAD_BYTES + (__u64)i * PLACE_BYTES;

        places[i].session = get(place, 8);
        places[i].last_sequence = get(place + 8, 8);
        places[i].is_known = get(place + 16, 8) == 1;
        if (places[i].is_known && places[i].session == 0 && memcmp(boot, at + 16, BOOT_BYTES) != 0)
            places[i].session = OTHER_SESSION;
    }
    return found;
}
