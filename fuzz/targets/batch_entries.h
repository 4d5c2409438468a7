// SPDX-License-Identifier: MIT
//
// Compares kmes_batch_emit_entries with the same events one by one, in two worlds: the results,
// bytes, positions and statistics must be equal.
#ifndef KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_
#define KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

void play_entries(const std::uint8_t* data, std::size_t size);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_BATCH_ENTRIES_H_
