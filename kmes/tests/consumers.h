/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The consumers that the explorer runs: the reference reader in its three forms, and a reader
 * written in the test that follows the specification literally in chosen points.
 */
#ifndef KMES_TESTS_CONSUMERS_H
#define KMES_TESTS_CONSUMERS_H

#include "kmes/tests/explorer.h"

namespace kmes::tests {

ConsumerFactory reference_next();
ConsumerFactory reference_peek();
ConsumerFactory reference_bulk();

/* For each point, true: the literal protocol. All false: the corrected protocol. */
struct Literal {
    bool e1 = false;  /* no full fence: the store to need_wake is still in the store buffer when
                         write_pos is loaded */
    bool e2 = false;  /* the counter is read after the re-check */
    bool e3 = false;  /* the generation is not looked at again after need_wake was set */
    bool e4 = false;  /* tail_pos is re-read before the data was (as an Arm may do it) */
    bool e6 = false;  /* the event is processed where it lies, after the check */
    bool e7 = false;  /* lengths are believed before the check */
    bool e9 = false;  /* generation is cached for the lifetime of the mapping */
    bool e10 = false; /* goes to the new buffer before the old one is drained */
    bool e11 = false; /* keeps its position in the new buffer */
    bool e15 = false; /* a change is its own generation plus one */
    bool e19 = false; /* does not make sure that the buffer was alive when generation was read */
    bool e20 = false; /* goes on at step 2 and 4 without looking at write_pos again; `==` */
    bool e21 = false; /* the last sequence number is one of this buffer */
    bool e24 = false; /* does not look at write_pos again after it has seen the change */
    bool e26 = false; /* believes a write_pos that is more than a capacity ahead */
};

ConsumerFactory literal(const Literal& points);

}  // namespace kmes::tests

#endif
