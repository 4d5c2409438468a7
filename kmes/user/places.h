/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Places of readers as bytes, which a file keeps for a later process. C, no exceptions.
 *
 *   before   place[cpu] = kmes_reader_set_get_place(set, cpu) for each CPU, then kmes_places_write
 *   after    kmes_places_read, then kmes_reader_set_open with options.place and options.places
 *
 * A process that is killed goes on from the last bytes that it kept. So keep them together with the
 * results, in one write or one transaction: no event is then delivered twice or missed. Replace a
 * file by a new one and rename.
 *
 * kmes_reader_set_resumed says of each CPU whether its reader goes on. If so, the lost_before of
 * its first event is exactly what was lost in between, by laps or by a resize.
 */
#ifndef KMES_USER_PLACES_H
#define KMES_USER_PLACES_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

#define KMES_PLACES_MAX 65536u /* CPUs */

/* The bytes that `count` places take. */
__u64 kmes_places_bytes(unsigned count);

/* Writes `count` places, index i for CPU i. How many bytes they take; -ENOSPC: more than `room`,
 * nothing is written; -EINVAL: more places than KMES_PLACES_MAX. */
int kmes_places_write(const struct kmes_reader_place* places, unsigned count, void* bytes,
                      __u64 room);

/*
 * Reads what kmes_places_write has written. How many places there are, of which at most `room` are
 * in `places`. -EBADMSG: the bytes are damaged, or are something else; -EPROTONOSUPPORT: a later
 * version has written them. `places` is unchanged then. Bytes of any content are safe.
 *
 * A place in a kernel that has been booted again since becomes one of another session.
 */
int kmes_places_read(const void* bytes, __u64 count, struct kmes_reader_place* places,
                     unsigned room);

KMES_EXTERN_C_END

#endif
