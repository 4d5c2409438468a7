// SPDX-License-Identifier: MIT
//
// The bytes choose the interleaving: the first one a scenario (schedule.cc has them), each further
// one what runs next: an access or more of the producer's operation, of a consumer, or the next
// operation begins. At the end everything runs to its end. What comes of it is a script, which is
// then played.
#ifndef KMES_FUZZ_TARGETS_SCHEDULE_H_
#define KMES_FUZZ_TARGETS_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_schedule(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SCHEDULE_H_
