/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The part of a long test that runs today. With KMES_SHARE=N in the environment a test plays one
 * Nth of what it could, another each day (UTC), as the scripts of //conformance/testees do. Without
 * it, the test plays all.
 */
#ifndef KMES_TESTS_SHARE_H
#define KMES_TESTS_SHARE_H

#include <cstdint>

namespace kmes::tests {

struct Share {
    std::uint64_t number = 0; /* from 0 to shares - 1 */
    std::uint64_t shares = 1;

    bool has(std::uint64_t index) const { return index % shares == number; }
};

/* Ends the test with a message if KMES_SHARE is not a number from 1 to 1000. */
Share share_of_today();

}  // namespace kmes::tests

#endif
