// SPDX-License-Identifier: MIT
//
// The emit calls to the CPU of their thread (struct kmes_call, `pin`). Nothing is fetched while the
// thread is pinned, every pin is undone, and *emitted is the number of written events.
#ifndef KMES_FUZZ_TARGETS_BATCH_PINNED_H_
#define KMES_FUZZ_TARGETS_BATCH_PINNED_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

void play_pinned(const std::uint8_t* data, std::size_t size);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_BATCH_PINNED_H_
