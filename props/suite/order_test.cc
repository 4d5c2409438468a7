// SPDX-License-Identifier: MIT
//
// A verdict does not depend on the order of the cases, nor on the other cases of the run. Some
// random cases in random order give a correct and a broken consumer the same verdicts and findings
// as a whole run. So does a case alone. The clause of the report may depend on which other cases
// failed (conformance/main/attribution.h), so the clause of the first finding is compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kmes/tests/share.h"
#include "props/suite/draw.h"

namespace kmes::props::suite {
namespace {

constexpr int kSamples = 1;     // of each consumer
constexpr int kCasesAlone = 3;  // of each sample

// In these cases the result depends on whether producer or consumer is faster. A correct consumer
// passes either way, a broken one may be lucky.
bool is_a_race(const std::string& id) {
    return id.find("under-load") != std::string::npos;
}

// A copy without bounds ends in a missing page or in another ring, depending on the addresses. The
// clause that it breaks varies, but it always fails.
bool runs_wild(const Consumer& consumer) {
    return std::count(consumer.bugs.begin(), consumer.bugs.end(), "no-bounds-check") != 0;
}

// Verdict of each case, and the clause of its first finding.
using Verdicts = std::map<std::string, std::string>;

RunOptions run_of(const Consumer& consumer, const std::vector<std::string>& filters,
                  std::vector<std::string> options = {}) {
    RunOptions run;
    run.filters = filters;
    run.options = std::move(options);
    if (!consumer.bugs.empty()) run.timeout_scale = kScaleOfBroken;
    return run;
}

Verdicts verdicts_of(const Consumer& consumer, const RunOptions& run) {
    Verdicts verdicts;
    for (const Verdict& each : run_suite(consumer, run)) {
        if (is_a_race(each.id)) continue;
        verdicts[each.id] = each.verdict + (runs_wild(consumer) ? "" : " " + each.found_clause);
    }
    return verdicts;
}

// About a quarter of the cases.
rc::Gen<std::vector<std::string>> some_cases() {
    return rc::gen::exec([] {
        std::vector<std::string> drawn;
        for (const std::string& id : all_case_ids()) {
            if (draw_below(4) == 3 && !is_a_race(id)) drawn.push_back(id);
        }
        if (drawn.empty()) drawn.push_back(all_case_ids().front());
        return drawn;
    });
}

void expect_the_same(const Consumer& consumer, const Verdicts& whole, const RunOptions& run) {
    for (const auto& [id, verdict] : verdicts_of(consumer, run)) {
        RC_LOG() << id << ": " << verdict << "; in a whole run: " << whole.at(id)
                 << "; see it again: " << command(consumer, run) << "\n";
        RC_ASSERT(verdict == whole.at(id));
    }
}

void expect_no_dependence(const Consumer& consumer, std::size_t least_failed) {
    const Verdicts whole = verdicts_of(consumer, run_of(consumer, {}));
    const auto failed = std::count_if(whole.begin(), whole.end(), [](const auto& each) {
        return each.second.substr(0, 4) == "fail";
    });
    EXPECT_GE(static_cast<std::size_t>(failed), least_failed);
    EXPECT_LE(static_cast<std::size_t>(failed), consumer.bugs.empty() ? 0 : whole.size() - 20);
    EXPECT_TRUE(holds("the order makes no difference", kSamples, [&] {
        const std::vector<std::string> cases = *some_cases();
        const std::string seed = std::to_string(draw_below(1000000));
        expect_the_same(consumer, whole, run_of(consumer, cases, {"--shuffle", seed}));
        for (int i = 0; i < kCasesAlone; ++i) {
            const std::string id = *rc::gen::elementOf(cases);
            expect_the_same(consumer, whole, run_of(consumer, {id}));
        }
    }));
}

Consumer with(const std::vector<std::string>& bugs) {
    Consumer consumer;
    for (const std::string& bug : bugs) make(consumer, mistake(bug));
    return consumer;
}

// CI plays one of the two consumers each day (KMES_SHARE, BUILD.bazel).
bool is_todays(std::uint64_t number) {
    return tests::share_of_today().has(number);
}

TEST(Verdicts, OfARightConsumerDoNotDependOnTheOrder) {
    if (!is_todays(0)) GTEST_SKIP() << "played tomorrow";
    expect_no_dependence({}, 0);
}

TEST(Verdicts, OfOneThatLosesCountDoNotDependOnTheOrder) {
    expect_no_dependence(with({"loss-count-one-too-high"}), 15);
}

TEST(Verdicts, OfOneThatReadsTornEventsDoNotDependOnTheOrder) {
    expect_no_dependence(with({"no-tail-recheck"}), 4);
}

TEST(Verdicts, OfOneThatCrashesDoNotDependOnTheOrder) {
    expect_no_dependence(with({"no-bounds-check"}), 2);
}

TEST(Verdicts, OfOneThatLeavesBuffersBehindDoNotDependOnTheOrder) {
    if (!is_todays(1)) GTEST_SKIP() << "played tomorrow";
    expect_no_dependence(with({"leaks-buffers", "last-sequence-of-one-buffer"}), 5);
}

}  // namespace
}  // namespace kmes::props::suite
