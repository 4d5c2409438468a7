// SPDX-License-Identifier: MIT
//
// The suite fails every broken consumer, whatever correct choices it makes otherwise. It names a
// clause of the mistake, or of a case for it. The second is weak: a case that fails without a
// finding blames its own clause, for any reason.
#include <gtest/gtest.h>

#include <algorithm>

#include "kmes/tests/share.h"
#include "props/suite/draw.h"

namespace kmes::props::suite {
namespace {

constexpr int kSamplesOfPairs = 6;

void expect_failed(const Consumer& consumer) {
    RunOptions options;
    options.filters = cases_of(consumer);
    options.timeout_scale = kScaleOfBroken;
    const std::vector<Verdict> verdicts = run_suite(consumer, options);
    RC_LOG() << describe(consumer, verdicts, options);
    const std::set<std::string> clauses = clauses_of(consumer);
    // The consequences of a mistake can break other clauses, too, and the schedule decides which
    // one a case sees first. One verdict must name the mistake.
    bool is_named = false;
    for (const Verdict& each : verdicts) {
        if (each.verdict == "pass") continue;
        RC_ASSERT(each.verdict == "fail");
        is_named = is_named || clauses.contains(each.clause);
    }
    // Also at once: a failure that depends on the machine's load may be gone after shrinking.
    if (!is_named) std::cerr << describe(consumer, verdicts, options);
    RC_ASSERT(is_named);
}

TEST(Suite, HasATableOfAllMistakesOfTheProgram) {
    std::vector<std::string> named;
    for (const Mistake& each : mistakes()) {
        named.push_back(each.name);
        EXPECT_FALSE(each.clauses.empty()) << each.name;
        for (const std::string& id : each.cases) {
            const auto& ids = all_case_ids();
            EXPECT_NE(std::find(ids.begin(), ids.end(), id), ids.end()) << id;
        }
        for (const Need& need : each.needs) EXPECT_NE(need.reason, "") << each.name;
    }
    EXPECT_EQ(named, vocabulary().bugs);
}

TEST(Suite, FailsEachMistakeOfAConsumerThatIsRightElse) {
    const tests::Share share = tests::share_of_today();
    for (std::size_t i = 0; i < mistakes().size(); ++i) {
        if (!share.has(i)) continue;
        const Mistake& each = mistakes()[i];
        EXPECT_TRUE(holds("fails: " + each.name, 1,
                          [&each] { expect_failed(*broken_consumers({each.name})); }));
    }
}

TEST(Suite, FailsAConsumerOfTwoMistakes) {
    EXPECT_TRUE(holds("two mistakes are failed", kSamplesOfPairs,
                      [] { expect_failed(*consumers_of_two_mistakes()); }));
}

}  // namespace
}  // namespace kmes::props::suite
