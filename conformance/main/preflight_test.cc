// SPDX-License-Identifier: MIT
//
// What the preflight permits, with real testees: adapters with one mistake each, and working but
// faulty consumers.
#include "conformance/main/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "conformance/report/result.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

StageSettings settings_of(std::vector<std::string> testee) {
    static const StopFlag kGoOn;
    StageSettings settings;
    settings.stop = &kGoOn;
    settings.testee = std::move(testee);
    const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
    settings.timeout_scale = scale == nullptr ? 1.0 : std::atof(scale);
    return settings;
}

// A long line continues in the next one.
std::string in_one_line(const std::string& text) {
    std::string line;
    for (const char byte : text) {
        const bool is_blank = byte == '\n' || byte == ' ';
        if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : byte;
    }
    return line;
}

Preflight adapter(const std::string& mistake) {
    return run_preflight(play_smoke_stream,
                         settings_of({"conformance/main/testdata/adapter", mistake}));
}

TEST(Preflight, ARightAdapterGoesOn) {
    EXPECT_THAT(adapter("").mistakes, IsEmpty());
}

TEST(Preflight, AsManyCpusAsTheRunHas) {
    StageSettings settings = settings_of({"conformance/main/testdata/adapter", ""});
    settings.cpus = 1;
    EXPECT_THAT(run_preflight(play_smoke_stream, settings).mistakes, IsEmpty());
}

TEST(Preflight, AnAdapterThatCannotWorkIsNamed) {
    const std::vector<std::pair<std::string, std::string>> mistakes = {
        {"no-attach", "without having called kmes_attach (system call 1091)"},
        {"waits-first", "the program does not call kmes_attach"},
        {"silent", "all threads are blocked for good"},
        {"stdout", "the records are on standard output"},
        {"buffered", "has to be written before a sleep (is the output buffered?)"},
        {"fnv1", "FNV-1 of the payload (multiplies first)"},
        {"private-futex", "expected a shared futex, which another process can wake"},
        {"silent-one-fd-for-all",
         "the program did not map the buffer of CPU 1; it mapped that of CPU 0 2 times"},
        {"crash", "the program was killed by "},
    };
    for (const auto& [mistake, said] : mistakes) {
        const Preflight found = adapter(mistake);
        EXPECT_THAT(in_one_line(found.mistakes), HasSubstr(said)) << mistake;
        EXPECT_EQ(found.status, kExitFailed) << mistake;
        EXPECT_NE(found.first, "") << mistake;
        EXPECT_EQ(std::ranges::count(found.first, '\n'), 0) << found.first;
    }
}

TEST(Preflight, OneThatWorksInPartGoesOn) {
    for (const char* mistake : {"pieces", "after-the-end", "no-exit", "status"})
        EXPECT_THAT(adapter(mistake).mistakes, IsEmpty()) << mistake;
}

TEST(Preflight, ASanitizerThatNeedsPtraceMakesEveryRunInconclusive) {
    const Preflight found = adapter("sanitizer");
    EXPECT_THAT(found.mistakes, HasSubstr("LeakSanitizer"));
    EXPECT_EQ(found.status, kExitInconclusive);
}

// Each of them passes some case, so the cases must say what is wrong.
TEST(Preflight, AConsumerThatWorksAndIsWrongGoesOn) {
    for (const char* name :
         {"first-cpu-only", "first-buffer-for-all", "accepts-any-magic", "drops-empty-payloads",
          "eagain-of-the-wait-is-an-error", "no-recheck", "one-event-per-check", "polls", "spins",
          "never-exits", "exits-at-the-first-end", "moves-tail-pos", "hard-coded-capacity",
          "begins-at-write-pos"}) {
        const std::string program = std::string("conformance/testees/broken_") + name;
        const Preflight found = run_preflight(play_smoke_stream, settings_of({program}));
        EXPECT_THAT(found.mistakes, IsEmpty()) << name;
        EXPECT_EQ(found.cpus, 2u) << name;
    }
}

TEST(Preflight, ThatNobodyAsksForAWakeIsNamed) {
    const Preflight found = run_preflight(
        play_smoke_stream, settings_of({"conformance/testees/broken_never-asks-for-a-wake"}));
    EXPECT_THAT(in_one_line(found.mistakes), HasSubstr("expected need_wake 1 during the sleep"));
    EXPECT_THAT(found.mistakes, HasSubstr("[5.1.8.2-1]"));
}

// A suite that fails here may work in the run, and a slow machine is no mistake of the adapter.
TEST(Preflight, WhatSaysNothingOfTheAdapterGoesOn) {
    SmokeRun run;
    run.rings = std::make_unique<Rings>(RingsSetup{1, kSmokeCapacity, {}, {}});
    run.inconclusive = "no time";
    const auto once = [&run](const SmokeSettings&) { return std::move(run); };
    EXPECT_THAT(run_preflight(once, settings_of({"p"})).mistakes, IsEmpty());
    const auto fails = [](const SmokeSettings&) {
        SmokeRun failed;
        failed.suite_error = "no memory";
        return failed;
    };
    EXPECT_THAT(run_preflight(fails, settings_of({"p"})).mistakes, IsEmpty());
    const auto not_started = [](const SmokeSettings&) {
        SmokeRun failed;
        failed.suite_error = "no such file";
        failed.is_not_startable = true;
        return failed;
    };
    EXPECT_EQ(run_preflight(not_started, settings_of({"p"})).status, kExitSuite);
    EXPECT_TRUE(run_preflight(not_started, settings_of({"p"})).is_not_startable);
}

}  // namespace
}  // namespace kmes::conformance
