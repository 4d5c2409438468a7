/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The consumers that the explorer runs. One is the reference reader in its three forms. The other
 * is written in the test, and follows the specification literally in chosen points.
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
    bool e3 = false;  /* generation is not loaded again after the store to need_wake */
    bool e4 = false;  /* tail_pos is loaded again before the data is read (as Arm permits) */
    bool e6 = false;  /* the event is processed in the ring, after the check */
    bool e7 = false;  /* lengths are used before the check */
    bool e9 = false;  /* generation is cached for the lifetime of the mapping */
    bool e10 = false; /* changes to the new buffer before the old one is empty */
    bool e11 = false; /* keeps the old position in the new buffer */
    bool e15 = false; /* only the old generation plus one counts as a change */
    bool e19 = false; /* does not check that the buffer was current when generation was loaded */
    bool e20 = false; /* continues at step 2 or 4 without another load of write_pos; `==` */
    bool e21 = false; /* the last sequence number is forgotten at a change of buffers */
    bool e24 = false; /* does not load write_pos again after it has seen the change */
    bool e26 = false; /* accepts a write_pos that is more than the capacity ahead */
};

ConsumerFactory literal(const Literal& points);

}  // namespace kmes::tests

#endif
