// SPDX-License-Identifier: GPL-2.0-only
//
// Scales a script whose rings are smaller than a page, the minimum that can be mapped twice. (The
// script format permits 256 bytes.) Multiplies capacities, sizes of events, pieces of payloads,
// positions and shifts by one power of two. So the events fit, wrap and drop at the same operations
// as before.
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
