// SPDX-License-Identifier: MIT
//
// See covering.h.
#include "conformance/explorer/covering.h"

#include <algorithm>

namespace kmes::conformance {

namespace {

// The pairs of values of two different factors, each with an index in a row of flags.
class Pairs {
  public:
    explicit Pairs(const std::vector<std::size_t>& sizes) : sizes_(sizes) {
        std::size_t count = 0;
        for (std::size_t one = 0; one < sizes.size(); ++one) {
            for (std::size_t other = one + 1; other < sizes.size(); ++other) {
                begin_.push_back(count);
                count += sizes[one] * sizes[other];
            }
        }
        is_open_.assign(count, false);
    }

    void open(const Combination& combination) {
        each(combination, [this](std::size_t place) { is_open_[place] = true; });
    }
    void close(const Combination& combination) {
        each(combination, [this](std::size_t place) { is_open_[place] = false; });
    }
    std::size_t open_of(const Combination& combination) const {
        std::size_t count = 0;
        each(combination, [&](std::size_t place) { count += is_open_[place] ? 1 : 0; });
        return count;
    }

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
    std::vector<std::size_t> begin_;  // for two factors
    std::vector<bool> is_open_;
};

}  // namespace

std::vector<Combination> product_of(const std::vector<std::size_t>& sizes,
                                    const IsAllowed& is_allowed) {
    std::vector<Combination> product;
    if (std::ranges::find(sizes, std::size_t{0}) != sizes.end()) return product;
    for (Combination next(sizes.size(), 0);;) {
        if (!is_allowed || is_allowed(next)) product.push_back(next);
        std::size_t factor = sizes.size();
        while (factor > 0 && ++next[factor - 1] == sizes[factor - 1]) next[--factor] = 0;
        if (factor == 0) return product;
    }
}

std::vector<Combination> pairwise_cover(const std::vector<std::size_t>& sizes,
                                        const IsAllowed& is_allowed) {
    const std::vector<Combination> product = product_of(sizes, is_allowed);
    Pairs pairs(sizes);
    for (const Combination& each : product) pairs.open(each);
    std::vector<Combination> cover;
    // One factor has no pairs: each value is one combination.
    if (sizes.size() < 2) return product;
    for (;;) {
        const auto new_pairs = [&](const Combination& each) { return pairs.open_of(each); };
        // The first of the best, so that the result is the same on each machine.
        const auto best = std::ranges::max_element(product, {}, new_pairs);
        if (best == product.end() || new_pairs(*best) == 0) return cover;
        pairs.close(*best);
        cover.push_back(*best);
    }
}

}  // namespace kmes::conformance
