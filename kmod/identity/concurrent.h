// SPDX-License-Identifier: GPL-2.0-only
//
// Resizes while other threads emit. The module plays first, with threads: on each CPU of a world
// one emits a stream that the seed says, another resizes in pieces. Where each resize fell is read
// from the retired buffers, by the last event in them; then the producer in this process plays the
// same stream with whole swaps at those places. Metadata, statistics and every byte from tail_pos
// to write_pos, of all buffers, must be the same. (What lies outside of that in a new buffer is
// what was copied before it was overwritten, and depends on when.)
#ifndef KMES_KMOD_IDENTITY_CONCURRENT_H_
#define KMES_KMOD_IDENTITY_CONCURRENT_H_

#include <cstdint>

#include "kmod/identity/player.h"

namespace kmes::identity {

Played play_concurrently(std::uint64_t seed);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_CONCURRENT_H_
