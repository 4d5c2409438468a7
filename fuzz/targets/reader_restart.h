// SPDX-License-Identifier: MIT
//
// The reader with producers that are killed and restarted (E25). Within a session it delivers
// nothing twice, even if another reader continues at its position, and every call ends.
#ifndef KMES_FUZZ_TARGETS_READER_RESTART_H_
#define KMES_FUZZ_TARGETS_READER_RESTART_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

void play_restarts(const std::uint8_t* data, std::size_t size);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_READER_RESTART_H_
