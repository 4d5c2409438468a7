// SPDX-License-Identifier: MIT
//
// Tests of the trace that reports show.
#include "conformance/failure/excerpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TimelineStep step_of(StepKind kind, std::int32_t thread, std::string text) {
    TimelineStep step;
    step.kind = kind;
    step.thread = thread;
    step.cpu = 0;
    step.text = std::move(text);
    return step;
}

TimelineStep emit(std::uint64_t write_pos, std::uint32_t futex_counter) {
    TimelineStep step = step_of(StepKind::producer, 0, "emits an event");
    step.state = BufferState{.buffer = 1, .write_pos = write_pos, .futex_counter = futex_counter};
    return step;
}

TEST(Excerpt, OfNothingIsNothing) {
    EXPECT_THAT(excerpt(Timeline{}).rows, IsEmpty());
}

TEST(Excerpt, HasTheChangesAndTheWokenThreads) {
    Timeline timeline;
    timeline.add(emit(100, 7));
    timeline.add(step_of(StepKind::wait_begin, 2, "futex_wait"));
    timeline.add(emit(200, 8));
    timeline.add(step_of(StepKind::wait_end, 2, "is woken"));
    timeline.add(emit(300, 9));
    const Trace trace = excerpt(timeline);
    EXPECT_THAT(trace.threads, ElementsAre(2));
    ASSERT_EQ(trace.rows.size(), 5u);
    EXPECT_EQ(trace.rows[0].change,
              "write_pos 100, tail_pos 0, need_wake 0, futex_counter 7, generation 0");
    EXPECT_EQ(trace.rows[2].change, "write_pos 100 -> 200, futex_counter 7 -> 8");
    EXPECT_THAT(trace.rows[2].wakes, ElementsAre(2));
    EXPECT_THAT(trace.rows[4].wakes, IsEmpty());
    EXPECT_EQ(trace.rows[4].number, 5u);
}

// Threads 5 and 6 have no column, because they do less than thread 2.
TEST(Excerpt, CountsWhatHiddenThreadsDo) {
    Timeline timeline;
    timeline.add(emit(100, 7));
    for (int i = 0; i < 3; ++i) timeline.add(step_of(StepKind::access, 2, "reads"));
    timeline.add(step_of(StepKind::access, 5, "sets need_wake to 1"));
    timeline.last().state =
        BufferState{.buffer = 1, .write_pos = 100, .futex_counter = 7, .need_wake = 1};
    timeline.add(step_of(StepKind::wait_begin, 5, "futex_wait"));
    timeline.add(emit(200, 8));
    timeline.last().state->need_wake = 1;
    const Trace trace = excerpt(timeline, 150, 1);
    EXPECT_THAT(trace.threads, ElementsAre(2));
    ASSERT_EQ(trace.rows.size(), 5u);
    EXPECT_EQ(trace.rows[4].change, "write_pos 100 -> 200, futex_counter 7 -> 8");
    EXPECT_THAT(trace.rows[4].wakes, IsEmpty());
}

TEST(Excerpt, DoesNotCompareAcrossTheStepsThatTheTimelineLeftOut) {
    std::vector<TimelineStep> steps(Timeline::kFirst, step_of(StepKind::access, 2, "reads"));
    steps[0] = emit(100, 7);
    steps[1] = step_of(StepKind::wait_begin, 2, "futex_wait");
    steps.push_back(emit(900, 12));
    const auto last_row = [&](std::uint64_t left_out) {
        return excerpt(Timeline::from(steps, left_out)).rows.back();
    };
    EXPECT_EQ(last_row(50).change,
              "write_pos 900, tail_pos 0, need_wake 0, futex_counter 12, generation 0");
    EXPECT_THAT(last_row(50).wakes, IsEmpty());
    EXPECT_EQ(last_row(0).change, "write_pos 100 -> 900, futex_counter 7 -> 12");
    EXPECT_THAT(last_row(0).wakes, ElementsAre(2));
}

TEST(Excerpt, IsBoundedAndKeepsTheDecisiveSteps) {
    Timeline timeline;
    for (int i = 0; i < 20000; ++i) {
        TimelineStep step = step_of(StepKind::access, 1, i % 2 == 0 ? "reads" : "writes");
        // Without this the steps would be folded.
        step.text += std::string(static_cast<std::size_t>(i % 13), 'x');
        step.decisive = i == 19990;
        timeline.add(step);
    }
    const Trace trace = excerpt(timeline, 20);
    std::uint64_t steps = 0;
    std::size_t shown = 0;
    bool has_decisive = false;
    for (const TraceRow& row : trace.rows) {
        steps += row.hidden != 0 ? row.hidden : 1;
        shown += row.hidden != 0 ? 0 : 1;
        has_decisive = has_decisive || row.decisive;
    }
    EXPECT_EQ(steps, 20000u);
    EXPECT_LE(shown, 20u);
    EXPECT_TRUE(has_decisive);
    EXPECT_EQ(trace.rows.back().number, 20000u);
}

TEST(Excerpt, CutsWhatIsLong) {
    Timeline timeline;
    timeline.add(step_of(StepKind::record, 1, std::string(1000000, 'x')));
    EXPECT_LT(excerpt(timeline).rows.at(0).text.size(), kMaximumTraceTextBytes + 100);
}

}  // namespace
}  // namespace kmes::conformance
