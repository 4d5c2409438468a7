// SPDX-License-Identifier: MIT
//
// The configurations do what their names say: assertions are on in each of them, and under a
// sanitizer a planted bug ends the process with that sanitizer's report, so that silence elsewhere
// means something. A configuration whose flags in .bazelrc got lost fails here.
#include <gtest/gtest.h>

#include <cassert>
#include <climits>
#include <cstdlib>
#include <thread>

// Entry points of the sanitizers' run-time libraries; null where they are not linked.
extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
__attribute__((weak)) void __ubsan_handle_add_overflow_abort();
}

namespace {

enum class Configuration { kPlain, kAsan, kUbsan, kTsan };

// What Bazel was asked for; the BUILD file says it by a macro of this target.
constexpr Configuration kAsked = Configuration::KMES_CONFIGURATION;

// What the planted bugs work on: the compiler must not see the values.
volatile int g_one = 1;
volatile int g_sum = 0;

void use_after_free() {
    int* number = static_cast<int*>(std::malloc(sizeof(int)));
    *number = g_one;
    int* volatile kept = number;
    std::free(number);
    g_sum = *kept;
}

void overflow() {
    int sum = INT_MAX;
    sum += g_one;
    g_sum = sum;
}

void race() {
    int plain = 0;
    const auto count = [&plain] {
        for (int i = 0; i < 100'000; ++i) *const_cast<volatile int*>(&plain) = plain + 1;
    };
    std::thread other(count);
    count();
    other.join();
    g_sum = plain;
}

class ConfigurationDeathTest : public ::testing::Test {
  protected:
    // A child that is forked while threads run is no place for a sanitizer's report.
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ConfigurationDeathTest, AssertionsAreOn) {
    EXPECT_DEATH(assert(g_one == 2), "g_one == 2");
}

// A sanitizer's run-time library is linked where it was asked for, and nowhere else.
TEST(Configuration, HasTheSanitizerItWasAskedFor) {
    EXPECT_EQ(__asan_init != nullptr, kAsked == Configuration::kAsan);
    EXPECT_EQ(__ubsan_handle_add_overflow_abort != nullptr && __asan_init == nullptr &&
                  __tsan_init == nullptr,
              kAsked == Configuration::kUbsan);
    EXPECT_EQ(__tsan_init != nullptr, kAsked == Configuration::kTsan);
}

TEST_F(ConfigurationDeathTest, APlantedBugIsReported) {
    if (kAsked == Configuration::kAsan) {
        EXPECT_DEATH(use_after_free(), "heap-use-after-free");
    }
    if (kAsked == Configuration::kAsan || kAsked == Configuration::kUbsan) {
        EXPECT_DEATH(overflow(), "signed integer overflow");
    }
    if (kAsked == Configuration::kTsan) {
        EXPECT_DEATH(race(), "data race");
    }
}

}  // namespace
