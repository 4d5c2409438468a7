// SPDX-License-Identifier: MIT
//
// The bytes choose the interleaving. The first byte selects a scenario (in schedule.cc). Each
// further byte selects the next step: some accesses of the producer's operation or of a consumer,
// or the next operation. Finally everything runs to its end. The result is a script, which is then
// played.
#ifndef KMES_FUZZ_TARGETS_SCHEDULE_H_
#define KMES_FUZZ_TARGETS_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_schedule(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SCHEDULE_H_
