// SPDX-License-Identifier: GPL-2.0-only
//
// Resizes while other threads emit. The module plays first: on each CPU of an instance, one thread
// emits a stream that the seed determines, and another resizes in pieces. The last event in each
// retired buffer shows the place of the resize in the stream. Then the producer in this process
// plays the same stream, with whole swaps at those places. The metadata, the statistics and the
// bytes from tail_pos to write_pos of all buffers must be equal. Other bytes of a new buffer depend
// on timing.
#ifndef KMES_KMOD_IDENTITY_CONCURRENT_H_
#define KMES_KMOD_IDENTITY_CONCURRENT_H_

#include <cstdint>

#include "kmod/identity/player.h"

namespace kmes::identity {

Played play_concurrently(std::uint64_t seed);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_CONCURRENT_H_
