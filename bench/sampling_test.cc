// SPDX-License-Identifier: MIT
//
// Tests the order of the samples and their repetitions, but not the figures.
#include "bench/sampling.h"

#include <gtest/gtest.h>

#include <string>

namespace kmes::bench {
namespace {

TEST(Quantile, IsTheNearestSample) {
    EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0.5), 3);
    EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0), 1);
    EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 1), 5);
    EXPECT_EQ(quantile({7}, 0.9), 7);
}

// With 0 tries each sample counts, so the calls are exactly those of the rounds.
TEST(Measure, TakesTurnsAndWarmsUpBeforeEachSample) {
    std::string calls;
    auto variant = [&](char name) {
        return Variant{std::string(1, name),
                       [&calls, name](std::uint64_t operations) {
                           calls += name + std::to_string(operations) + " ";
                       },
                       3, 5};
    };
    const auto figures = measure({variant('a'), variant('b')}, {.samples = 2, .tries = 0});

    EXPECT_EQ(calls, "a3 a5 b3 b5 a3 a5 b3 b5 ");
    ASSERT_EQ(figures.size(), 2u);
    EXPECT_EQ(figures[0].name, "a");
    EXPECT_EQ(figures[1].samples, 2u);
    EXPECT_EQ(figures[1].rejected, 0u);
    EXPECT_LE(figures[0].low, figures[0].median);
    EXPECT_LE(figures[0].median, figures[0].high);
}

// A disturbed sample is repeated `tries` times, and then counts.
TEST(Measure, TakesADisturbedSampleAgain) {
    int taken = 0;
    Variant variant{"own", {}};

    variant.take = [&taken] {
        taken++;
        return Sample{static_cast<double>(taken), taken != 3};
    };
    const auto figures = measure({variant}, {.samples = 2, .tries = 2});

    EXPECT_EQ(taken, 6);
    EXPECT_EQ(figures[0].rejected, 4u);
    EXPECT_EQ(figures[0].low, 3);
    EXPECT_EQ(figures[0].high, 6);
}

}  // namespace
}  // namespace kmes::bench
