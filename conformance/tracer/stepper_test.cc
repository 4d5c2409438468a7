// SPDX-License-Identifier: MIT
//
// The stepper: whatever an instruction does, it does the same under guards, in each of the ways in
// which a guarded access is done.

#include <map>
#include <sstream>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;
using Way = GuardStep::Way;

// At the same addresses every time, with data that no two places share.
struct FormsRun {
    explicit FormsRun(Interception interception) : run(make_options(interception), 1) {
        uint32_t number = 1;
        for (size_t i = 0; i < 65536; ++i) {
            number = number * 1664525 + 1013904223;
            run.buffers[0]->data()[i] = static_cast<uint8_t>(number >> 24);
        }
    }
    static TracerOptions make_options(Interception interception) {
        TracerOptions options = options_for(interception);
        options.fixed_addresses = true;
        options.shown_output_bytes = 1u << 20;
        return options;
    }
    // To the place where the testee waits for its guards.
    std::optional<MappingId> start() {
        run.start("forms");
        const auto mapped = run.next<Mapped>();
        if (!mapped || !run.next<FutexWait>()) return std::nullopt;
        return mapped->mapping.id;
    }
    void go_on() { *run.buffers[0]->word() = 1; }
    TestRun run;
};

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> native_forms(Interception interception) {
    FormsRun forms(interception);
    EXPECT_TRUE(forms.start());
    forms.go_on();
    const Ended ended = forms.run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    return lines_of(forms.run.tracer.standard_output());
}

class StepperTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, StepperTest, kBothWays, name_of);

TEST_P(StepperTest, EveryInstructionDoesTheSameUnderGuards) {
    const std::vector<std::string> expected = native_forms(GetParam());
    ASSERT_GT(expected.size(), 150u);
    FormsRun forms(GetParam());
    const auto mapping = forms.start();
    ASSERT_TRUE(mapping);
    ASSERT_TRUE(forms.run.tracer.guard_pages(*mapping, 0, 33));
    std::map<Way, int> ways;
    forms.run.tracer.set_guard_handler([&](const GuardHit& hit) {
        const GuardStep step = forms.run.tracer.step_guarded(hit.tid);
        EXPECT_EQ(step.outcome, GuardStep::Outcome::kDone) << hit.code.describe();
        if (getenv("KMES_TRACER_VERBOSE") != nullptr)
            printf("%d %s\n", static_cast<int>(step.way), hit.code.describe().c_str());
        ++ways[step.way];
        return GuardAnswer::kStep;
    });
    forms.go_on();
    const Ended ended = forms.run.finish(
        [](const TracerEvent& event) { EXPECT_FALSE(std::holds_alternative<GuardHit>(event)); });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    const std::vector<std::string> lines = lines_of(forms.run.tracer.standard_output());
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], expected[i]);
    EXPECT_GT(ways[Way::kEmulated], 100);
    EXPECT_GT(ways[Way::kRedirected], 20);
    EXPECT_GT(ways[Way::kProtected], 0);
    EXPECT_LT(ways[Way::kProtected], 20);
}

}  // namespace
}  // namespace kmes::conformance
