// SPDX-License-Identifier: MIT
//
// A covering array: few combinations of values in which every two values meet. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_COVERING_H_
#define KMES_CONFORMANCE_EXPLORER_COVERING_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace kmes::conformance {

// One value of each factor, as its index.
using Combination = std::vector<std::size_t>;
// Whether a combination makes sense. None: each does.
using IsAllowed = std::function<bool(const Combination&)>;

// Every allowed combination, the last factor changing fastest. `sizes`: how many values each factor
// has.
std::vector<Combination> product_of(const std::vector<std::size_t>& sizes,
                                    const IsAllowed& is_allowed = nullptr);

// Some combinations of the product. Two values of two factors that meet in an allowed combination
// meet in one of these, too. The first combinations have the most new pairs, so that a search that
// runs out of time has played most pairs. Deterministic. The time is that of the product times that
// of the cover: for products of some thousands.
std::vector<Combination> pairwise_cover(const std::vector<std::size_t>& sizes,
                                        const IsAllowed& is_allowed = nullptr);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVERING_H_
