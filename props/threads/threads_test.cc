// SPDX-License-Identifier: MIT
//
// The core, the producer and readers in every form as shipped, with real threads: mixes drawn from
// seeds. Runs in every configuration; under ThreadSanitizer a race ends it, too.
//
//   KMES_THREADS_SEED=N    the first seed; one run of it without KMES_THREADS_SECONDS
//   KMES_THREADS_SECONDS=N the duration
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <string>

#include "kmes/user/futex.h"
#include "props/threads/world.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kSeed = 20001;
constexpr std::uint64_t kRuns = 120;
constexpr std::uint64_t kEnough = 100000;  // more mixes than any run can play

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = getenv(variable);

    return text && *text ? strtoull(text, nullptr, 0) : otherwise;
}

void run_one(const Mix& mix, RunResult* sum) {
    SCOPED_TRACE(print_mix(mix) + "\nagain: KMES_THREADS_SEED=" + std::to_string(mix.seed) +
                 " (the schedule is the machine's)");
    const RunResult result = run_mix(mix);

    EXPECT_EQ(Finder::kNobody, result.finder) << result.error;
    sum->add(result);
}

// Three quarters are of any kind, one quarter of the narrow kinds in turn.
Mix mix_number(std::uint64_t seed) {
    constexpr Profile kProfiles[] = {Profile::kLaps, Profile::kSleeps, Profile::kResizes};

    return draw_mix(seed, seed % 4 ? Profile::kAny : kProfiles[seed / 4 % 3]);
}

TEST(ThreadsTest, WhatIsDeliveredIsWholeInOrderAndCountedAndNobodySleepsOnAnEvent) {
    const std::uint64_t seed = number_from("KMES_THREADS_SEED", kSeed);
    const std::uint64_t seconds = number_from("KMES_THREADS_SECONDS", 0);
    const std::uint64_t begin = kmes_clock_monotonic_ns();
    const std::uint64_t runs = seconds ? kEnough : getenv("KMES_THREADS_SEED") ? 1 : kRuns;
    RunResult sum;
    std::uint64_t done = 0;

    printf("seed %llu\n", static_cast<unsigned long long>(seed));
    while (done < runs && !HasFailure()) {
        run_one(mix_number(seed + done), &sum);
        done++;
        if (seconds && kmes_clock_monotonic_ns() - begin > seconds * 1000000000) break;
    }
    puts(print_counts(done, sum).c_str());
    // A test without the events that it is about would prove nothing. (The seeds are fixed, and
    // each of these events occurs in them, whatever the schedule.)
    if (done == kRuns) {
        EXPECT_GT(sum.events, 0u);
        EXPECT_GT(sum.switches, 0u);
    }
}

}  // namespace
}  // namespace kmes::props
