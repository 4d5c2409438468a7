// SPDX-License-Identifier: GPL-2.0-only
//
// What is played: bytes, of which a player makes calls (calls.h). Any bytes at all are an input;
// one that is used up goes on with zeros. Mutations know nothing of calls.
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
    // Little-endian, so many bytes.
    std::uint64_t word(unsigned bytes);
    // A number where limits are: small, at a power of two, or anything.
    std::uint64_t number();

  private:
    const Input& input_;
    std::size_t at_ = 0;
};

Input random_input(props::Random& random);
// `other` is what pieces are taken from.
Input mutate(Input input, const Input& other, props::Random& random);

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_INPUT_H_
