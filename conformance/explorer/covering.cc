// SPDX-License-Identifier: MIT
//
// See covering.h.
#include "conformance/explorer/covering.h"

#include <algorithm>

namespace kmes::conformance {

std::vector<Combination> product_of(const std::vector<std::size_t>& sizes) {
    std::vector<Combination> product;
    if (std::ranges::find(sizes, std::size_t{0}) != sizes.end()) return product;
    for (Combination next(sizes.size(), 0);;) {
        product.push_back(next);
        std::size_t factor = sizes.size();
        while (factor > 0 && ++next[factor - 1] == sizes[factor - 1]) next[--factor] = 0;
        if (factor == 0) return product;
    }
}

Pairs::Pairs(const std::vector<std::size_t>& sizes) : sizes_(sizes) {
    std::size_t count = 0;
    for (std::size_t one = 0; one < sizes.size(); ++one) {
        for (std::size_t other = one + 1; other < sizes.size(); ++other) {
            begin_.push_back(count);
            count += sizes[one] * sizes[other];
        }
    }
    contains_.assign(count, false);
}

std::vector<std::size_t> Pairs::of(const Combination& combination) const {
    std::vector<std::size_t> pairs;
    each(combination, [&](std::size_t pair) { pairs.push_back(pair); });
    return pairs;
}

std::size_t Pairs::size() const {
    return static_cast<std::size_t>(std::ranges::count(contains_, true));
}

std::size_t Pairs::count(const Combination& combination) const {
    std::size_t count = 0;
    each(combination, [&](std::size_t pair) { count += contains_[pair] ? 1 : 0; });
    return count;
}

}  // namespace kmes::conformance
