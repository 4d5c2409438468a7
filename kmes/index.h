/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The boundary index of a buffer (E13, E23), shared by the writer and the swap, and by nobody else:
 * see ring.h for what it promises.
 */
#ifndef KMES_INDEX_H
#define KMES_INDEX_H

#include "kmes/ring.h"

KMES_EXTERN_C_BEGIN

/* Notes that an event ends, and so the next begins, at `to`, where one began at `from`; `ordinal`:
 * events of the buffer that begin before `to`. At most index_mask + 1 entries are written. */
void kmes_index_mark(struct kmes_buffer* buffer, __u64 from, __u64 to, __u64 ordinal);

/*
 * The first boundary at or after `target`, which lies in [tail, frontier]. False where a size on
 * the way is impossible (E13: less than 30, or more than what is written from there on).
 */
bool kmes_index_find(const struct kmes_buffer* buffer, __u64 target, struct kmes_boundary* found);

/*
 * Moves `at`, a boundary below the frontier, to the next one, by the size that stands in the ring:
 * the one thing that is read back from there. Consumers cannot write the data (E13); the size is
 * bounded all the same. False, with `at` unmoved, where it is impossible.
 */
bool kmes_index_step(const struct kmes_buffer* buffer, struct kmes_boundary* at);

KMES_EXTERN_C_END

#endif
