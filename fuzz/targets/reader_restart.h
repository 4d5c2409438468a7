// SPDX-License-Identifier: MIT
//
// The reader beside producers that are killed and come again (E25): it delivers nothing twice
// within a session, also where another reader goes on from its place, and every call ends.
#ifndef KMES_FUZZ_TARGETS_READER_RESTART_H_
#define KMES_FUZZ_TARGETS_READER_RESTART_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

void play_restarts(const std::uint8_t* data, std::size_t size);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_READER_RESTART_H_
