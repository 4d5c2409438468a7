// SPDX-License-Identifier: MIT
//
// Combinations, and the pairs of values that meet in them.
#include "conformance/explorer/covering.h"

#include <gtest/gtest.h>

#include <set>

namespace kmes::conformance {
namespace {

TEST(Covering, TheProductHasEveryCombinationOnce) {
    const std::vector<Combination> product = product_of({2, 3});
    EXPECT_EQ(product, (std::vector<Combination>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
    EXPECT_TRUE(product_of({2, 0, 3}).empty());
    EXPECT_EQ(product_of({}), std::vector<Combination>{{}});
}

TEST(Covering, EachPairOfTheProductHasItsOwnIndex) {
    const Pairs pairs({4, 5, 3});
    EXPECT_EQ(pairs.possible(), 4u * 5 + 4 * 3 + 5 * 3);
    std::set<std::size_t> indices;
    for (const Combination& each : product_of({4, 5, 3})) {
        const std::vector<std::size_t> of_each = pairs.of(each);
        EXPECT_EQ(of_each.size(), 3u);
        indices.insert(of_each.begin(), of_each.end());
    }
    EXPECT_EQ(indices.size(), pairs.possible());
    EXPECT_EQ(*indices.rbegin(), pairs.possible() - 1);
}

TEST(Covering, TwoCombinationsShareThePairsOfTheirEqualValues) {
    Pairs pairs({4, 5, 3});
    for (const std::size_t pair : pairs.of({1, 2, 0})) pairs.add(pair);
    EXPECT_EQ(pairs.size(), 3u);
    EXPECT_EQ(pairs.count({1, 2, 0}), 3u);
    EXPECT_EQ(pairs.count({1, 2, 1}), 1u);
    EXPECT_EQ(pairs.count({1, 3, 1}), 0u);
    pairs.remove(pairs.of({1, 2, 2}).front());
    EXPECT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs.count({1, 2, 1}), 0u);
}

TEST(Covering, OneFactorHasNoPairs) {
    EXPECT_EQ(Pairs({5}).possible(), 0u);
    EXPECT_TRUE(Pairs({5}).of({3}).empty());
}

}  // namespace
}  // namespace kmes::conformance
