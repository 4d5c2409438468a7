// SPDX-License-Identifier: MIT
//
// Fibers: they continue where they paused, and an exception of the body leaves resume().
#include "props/machine/fiber.h"

#include <gtest/gtest.h>

#include <new>

namespace kmes::props {
namespace {

TEST(Fiber, ContinuesWhereItPaused) {
    int steps = 0;
    Fiber fiber([&steps] {
        steps = 1;
        Fiber::pause();
        steps = 2;
    });
    EXPECT_FALSE(fiber.has_begun());
    fiber.resume();
    EXPECT_EQ(steps, 1);
    EXPECT_FALSE(fiber.has_ended());
    fiber.resume();
    EXPECT_EQ(steps, 2);
    EXPECT_TRUE(fiber.has_ended());
}

TEST(Fiber, AnExceptionOfTheBodyLeavesResume) {
    Fiber fiber([] {
        Fiber::pause();
        throw std::bad_alloc();
    });
    fiber.resume();
    EXPECT_THROW(fiber.resume(), std::bad_alloc);
    EXPECT_TRUE(fiber.has_ended());
    fiber.resume();  // does nothing
}

}  // namespace
}  // namespace kmes::props
