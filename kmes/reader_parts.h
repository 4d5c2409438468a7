/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the three files of the reader (attach.c, consumer.c, sleep.c) share, and nobody else sees.
 */
#ifndef KMES_READER_PARTS_H
#define KMES_READER_PARTS_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

/* Why a reader with `stopped` delivers nothing. */
int kmes_reader_stop_error(const struct kmes_reader* reader);

/* Both are one buffer of one producer (E19, E25). */
bool kmes_mapping_is_same(const struct kmes_mapping* a, const struct kmes_mapping* b);

/*
 * 5.1.8.3 steps 2 to 6: moves the reader, which has drained its buffer to the frozen write_pos, to
 * the buffer that the producer writes to now. `generation` is the value that was seen. 0,
 * or what the attach function said: the reader is then where it was, and will try again.
 */
int kmes_reader_switch(struct kmes_reader* reader, __u64 generation);

KMES_EXTERN_C_END

#endif
