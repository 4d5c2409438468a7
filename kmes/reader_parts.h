/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that the three files of the reader (attach.c, consumer.c, sleep.c) share. They are
 * private to the reader.
 */
#ifndef KMES_READER_PARTS_H
#define KMES_READER_PARTS_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

/* Returns the error of a reader that has `stopped` set. */
int kmes_reader_stop_error(const struct kmes_reader* reader);

/*
 * 5.1.9: what is lost after an attach is counted. Finds the number of the next event, and keeps the
 * one before it as the last sequence number. `next_sequence` is that of `struct kmes_mapping`, from
 * after the attach. A reader that attaches to an empty ring and does not know it, counts from the
 * first delivered event. Has no other effect: the next read finds the same content.
 */
void kmes_reader_begin_count(struct kmes_reader* reader, __u64 next_sequence);

/* True if both mappings are the same buffer of the same producer (E19, E25). */
bool kmes_mapping_is_same(const struct kmes_mapping* a, const struct kmes_mapping* b);

/*
 * 5.1.8.3 steps 2 to 6: moves the reader to the producer's current buffer. The reader has drained
 * its buffer to the frozen write_pos. `generation` is the value that it saw. Returns 0, or the
 * error of the attach function; the reader then keeps its buffer and tries again later.
 */
int kmes_reader_switch(struct kmes_reader* reader, __u64 generation);

KMES_EXTERN_C_END

#endif
