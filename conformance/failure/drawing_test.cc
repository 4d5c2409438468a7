// SPDX-License-Identifier: MIT
//
// Tests of the trace on a terminal: whole ones written by hand, and properties of every trace.
#include "conformance/failure/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/failure/excerpt.h"
#include "conformance/report/trace.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TimelineStep step(StepKind kind, std::int32_t thread, std::string text, std::string clause = "",
                  std::string source = "") {
    TimelineStep made;
    made.kind = kind;
    made.thread = thread;
    made.cpu = 0;
    made.text = std::move(text);
    made.clause = std::move(clause);
    made.source = std::move(source);
    return made;
}

TimelineStep read_of_write_pos(int value, std::int32_t thread = 1) {
    return step(StepKind::access, thread, "reads write_pos: " + std::to_string(value),
                "5.1.8.1 step 1", "c.c:205");
}

// The consumer falls asleep on an event: the form of E2.
Timeline lost_wake_up() {
    Timeline timeline;
    timeline.add(step(StepKind::map, 1, "maps buffer 0 of CPU 0", "5.1.5"));
    timeline.add(read_of_write_pos(0));
    TimelineStep emit =
        step(StepKind::producer, 0, "emits event 1: 70 bytes at position 0", "5.1.7");
    emit.sequence = 1;
    emit.state = BufferState{0, 70, 0, 1, 4, 1, false};
    emit.decisive = true;
    emit.why = "Event 1 is in the buffer from here on.";
    timeline.add(emit);
    TimelineStep store =
        step(StepKind::access, 1, "sets need_wake to 0", "5.1.8.2 step 2", "c.c:240");
    store.state = BufferState{0, 70, 0, 1, 4, 0, false};
    timeline.add(store);
    TimelineStep wait = step(StepKind::wait_begin, 1, "futex_wait while futex_counter is 4");
    wait.decisive = true;
    timeline.add(wait);
    timeline.add(step(StepKind::end, 0, "FAILED: the consumer sleeps on unread event 1", "E2"));
    return timeline;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Counts characters: in UTF-8 each has one byte that is no continuation byte.
std::size_t columns(const std::string& line) {
    std::size_t count = 0;
    for (const char c : line) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

TEST(Drawing, OfNothingIsEmpty) {
    EXPECT_EQ(draw(Timeline{}), "");
}

TEST(Drawing, LooksLikeThisInAscii) {
    DrawingOptions options;
    options.width = 80;
    EXPECT_EQ(draw(lost_wake_up(), options),
              R"(Time runs downwards. Left: the producer. Right: the consumer's threads.
[5.1.8.2 step 1; c.c:9]: clause 5.1.8.2-1, line of the code.
>> and => mark a step that decided the outcome, and say why it did.

   step | producer                         | consumer, thread 1
--------+----------------------------------+------------------------------------
      1 |                                  | maps buffer 0 of CPU 0 [5.1.5]
      2 |                                  | CPU 0: reads write_pos: 0
        |                                  |   [5.1.8.1 step 1; c.c:205]
>>    3 | CPU 0: emits event 1: 70 bytes   |
        |   at position 0 [5.1.7]          |
        |   write_pos 70, tail_pos 0,      |
        |   need_wake 1, futex_counter 4,  |
        |   generation 1                   |
        | => Event 1 is in the buffer from here on.
      4 |   need_wake 1 -> 0               | CPU 0: sets need_wake to 0
        |                                  |   [5.1.8.2 step 2; c.c:240]
>>    5 |                                  | CPU 0: futex_wait while
        |                                  |   futex_counter is 4
      6 | FAILED: the consumer sleeps on unread event 1 [E2]
)");
}

TEST(Drawing, HasLinesAndColoursForATerminal) {
    DrawingOptions options;
    options.unicode = true;
    options.colour = true;
    const std::string drawing = draw(lost_wake_up(), options);
    EXPECT_THAT(drawing, HasSubstr("│ maps buffer 0 of CPU 0 [5.1.5]"));
    EXPECT_THAT(drawing, HasSubstr("────────┼"));
    EXPECT_THAT(drawing, HasSubstr("\x1b[1;31m>>    3 │ CPU 0: emits event 1: 70 bytes at "));
    EXPECT_THAT(drawing, Not(HasSubstr("|")));
}

TEST(Drawing, FoldsWhatComesAgainAndAgain) {
    Timeline timeline;
    for (int i = 0; i < 20; ++i) timeline.add(read_of_write_pos(i));
    for (int i = 0; i < 10; ++i) {
        timeline.add(step(StepKind::access, 1, "reads tail_pos: 0"));
        timeline.add(step(StepKind::access, 1, "reads generation: 1"));
    }
    timeline.add(step(StepKind::end, 0, "FAILED"));
    const std::string drawing = draw(timeline);
    EXPECT_THAT(drawing, HasSubstr("\n      1 |"));
    EXPECT_THAT(drawing, HasSubstr("| ... 18 steps of the same kind ...\n     20 |"));
    EXPECT_THAT(drawing, HasSubstr("| ... 16 steps: the same 2 again and again ...\n     39 |"));
}

TEST(Drawing, NeverFoldsTheDecisiveStep) {
    Timeline timeline;
    for (int i = 0; i < 500; ++i) {
        timeline.add(read_of_write_pos(i));
        timeline.last().decisive = i == 250;
    }
    timeline.add(step(StepKind::end, 0, "FAILED"));
    EXPECT_THAT(draw(timeline), HasSubstr(">>  251 |"));
}

TEST(Drawing, KeepsToItsLinesAndSaysHowMuchIsFolded) {
    Timeline timeline;
    for (int i = 0; i < 400; ++i)
        timeline.add(
            step(StepKind::access, 1, std::string(1 + i % 7, 'a') + std::string(i % 13, 'b')));
    timeline.add(step(StepKind::producer, 0, "emits"));
    timeline.last().decisive = true;
    timeline.add(step(StepKind::end, 0, "FAILED"));
    DrawingOptions options;
    options.maximum_lines = 40;
    const std::string drawing = draw(timeline, options);
    EXPECT_LE(lines_of(drawing).size(), 40u);
    EXPECT_GE(lines_of(drawing).size(), 36u);
    EXPECT_THAT(drawing, HasSubstr(" steps ...\n"));
    EXPECT_THAT(drawing, HasSubstr(">>  401 | CPU 0: emits"));
    EXPECT_THAT(drawing, HasSubstr("    400 |"));
    EXPECT_THAT(drawing, Not(HasSubstr("      1 |")));
}

TEST(Drawing, CountsWhatTheTimelineHasNotKept) {
    Timeline timeline;
    for (std::size_t i = 0; i < Timeline::kFirst + 2 * Timeline::kLast + 1; ++i)
        timeline.add(step(StepKind::access, 1, "reads " + std::string(i % 2 + 1, 'x')));
    ASSERT_EQ(timeline.left_out(), Timeline::kLast);
    timeline.add(step(StepKind::end, 0, "FAILED"));
    timeline.last().decisive = true;
    const std::uint64_t last = Timeline::kFirst + 2 * Timeline::kLast + 2;
    EXPECT_THAT(draw(timeline), HasSubstr(">> " + std::to_string(last) + " | FAILED"));
}

TEST(Drawing, FoldsNothingAcrossWhatTheTimelineHasNotKept) {
    const std::vector<TimelineStep> steps(Timeline::kFirst + 10, read_of_write_pos(0));
    const std::string drawing = draw(Timeline::from(steps, 1000));
    EXPECT_THAT(drawing, HasSubstr("| ... 198 steps of the same kind ...\n    200 |"));
    EXPECT_THAT(drawing, HasSubstr("| ... 1000 steps ...\n   1201 |"));
    EXPECT_THAT(drawing, HasSubstr("| ... 8 steps of the same kind ...\n   1210 |"));
}

TEST(Drawing, ShowsOnlyTheThreadsAndCpusThatMatter) {
    Timeline timeline;
    for (int thread = 1; thread <= 6; ++thread) {
        timeline.add(read_of_write_pos(thread, thread));
        timeline.last().cpu = static_cast<std::uint32_t>(thread - 1);
    }
    timeline.add(step(StepKind::producer, 0, "emits event 1"));
    timeline.last().cpu = 4;
    timeline.add(step(StepKind::end, 0, "FAILED: CPU 2"));
    timeline.last().cpu = 2;
    const std::string drawing = draw(timeline);
    EXPECT_THAT(drawing, HasSubstr("| consumer, thread 3\n"));
    EXPECT_THAT(drawing, Not(HasSubstr("consumer, thread 2")));
    EXPECT_THAT(drawing, HasSubstr("Left out, not concerned: CPUs 0, 1, 3, 4, 5; "
                                   "threads 1, 2, 4, 5, 6 (6 steps)."));
    EXPECT_THAT(drawing, Not(HasSubstr("emits event 1")));
}

TEST(Drawing, HasAColumnForEachThreadThatDecided) {
    Timeline timeline;
    timeline.add(step(StepKind::access, 1, "reads on one"));
    timeline.last().decisive = true;
    timeline.add(step(StepKind::access, 2, "reads on two"));
    timeline.last().decisive = true;
    timeline.add(step(StepKind::end, 0, "FAILED"));
    EXPECT_THAT(draw(timeline), HasSubstr("| consumer, thread 1 "));
    EXPECT_THAT(draw(timeline), HasSubstr("| consumer, thread 2\n"));
}

TEST(Drawing, TellsTheWholeStateOfANewBuffer) {
    Timeline timeline = lost_wake_up();
    timeline.add(step(StepKind::producer, 0, "replaces the buffer"));
    timeline.last().state = BufferState{3, 0, 0, 2, 0, 0, false};
    timeline.add(step(StepKind::end, 0, "FAILED"));
    EXPECT_THAT(draw(timeline), HasSubstr("in buffer 3: write_pos 0, tail_pos 0,"));
}

TEST(Drawing, EscapesWhatATesteeWrote) {
    Timeline timeline;
    timeline.add(step(StepKind::record, 1, "says \x1b[2J\xff\n>>    1 | emits \xe2\x80\xae",
                      "cl\x1b"
                      "ause",
                      "so\nurce"));
    timeline.last().decisive = true;
    timeline.last().why = "why\r\x07";
    timeline.add(step(StepKind::end, 0, "FAILED \x9b"));
    const std::string drawing = draw(timeline);
    for (const char c : drawing)
        EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
    EXPECT_THAT(drawing, HasSubstr("says \\x1b[2J\\xff\\x0a>>"));
    EXPECT_THAT(drawing, HasSubstr("why\\x0d\\x07"));
}

Timeline random_timeline(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto upto = [&random](std::uint32_t most) {
        return static_cast<std::uint32_t>(random() % (most + 1));
    };
    Timeline timeline;
    const std::uint32_t count = upto(300);
    for (std::uint32_t i = 0; i <= count; ++i) {
        std::string text;
        for (std::uint32_t k = upto(12); k > 0; --k)
            text += std::string(upto(k == 3 ? 130 : 9), static_cast<char>(upto(255))) + " ";
        TimelineStep made = step(static_cast<StepKind>(upto(8)), static_cast<std::int32_t>(upto(5)),
                                 text, upto(1) == 0 ? "" : "5.1.8.1 step 5",
                                 upto(1) == 0 ? "" : std::string(upto(90), 's'));
        if (upto(2) == 0)
            made.cpu.reset();
        else
            made.cpu = upto(3);
        if (upto(4) == 0)
            made.state = BufferState{upto(2), ~0ull - upto(5), 0, 1, upto(9), 1, false};
        made.decisive = upto(40) == 0;
        if (upto(1) == 0) made.why = "because " + text;
        timeline.add(std::move(made));
    }
    return timeline;
}

TEST(Drawing, OfAnythingFitsItsWidthAndShowsEveryDecisiveStep) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        const Timeline timeline = random_timeline(seed);
        for (const std::size_t width : {1u, 72u, 80u, 100u, 131u, 1000u}) {
            DrawingOptions options;
            options.width = width;
            options.unicode = seed % 2 == 0;
            options.maximum_lines = seed % 70;
            const std::string drawing = draw(timeline, options);
            const std::size_t room = std::min<std::size_t>(std::max<std::size_t>(width, 72), 160);
            for (const std::string& line : lines_of(drawing))
                ASSERT_LE(columns(line), room) << "seed " << seed << "\n" << line;
            for (std::size_t i = 0; i < timeline.steps().size(); ++i) {
                if (!timeline.steps()[i].decisive) continue;
                std::string number = std::to_string(timeline.number(i));
                number.insert(0, 4 - number.size(), ' ');
                ASSERT_THAT(drawing, HasSubstr("\n>> " + number + " ")) << "seed " << seed;
            }
        }
    }
}

// No decisive step of the consumer has a place, so a report names that of the last access.
TEST(Drawing, HasTheStepThatAReportNames) {
    Timeline timeline;
    timeline.add(step(StepKind::producer, 0, "emits event 1"));
    timeline.last().decisive = true;
    for (int i = 0; i < 200; ++i) {
        timeline.add(
            step(StepKind::access, 1, "reads " + std::string(i % 7 + 1, 'x'), "", "c.c:1"));
        timeline.add(step(StepKind::record, 1, "writes: " + std::string(i % 5 + 1, 'x')));
    }
    // This step is like those around it, but the later ones have no place.
    const std::uint64_t named = timeline.last_number() + 7;
    for (int i = 0; i < 7; ++i) timeline.add(step(StepKind::access, 2, "reads", "", "c.c:2"));
    for (int i = 0; i < 7; ++i) timeline.add(step(StepKind::access, 2, "reads"));
    for (int i = 0; i < 100; ++i)
        timeline.add(step(StepKind::record, 1, "writes: " + std::string(i % 13 + 1, 'x')));
    timeline.add(step(StepKind::end, 0, "FAILED"));
    EXPECT_THAT(draw(timeline), HasSubstr("    " + std::to_string(named) + " |"));
    const Trace trace = excerpt(timeline);
    const TraceRow* row = named_row(trace);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->number, named);
    EXPECT_EQ(row->place, "c.c:2");
}

}  // namespace
}  // namespace kmes::conformance
