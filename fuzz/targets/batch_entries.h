// SPDX-License-Identifier: MIT
//
// kmes_batch_emit_entries against the same events one by one, in two worlds: the same result, the
// same bytes, positions and statistics.
#ifndef KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_
#define KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

void play_entries(const std::uint8_t* data, std::size_t size);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_
