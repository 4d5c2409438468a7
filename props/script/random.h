// SPDX-License-Identifier: MIT
//
// Numbers from a seed, the same on every machine, for drawing scripts. Not for anything that must
// be hard to guess.
#ifndef KMES_PROPS_SCRIPT_RANDOM_H_
#define KMES_PROPS_SCRIPT_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kmes::props {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    // splitmix64.
    std::uint64_t next() {
        std::uint64_t word = state_ += 0x9E3779B97F4A7C15ull;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
        return word ^ (word >> 31);
    }

    // Returns a number less than `bound`, which is not 0.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    // Both ends included.
    std::uint64_t between(std::uint64_t first, std::uint64_t last) {
        const std::uint64_t range = last - first + 1;
        return range == 0 ? next() : first + below(range);
    }
    bool chance(unsigned percent) { return below(100) < percent; }

    template <typename T>
    T pick(const std::vector<T>& from) {
        return from[below(from.size())];
    }
    // Returns an index with a probability by its weight. The sum of the weights is not 0.
    std::size_t weighted(std::span<const unsigned> weights) {
        std::uint64_t sum = 0;
        for (unsigned weight : weights) sum += weight;
        std::uint64_t at = below(sum);
        std::size_t index = 0;
        while (at >= weights[index]) at -= weights[index++];
        return index;
    }

  private:
    std::uint64_t state_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_RANDOM_H_
