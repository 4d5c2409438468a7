// SPDX-License-Identifier: MIT
//
// Every two values meet in a pairwise cover.
#include "conformance/explorer/covering.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kmes::conformance {
namespace {

bool has_pair(const std::vector<Combination>& all, std::size_t one, std::size_t value,
              std::size_t other, std::size_t other_value) {
    return std::any_of(all.begin(), all.end(), [&](const Combination& each) {
        return each[one] == value && each[other] == other_value;
    });
}

// Checks all pairs that the product contains.
void expect_every_pair(const std::vector<std::size_t>& sizes, const IsAllowed& is_allowed) {
    const std::vector<Combination> product = product_of(sizes, is_allowed);
    const std::vector<Combination> cover = pairwise_cover(sizes, is_allowed);
    for (std::size_t one = 0; one < sizes.size(); ++one) {
        for (std::size_t other = one + 1; other < sizes.size(); ++other) {
            for (std::size_t value = 0; value < sizes[one]; ++value) {
                for (std::size_t other_value = 0; other_value < sizes[other]; ++other_value)
                    EXPECT_EQ(has_pair(cover, one, value, other, other_value),
                              has_pair(product, one, value, other, other_value))
                        << one << "=" << value << ", " << other << "=" << other_value;
            }
        }
    }
}

TEST(Covering, TheProductHasEveryCombinationOnce) {
    const std::vector<Combination> product = product_of({2, 3});
    EXPECT_EQ(product, (std::vector<Combination>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
    EXPECT_TRUE(product_of({2, 0, 3}).empty());
    EXPECT_EQ(product_of({}), std::vector<Combination>{{}});
}

TEST(Covering, EveryPairMeets) {
    expect_every_pair({10, 14, 6}, nullptr);
    expect_every_pair({2, 2, 2, 2, 2}, nullptr);
    expect_every_pair({1, 7}, nullptr);
    expect_every_pair({5}, nullptr);
}

TEST(Covering, EveryAllowedPairMeetsAndNoOther) {
    const IsAllowed is_allowed = [](const Combination& each) {
        return !(each[0] == 1 && each[1] == 2) && !(each[1] == 0 && each[2] > 1);
    };
    expect_every_pair({4, 5, 3}, is_allowed);
    for (const Combination& each : pairwise_cover({4, 5, 3}, is_allowed))
        EXPECT_TRUE(is_allowed(each));
}

TEST(Covering, IsMuchSmallerThanTheProduct) {
    const std::vector<Combination> cover = pairwise_cover({10, 14, 6});
    EXPECT_GE(cover.size(), 140u);  // the product of the two largest factors
    EXPECT_LT(cover.size(), 200u);
    EXPECT_EQ(product_of({10, 14, 6}).size(), 840u);
}

TEST(Covering, TheFirstOnesHaveTheMostNewPairs) {
    const std::vector<Combination> cover = pairwise_cover({6, 6, 6});
    // If no value repeats, each combination has three new pairs.
    for (std::size_t i = 1; i < 6; ++i) {
        for (std::size_t before = 0; before < i; ++before) EXPECT_NE(cover[i], cover[before]);
    }
    EXPECT_EQ(cover, pairwise_cover({6, 6, 6}));
}

TEST(Covering, OfNothingAllowedIsEmpty) {
    EXPECT_TRUE(pairwise_cover({3, 3}, [](const Combination&) { return false; }).empty());
}

}  // namespace
}  // namespace kmes::conformance
