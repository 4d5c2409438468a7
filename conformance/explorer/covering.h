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
// Whether a combination makes sense. An empty function: every combination does.
using IsAllowed = std::function<bool(const Combination&)>;

// Returns every allowed combination; the last factor changes fastest. `sizes`: the number of values
// of each factor.
std::vector<Combination> product_of(const std::vector<std::size_t>& sizes,
                                    const IsAllowed& is_allowed = nullptr);

// Returns some combinations of the product. Any two values of two factors that meet in an allowed
// combination meet in a returned one. The first combinations have the most new pairs, so a search
// that runs out of time has played most pairs. Deterministic. The time grows with the product times
// the result: suitable for products of some thousands.
std::vector<Combination> pairwise_cover(const std::vector<std::size_t>& sizes,
                                        const IsAllowed& is_allowed = nullptr);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVERING_H_
