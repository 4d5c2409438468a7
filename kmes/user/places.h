/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Places of readers as bytes, which a file keeps for a later process. C, no exceptions.
 *
 *   before   place[cpu] = kmes_reader_set_get_place(set, cpu) for each CPU, then kmes_places_write
 *   after    kmes_places_read, then kmes_reader_set_open with options.place and options.places
 *
 * A killed process continues from the last bytes that it kept. Store them together with the
 * results, in one write or one transaction: no event is then delivered twice or missed. Replace a
 * file by a new one and rename.
 *
 * For each CPU, kmes_reader_set_resumed returns whether its reader continues. If so, the
 * lost_before of its first event is exactly the loss in between, by laps or by a resize.
 */
#ifndef KMES_USER_PLACES_H
#define KMES_USER_PLACES_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

#define KMES_PLACES_MAX 65536u /* CPUs */

/* Returns the bytes that `count` places take. */
__u64 kmes_places_bytes(unsigned count);

/* Writes `count` places, index i for CPU i. Returns their bytes. -ENOSPC: more than `room`; nothing
 * is written. -EINVAL: more places than KMES_PLACES_MAX. -EMFILE, -ENFILE, -ENOMEM: the number of
 * the kernel's boot cannot be read now. */
int kmes_places_write(const struct kmes_reader_place* places, unsigned count, void* bytes,
                      __u64 room);

/*
 * Reads the bytes of kmes_places_write. Returns the number of places, of which at most `room` are
 * in `places`. -EBADMSG: the bytes are damaged, or are something else. -EPROTONOSUPPORT: a later
 * version has written them. -EMFILE, -ENFILE, -ENOMEM: as from kmes_places_write. After an error
 * `places` is unchanged. Bytes of any content are safe.
 *
 * If the kernel has booted again since, its places become places of another session.
 */
int kmes_places_read(const void* bytes, __u64 count, struct kmes_reader_place* places,
                     unsigned room);

KMES_EXTERN_C_END

#endif
