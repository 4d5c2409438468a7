// SPDX-License-Identifier: MIT
#include "conformance/stage/repeats.h"

#include <gtest/gtest.h>

namespace kmes::conformance {
namespace {

TEST(Repeats, AreCountedUntilSomethingChanges) {
    Repeats repeats;
    EXPECT_EQ(repeats.count(5), 0u);
    repeats.note(5);
    repeats.note(5);
    EXPECT_EQ(repeats.count(5), 2u);
    EXPECT_EQ(repeats.count(6), 0u);
    repeats.note(6);
    EXPECT_EQ(repeats.count(6), 1u);
    EXPECT_EQ(repeats.count(5), 0u);
}

}  // namespace
}  // namespace kmes::conformance
