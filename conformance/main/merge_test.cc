// SPDX-License-Identifier: MIT
//
// Tests of the merge of the reports of shards.
#include "conformance/main/report_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The reports of two shards that both played a part of one case.
std::vector<RunReport> two_parts(Verdict one, Verdict other) {
    std::vector<RunReport> shards(2);
    for (std::uint32_t index = 0; index < 2; ++index) {
        CaseResult result;
        result.id = "b/1";
        result.verdict = index == 0 ? one : other;
        result.message = index == 0 ? "the first" : "the second";
        result.seconds = 1.0 + index;
        result.explored = Explored{100 + index, 1.5, true};
        shards[index].shard = Shard{index, 2, {"b/1"}};
        shards[index].results.push_back(result);
    }
    return shards;
}

TEST(Merge, AddsThePlaysOfTheParts) {
    const Merged merged = merge_shards(two_parts(Verdict::pass, Verdict::pass), {"0", "1"});
    ASSERT_EQ(merged.report.results.size(), 1u);
    const CaseResult& all = merged.report.results[0];
    EXPECT_EQ(all.verdict, Verdict::pass);
    EXPECT_EQ(all.explored->schedules, 201u);
    EXPECT_TRUE(all.explored->whole);
    EXPECT_EQ(all.seconds, 2.0);
    EXPECT_EQ(all.message, "201 schedules in 2 shards");
}

TEST(Merge, FailsWhereOnePartFailed) {
    for (const Verdict other :
         {Verdict::pass, Verdict::unsupported, Verdict::inconclusive, Verdict::suite_error}) {
        const Merged merged = merge_shards(two_parts(other, Verdict::fail), {"0", "1"});
        ASSERT_EQ(merged.report.results.size(), 1u);
        EXPECT_EQ(merged.report.results[0].verdict, Verdict::fail);
        EXPECT_EQ(merged.report.results[0].message, "the second");
        const Merged inconclusive = merge_shards(two_parts(Verdict::pass, other), {"0", "1"});
        EXPECT_EQ(inconclusive.report.results[0].verdict, other);
    }
    // The failure of the first shard wins, whatever the order of the files.
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::fail);
    std::swap(shards[0], shards[1]);
    EXPECT_EQ(merge_shards(shards, {"1", "0"}).report.results[0].message, "the first");
}

TEST(Merge, FailsWhereOneOfTwoFailuresIsUnknown) {
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::fail);
    shards[0].results[0].is_known = true;
    const Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_EQ(merged.report.results[0].message, "the second");
    EXPECT_FALSE(merged.report.results[0].is_known);
    EXPECT_EQ(exit_status(merged.report), 1);
}

// One shard may play a part of a known failure that passes. This says nothing about the whole case.
TEST(Merge, TakesADifferenceFromTheDecisivePart) {
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::pass);
    shards[0].results[0].is_known = true;
    shards[1].differences = {{"b/1", "b/1 passed"}};
    Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_THAT(merged.report.differences, IsEmpty());
    EXPECT_EQ(exit_status(merged.report), 0);
    shards = two_parts(Verdict::pass, Verdict::pass);
    for (RunReport& shard : shards) shard.differences = {{"b/1", "b/1 passed"}};
    merged = merge_shards(shards, {"0", "1"});
    EXPECT_THAT(merged.report.differences, ElementsAre(ListDifference{"b/1", "b/1 passed"}));
    EXPECT_EQ(exit_status(merged.report), 1);
}

TEST(Merge, KeepsThePreflightOnlyIfNoShardHasRun) {
    std::vector<RunReport> shards = two_parts(Verdict::pass, Verdict::pass);
    shards[0].preflight = "  no event\n";
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.preflight, "");
    shards[1].preflight = shards[0].preflight;
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.preflight, "  no event\n");
}

TEST(Merge, NamesACaseOfWhichAPartDidNotRun) {
    std::vector<RunReport> shards = two_parts(Verdict::pass, Verdict::pass);
    shards[1].results.clear();
    shards[1].not_run = {"b/1"};
    const Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_TRUE(merged.report.results.empty());
    EXPECT_THAT(merged.report.not_run, ElementsAre("b/1"));
    EXPECT_THAT(merged.missing, ElementsAre(HasSubstr("1 case did not run")));
    shards[0].results[0].verdict = Verdict::fail;
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.results.size(), 1u);
}

}  // namespace
}  // namespace kmes::conformance
