// SPDX-License-Identifier: GPL-2.0-only
//
// Scripts for rings that can be mapped. The script format permits capacities from 256 bytes on, but
// a page is the minimum that can be mapped twice. A script with smaller rings is scaled as a whole.
// Capacities, sizes of events, pieces of payloads, positions and shifts are multiplied by the same
// power of two. So events fit, wrap and are cut at the same operations as before.
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
