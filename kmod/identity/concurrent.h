// SPDX-License-Identifier: GPL-2.0-only
//
// Resizes while other threads emit. The module plays first, with threads: on each CPU of a world
// one emits a stream from the seed, and another resizes in pieces. The last event in each retired
// buffer says where its resize happened. Then the producer in this process plays the same stream,
// with whole swaps at those places. In all buffers, metadata, statistics and every byte from
// tail_pos to write_pos must be equal. (Other bytes of a new buffer were copied before they were
// overwritten, which depends on timing.)
#ifndef KMES_KMOD_IDENTITY_CONCURRENT_H_
#define KMES_KMOD_IDENTITY_CONCURRENT_H_

#include <cstdint>

#include "kmod/identity/player.h"

namespace kmes::identity {

Played play_concurrently(std::uint64_t seed);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_CONCURRENT_H_
