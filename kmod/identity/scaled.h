// SPDX-License-Identifier: GPL-2.0-only
//
// Scripts for rings that can be mapped. The script format begins at 256 bytes of capacity; a page
// is the least that can be mapped twice. A script with smaller rings is made larger as a whole:
// capacities, sizes of events, pieces of payloads, positions and shifts times the same power of
// two, so that what fits, wraps and is cut does so at the same operation as before.
#ifndef KMES_KMOD_IDENTITY_SCALED_H_
#define KMES_KMOD_IDENTITY_SCALED_H_

#include <cstdint>

#include "props/script/script.h"

namespace kmes::identity {

struct Scaled {
    props::Script script;
    std::uint64_t factor = 1;
    std::uint64_t largest_capacity = 0;
};

Scaled scale(const props::Script& script);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_SCALED_H_
