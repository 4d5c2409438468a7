// SPDX-License-Identifier: GPL-2.0-only
//
// An input: bytes from which a player makes calls (calls.h). Any bytes are valid; a read after the
// end returns zeros.
#ifndef KMES_KMOD_FUZZ_INPUT_H_
#define KMES_KMOD_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "props/script/random.h"

namespace kmes::fuzz {

using Input = std::vector<std::uint8_t>;

inline constexpr std::size_t kMostBytes = 400;

class Bytes {
  public:
    explicit Bytes(const Input& input) : input_(input) {}
    bool is_empty() const { return at_ >= input_.size(); }
    std::uint8_t byte() { return is_empty() ? 0 : input_[at_++]; }
    std::uint64_t below(std::uint64_t bound) { return byte() % bound; }
    // Returns a little-endian number of `bytes` bytes.
    std::uint64_t word(unsigned bytes);
    // Returns a number for tests of limits: small, near a power of two, or any.
    std::uint64_t number();

  private:
    const Input& input_;
    std::size_t at_ = 0;
};

Input random_input(props::Random& random);
// Takes pieces from `other`.
Input mutate(Input input, const Input& other, props::Random& random);

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_INPUT_H_
