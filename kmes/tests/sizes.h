/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sizes and positions of a test that runs in every form of the layout (docs/layouts.md). They are
 * written for form A, whose least event has 30 bytes: 60_b is 60 bytes there. If the header has
 * GUIDs, it is 4 times as many. Events, capacities and positions then have the same ratios, so a
 * scenario has the same wraps, laps and drops. A byte inside an event or a page is not scaled.
 */
#ifndef KMES_TESTS_SIZES_H
#define KMES_TESTS_SIZES_H

#include <cstdint>

#include "kmes/abi.h"

namespace kmes::tests {

constexpr std::uint64_t kScale = KMES_EVENT_HAS_GUIDS ? 4 : 1;

constexpr std::uint64_t operator""_b(unsigned long long bytes) {
    return kScale * bytes;
}

static_assert(30_b >= KMES_EVENT_MIN_BYTES, "tests write their least event as 30_b");

}  // namespace kmes::tests

#endif
