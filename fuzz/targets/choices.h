// SPDX-License-Identifier: MIT
//
// Choices from a fuzzer's bytes. After their end, choices are numbers derived from the bytes, so
// that a short input is played to the end, too.
#ifndef KMES_FUZZ_TARGETS_CHOICES_H_
#define KMES_FUZZ_TARGETS_CHOICES_H_

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {

class Choices {
  public:
    Choices(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {
        for (std::size_t i = 0; i < size; i++) state_ = (state_ ^ data[i]) * 0x100000001b3;
    }

    // Returns 0 to count - 1; count is 1 to 256.
    std::uint64_t below(std::uint64_t count) {
        if (!bytes_.empty()) return bytes_.below(count);
        state_ = state_ * 6364136223846793005 + 1442695040888963407;
        return (state_ >> 33) % count;
    }
    bool one_in(std::uint64_t count) { return below(count) == 0; }
    FuzzedBytes* bytes() { return &bytes_; }

  private:
    FuzzedBytes bytes_;
    std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_CHOICES_H_
