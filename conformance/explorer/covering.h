// SPDX-License-Identifier: MIT
//
// The parts of a covering array: few combinations of values in which every two values meet. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_COVERING_H_
#define KMES_CONFORMANCE_EXPLORER_COVERING_H_

#include <cstddef>
#include <vector>

namespace kmes::conformance {

// One value of each factor, as its index.
using Combination = std::vector<std::size_t>;

// Returns every combination; the last factor changes fastest. `sizes`: the number of values of each
// factor.
std::vector<Combination> product_of(const std::vector<std::size_t>& sizes);

// A set of pairs. A pair is one value of each of two different factors.
class Pairs {
  public:
    // The set is empty.
    explicit Pairs(const std::vector<std::size_t>& sizes);

    // Returns the indices of the pairs of a combination. All are less than possible().
    std::vector<std::size_t> of(const Combination& combination) const;
    // The number of all pairs of these factors.
    std::size_t possible() const { return contains_.size(); }

    void add(std::size_t pair) { contains_[pair] = true; }
    void remove(std::size_t pair) { contains_[pair] = false; }
    bool contains(std::size_t pair) const { return contains_[pair]; }
    std::size_t size() const;
    // The number of pairs of the combination that are in the set.
    std::size_t count(const Combination& combination) const;

  private:
    template <typename Use>
    void each(const Combination& combination, const Use& use) const {
        auto begin = begin_.begin();
        for (std::size_t one = 0; one < combination.size(); ++one) {
            for (std::size_t other = one + 1; other < combination.size(); ++other)
                use(*begin++ + combination[one] * sizes_[other] + combination[other]);
        }
    }

    std::vector<std::size_t> sizes_;
    std::vector<std::size_t> begin_;  // for two factors: the index of their first pair
    std::vector<bool> contains_;      // by the index of the pair
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVERING_H_
