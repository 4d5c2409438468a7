// SPDX-License-Identifier: MIT
//
// The stepper: each instruction has the same effect under guards, whichever way executes the
// access.

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;
using Way = GuardStep::Way;

// A run at fixed addresses, with different data at every place.
struct FormsRun {
    explicit FormsRun(Interception interception, std::string testee_mode = "forms")
        : run(make_options(interception), 1), mode(std::move(testee_mode)) {
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
    // Runs until the testee waits for its guards.
    std::optional<MappingId> start() {
        run.start(mode);
        const auto mapped = run.next<Mapped>();
        if (!mapped || !run.next<FutexWait>()) return std::nullopt;
        return mapped->mapping.id;
    }
    void go_on() { *run.buffers[0]->word() = 1; }
    TestRun run;
    std::string mode;
};

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> native_forms(Interception interception, const std::string& mode) {
    FormsRun forms(interception, mode);
    EXPECT_TRUE(forms.start());
    forms.go_on();
    const Ended ended = forms.run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    return lines_of(forms.run.tracer.output().standard_output());
}

class StepperTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, StepperTest, kBothWays, name_of);

// Runs all forms with guards on the first pages, and compares their effects with those of a run
// without guards. Counts the ways of the steps in `ways`.
void compare_with_native(Interception interception, const std::string& mode, uint64_t pages,
                         std::map<Way, int>& ways) {
    const std::vector<std::string> expected = native_forms(interception, mode);
    ASSERT_GT(expected.size(), 150u);
    FormsRun forms(interception, mode);
    const auto mapping = forms.start();
    ASSERT_TRUE(mapping);
    ASSERT_TRUE(forms.run.tracer.guards().add(*mapping, 0, pages));
    forms.run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
        const GuardStep step = forms.run.tracer.guards().step(hit.tid);
        EXPECT_EQ(step.outcome, GuardStep::Outcome::kDone) << hit.code.describe();
        if (getenv("KMES_TRACER_VERBOSE") != nullptr)
            printf("%d %s\n", static_cast<int>(step.way), hit.code.describe().c_str());
        ++ways[step.way];
        return GuardAnswer::kStep;
    };
    forms.go_on();
    const Ended ended = forms.run.finish(
        [](const TracerEvent& event) { EXPECT_FALSE(std::holds_alternative<GuardHit>(event)); });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    const std::vector<std::string> lines = lines_of(forms.run.tracer.output().standard_output());
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], expected[i]);
}

TEST_P(StepperTest, EveryInstructionDoesTheSameUnderGuards) {
    std::map<Way, int> ways;
    compare_with_native(GetParam(), "forms", 33, ways);
    EXPECT_GT(ways[Way::kEmulated], 100);
    EXPECT_GT(ways[Way::kRedirected], 20);
    EXPECT_GT(ways[Way::kProtected], 0);
    EXPECT_LT(ways[Way::kProtected], 20);
}

// The guards end in the middle of elements that the forms access.
TEST_P(StepperTest, EveryInstructionDoesTheSameAtTheEndOfGuards) {
    std::map<Way, int> ways;
    compare_with_native(GetParam(), "forms", 3, ways);
    EXPECT_GT(ways[Way::kEmulated], 100);
}

// The ring has addresses of 32 bits, so an instruction with such addresses can access it.
TEST_P(StepperTest, EveryInstructionDoesTheSameAtLowAddresses) {
    std::map<Way, int> ways;
    compare_with_native(GetParam(), "forms-low", 33, ways);
    EXPECT_GT(ways[Way::kEmulated], 100);
}

// A signal arrives at each guarded instruction; its handler changes the registers.
TEST_P(StepperTest, AnInterruptedInstructionDoesTheSame) {
    const std::vector<std::string> expected = native_forms(GetParam(), "forms");
    FormsRun forms(GetParam());
    const auto mapping = forms.start();
    ASSERT_TRUE(mapping);
    ASSERT_TRUE(forms.run.tracer.guards().add(*mapping, 0, 33));
    forms.run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
        syscall(SYS_tgkill, forms.run.tracer.testee_pid(), hit.tid, SIGUSR1);
        return GuardAnswer::kStep;
    };
    forms.go_on();
    const Ended ended = forms.run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    const std::vector<std::string> lines = lines_of(forms.run.tracer.output().standard_output());
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], expected[i]);
}

// A read of any instruction is overwritten in the middle: the first words are old, the others new.
TEST_P(StepperTest, EveryWordCanBeTheTearingPoint) {
    constexpr uint64_t kMarkerAt = 300;
    constexpr size_t kCopied = 64;
    TestRun run(options_for(GetParam()));
    const auto put = [&](int letter) { memset(run.buffers[0]->data() + 1024, letter, kCopied); };
    ASSERT_TRUE(run.start_guarded("copies", 0, 33));
    uint32_t iteration = 0;
    bool is_first = false;
    std::vector<std::string> expected;
    run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
        if (hit.place.offset_bytes == kMarkerAt) {
            put('a');
            is_first = true;
            return GuardAnswer::kStep;
        }
        if (!std::exchange(is_first, false)) return GuardAnswer::kStep;
        uint32_t size = 0;
        for (const BufferAccess& access : hit.accesses) size += access.size_bytes;
        const uint32_t wanted = iteration++ % 9 * 8;
        const GuardStep step = run.tracer.guards().step_torn(hit.tid, wanted, [&] { put('b'); });
        EXPECT_EQ(step.outcome, GuardStep::Outcome::kDone) << hit.code.describe();
        EXPECT_NE(step.way, GuardStep::Way::kProtected) << hit.code.describe();
        EXPECT_EQ(step.split_bytes, std::min(wanted, size)) << hit.code.describe();
        const std::string old(step.split_bytes, 'a');
        const std::string young(kCopied - step.split_bytes, 'b');
        expected.push_back(hit.place.offset_bytes > 4096 + 1024 ? young + old : old + young);
        return GuardAnswer::kStep;
    };
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    const std::vector<std::string> lines = lines_of(run.tracer.output().standard_output());
    ASSERT_EQ(lines.size(), expected.size());
    ASSERT_GE(lines.size(), 5u * 9u);
    for (size_t i = 0; i < lines.size(); ++i)
        EXPECT_EQ(lines[i].substr(lines[i].find(' ') + 1), expected[i]) << lines[i];
}

// A handler's exception leaves wait(), with the thread stopped before its access.
TEST_P(StepperTest, AHandlersExceptionLeavesTheTracerWhole) {
    struct Thrown {};
    TestRun run(options_for(GetParam()), 1);
    ASSERT_TRUE(run.start_guarded("accesses", 0, 2));
    std::vector<uint64_t> offsets;
    run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
        offsets.push_back(hit.place.offset_bytes);
        if (offsets.size() == 1) throw Thrown();
        return offsets.size() == 3 ? GuardAnswer::kEvent : GuardAnswer::kStep;
    };
    EXPECT_THROW((void)run.tracer.wait(tracer_testing::limit()), Thrown);
    const Inspection inspection = run.tracer.inspect();
    ASSERT_EQ(inspection.threads.size(), 1u);
    EXPECT_EQ(inspection.threads[0].activity, Activity::kHeld);
    const auto hit = run.next<GuardHit>();
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->place.offset_bytes, 132u);
    EXPECT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(offsets, (std::vector<uint64_t>{64, 64, 132, 136, 128, 4101}));
}

TEST_P(StepperTest, AHandlersExceptionCanEndTheRun) {
    struct Thrown {};
    TestRun run(options_for(GetParam()), 1);
    ASSERT_TRUE(run.start_guarded("accesses", 0, 2));
    run.tracer.handlers().guarded_access = [](const GuardHit&) -> GuardAnswer { throw Thrown(); };
    EXPECT_THROW((void)run.tracer.wait(tracer_testing::limit()), Thrown);
    run.tracer.kill_all();
    EXPECT_EQ(run.finish().kind, EndKind::kKilled);
}

// An instruction can be described after the end of its program.
TEST_P(StepperTest, AnInstructionHasItsSourceLine) {
    for (const char* program : {"testee", "testee_static"}) {
        CodePlace place;
        {
            TestRun run(options_for(GetParam()));
            ASSERT_TRUE(run.start_guarded("accesses", 0, 1, program));
            const auto hit = run.next<GuardHit>();
            ASSERT_TRUE(hit);
            place = hit->code;
        }
        const CodeText& words = place.resolved();
        EXPECT_EQ(words.symbol.rfind("mode_accesses+", 0), 0u) << words.symbol;
        EXPECT_EQ(words.source.rfind("testee_faults.c:", 0), 0u) << words.source;
        EXPECT_NE(place.describe().find(words.source), std::string::npos) << place.describe();
    }
}

TEST_P(StepperTest, ChangedCodeIsDecodedAnew) {
    for (const char* mode : {"patched-by-mprotect", "patched-by-mem"}) {
        TestRun run(options_for(GetParam()), 1);
        run.buffers[0]->metadata()[64] = 1;
        run.buffers[0]->metadata()[72] = 2;
        ASSERT_TRUE(run.start_guarded(mode, 0, 1));
        std::vector<uint64_t> offsets;
        run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
            offsets.push_back(hit.place.offset_bytes);
            return GuardAnswer::kStep;
        };
        EXPECT_EQ(run.finish().exit_status, 0) << mode;
        EXPECT_EQ(offsets, (std::vector<uint64_t>{64, 72})) << mode;
        EXPECT_EQ(run.tracer.output().standard_output(), "first 1\nsecond 2\n") << mode;
    }
}

// One processor during the run, and the thread's own processors afterwards.
TEST_P(StepperTest, PinningIsUndone) {
    cpu_set_t before;
    cpu_set_t during;
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    {
        TracerOptions options = options_for(GetParam());
        options.pin_to_one_processor = true;
        TestRun run(options);
        run.start("accesses");
        ASSERT_TRUE(run.next<Mapped>());
        ASSERT_EQ(sched_getaffinity(run.tracer.testee_pid(), sizeof during, &during), 0);
        EXPECT_EQ(CPU_COUNT(&during), 1);
        EXPECT_EQ(run.finish().exit_status, 0);
    }
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

struct Seen {
    uint64_t offset_bytes;
    uint32_t size_bytes;
    bool is_read;
    bool is_write;
    uint64_t value;
    bool operator==(const Seen&) const = default;
};

// Every access of a run, and the output.
std::pair<std::vector<Seen>, std::string> accesses_of(const std::string& mode,
                                                      TracerOptions options) {
    TestRun run(std::move(options));
    memset(run.buffers[0]->data() + 1024, 'x', 64);
    run.start(mode);
    std::vector<Seen> all;
    const auto mapped = run.next<Mapped>();
    EXPECT_TRUE(mapped && run.tracer.guards().add(mapped->mapping.id, 0, 33));
    run.tracer.handlers().guarded_access = [&](const GuardHit& hit) {
        for (const BufferAccess& access : hit.accesses)
            all.push_back({access.place.offset_bytes, access.size_bytes, access.is_read,
                           access.is_write, access.value});
        return GuardAnswer::kStep;
    };
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    return {all, run.tracer.output().standard_output()};
}

// Guard pages and single steps see the same accesses, and do not change what the testee sees.
TEST_P(StepperTest, SingleStepsSeeWhatGuardPagesSee) {
    for (const char* mode : {"accesses", "rep-movsb", "copies"}) {
        TracerOptions options = options_for(GetParam());
        const auto guarded = accesses_of(mode, options);
        options.stepping = Stepping::kSingleStep;
        const auto stepped = accesses_of(mode, options);
        EXPECT_FALSE(guarded.first.empty()) << mode;
        EXPECT_EQ(guarded.first, stepped.first) << mode;
        EXPECT_EQ(guarded.second, stepped.second) << mode;
    }
}

// The processor reports what each step has touched: no access that the stepper missed.
TEST_P(StepperTest, WatchpointsSeeNothingThatTheStepperDidNotSee) {
    for (const char* mode : {"accesses", "rep-movsb", "copies"}) {
        TracerOptions options = options_for(GetParam());
        options.stepping = Stepping::kWatchpoints;
        TestRun run(options);
        ASSERT_TRUE(run.start_guarded(mode, 0, 33));
        run.tracer.handlers().guarded_access = [&](const GuardHit&) { return GuardAnswer::kStep; };
        const Ended ended = run.finish();
        EXPECT_EQ(ended.exit_status, 0) << mode << ": " << ended.text;
        const WatchCheck check = run.tracer.guards().watch_check();
        if (!check.unavailable.empty()) GTEST_SKIP() << check.unavailable;
        EXPECT_EQ(check.unseen, "") << mode;
        // (The others touch only data.)
        if (mode == std::string("accesses")) {
            EXPECT_GT(check.confirmed, check.unconfirmed);
        }
    }
}

TEST_P(StepperTest, WatchpointsTellOfWhatTheStepperDidNotSee) {
    TracerOptions options = options_for(GetParam());
    options.stepping = Stepping::kWatchpoints;
    options.simulate_blind_stepper = true;
    TestRun run(options);
    ASSERT_TRUE(run.start_guarded("accesses", 0, 1));
    run.tracer.handlers().guarded_access = [&](const GuardHit&) { return GuardAnswer::kStep; };
    EXPECT_EQ(run.finish().exit_status, 0);
    const WatchCheck check = run.tracer.guards().watch_check();
    if (!check.unavailable.empty()) GTEST_SKIP() << check.unavailable;
    EXPECT_NE(check.unseen.find("had not seen"), std::string::npos) << check.unseen;
}

TEST_P(StepperTest, WhereGuardPagesAreRefusedTheTesteeIsSingleStepped) {
    TestRun run(options_for(GetParam()));
    run.start("filtered");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<FutexWait>());
    EXPECT_EQ(run.tracer.guards().stepping(), Stepping::kGuardPages);
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
    EXPECT_EQ(run.tracer.guards().stepping(), Stepping::kSingleStep);
    EXPECT_NE(run.tracer.guards().stepping_reason().find("a call in the testee"), std::string::npos)
        << run.tracer.guards().stepping_reason();
    *reinterpret_cast<uint64_t*>(run.buffers[0]->metadata() + 64) = 77;
    run.buffers[0]->wake();
    std::vector<uint64_t> offsets;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        offsets.push_back(hit->place.offset_bytes);
        EXPECT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(offsets, (std::vector<uint64_t>{64, 132}));
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 77\n");
}

// Threads, timers and handlers of the testee's own, instruction by instruction.
TEST_P(StepperTest, SingleStepsGoThroughThreadsAndSignals) {
    TracerOptions options = options_for(GetParam());
    options.stepping = Stepping::kSingleStep;
    TestRun run(options);
    run.start("guarded-threads");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<FutexWait>());
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
    for (int i = 0; i < 100; ++i) {
        const auto hit = run.next<GuardHit>();
        ASSERT_TRUE(hit);
        EXPECT_EQ(hit->place.offset_bytes, 64u);
        EXPECT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    }
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    run.buffers[0]->wake();
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "done 0\n");
}

}  // namespace
}  // namespace kmes::conformance
