// SPDX-License-Identifier: MIT
#include "conformance/stage/verdict_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "conformance/model/step_texts.h"
#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

class VerdictMarksTest : public ServedRingsTest {
  protected:
    std::uint64_t step(StepKind kind, std::uint64_t sequence = 0, const std::string& text = "") {
        TimelineStep step;
        step.kind = kind;
        step.cpu = 0;
        step.sequence = sequence;
        step.text = text;
        timeline_.add(std::move(step));
        return timeline_.last_number();
    }
    std::uint64_t publish(std::uint64_t sequence) {
        StepFacts::Operation operation;
        operation.step = step(StepKind::producer, sequence);
        operation.published_first = operation.published_last = sequence;
        facts_.operations.push_back(operation);
        return operation.step;
    }
    std::uint64_t load_tail(std::uint64_t value) {
        const std::uint64_t number = step(StepKind::access, 0, "reads tail_pos");
        facts_.tail_loads.push_back({number, 0, buffer(0), value});
        return number;
    }
    std::uint64_t read(std::uint64_t sequence, bool is_to_the_end) {
        const std::uint64_t number = step(StepKind::access, sequence);
        facts_.event_reads.push_back({number, is_to_the_end});
        return number;
    }
    std::uint64_t wait() {
        const std::uint64_t number = step(StepKind::wait_begin);
        facts_.waits.push_back({number, 0, buffer(0), 1});
        return number;
    }
    // Emits an event of 100 bytes, and returns the step of the emission.
    std::uint64_t publish_at(std::uint64_t sequence) {
        emit(0);
        return publish(sequence);
    }
    // The last operation overwrites these events.
    void overwrites(std::uint64_t first, std::uint64_t last) {
        facts_.operations.back().overwritten_first = first;
        facts_.operations.back().overwritten_last = last;
    }
    const std::string& why(std::uint64_t number) { return timeline_.find(number)->why; }
    void mark(FindingCode code, std::uint64_t sequence = 0, const std::string& clause = "") {
        Finding finding;
        finding.clause = clause;
        finding.code = code;
        finding.cpu = 0;
        finding.sequence = sequence;
        step(StepKind::end);
        VerdictMarks marks(timeline_, facts_, &rings_.history());
        marks.mark_all(finding, timeline_.last_number());
    }
    bool is_decisive(std::uint64_t number) { return timeline_.find(number)->decisive; }

    Timeline timeline_;
    StepFacts facts_;
};

TEST_F(VerdictMarksTest, AreOnThePublicationAndTheWaitOfALostWake) {
    const std::uint64_t before = publish(1);
    const std::uint64_t publication = publish(2);
    const std::uint64_t wait = step(StepKind::wait_begin);
    facts_.waits.push_back({wait, 0, buffer(0), 1});
    mark(FindingCode::lost_wake_up, 2);
    EXPECT_FALSE(is_decisive(before));
    EXPECT_TRUE(is_decisive(publication));
    EXPECT_TRUE(is_decisive(wait));
}

TEST_F(VerdictMarksTest, AreOnTheLastAccessToAnEventThatIsDropped) {
    publish_at(1);
    const std::uint64_t first = read(1, false);
    const std::uint64_t last = read(1, false);
    const std::uint64_t sleep = wait();
    mark(FindingCode::lost_wake_up, 1);
    EXPECT_FALSE(is_decisive(first));
    EXPECT_TRUE(is_decisive(last));
    EXPECT_THAT(why(last), HasSubstr("does not copy it"));
    EXPECT_TRUE(is_decisive(sleep));
}

TEST_F(VerdictMarksTest, AreOnTheCopyOfAnEventIfNoWaitFollows) {
    publish_at(1);
    wait();
    const std::uint64_t copy = read(1, true);
    mark(FindingCode::lost_wake_up, 1);
    EXPECT_TRUE(is_decisive(copy));
    EXPECT_THAT(why(copy), HasSubstr("No record of it follows"));
}

TEST_F(VerdictMarksTest, AreOnNoCopyBeforeTheWaitThatLacksItsRecord) {
    publish_at(1);
    const std::uint64_t copy = read(1, true);
    const std::uint64_t sleep = wait();
    mark(FindingCode::lost_wake_up, 1);
    EXPECT_FALSE(is_decisive(copy));
    EXPECT_TRUE(is_decisive(sleep));
}

TEST_F(VerdictMarksTest, AreOnNoAccessToAnEventThatIsOverwritten) {
    publish_at(1);
    const std::uint64_t access = read(1, false);
    publish_at(2);
    overwrites(1, 1);
    const std::uint64_t next = step(StepKind::record, 2);
    mark(FindingCode::missing_event, 1);
    EXPECT_FALSE(is_decisive(access));
    EXPECT_TRUE(is_decisive(next));
}

TEST_F(VerdictMarksTest, AreOnTheLastAccessToAMissingEvent) {
    publish_at(1);
    publish_at(2);
    const std::uint64_t access = read(1, false);
    read(2, true);
    step(StepKind::record, 2);
    const std::uint64_t later = read(1, false);
    mark(FindingCode::missing_event, 1);
    EXPECT_TRUE(is_decisive(access));
    EXPECT_FALSE(is_decisive(later));
}

TEST_F(VerdictMarksTest, AreOnTheWaitWithoutARequest) {
    const std::uint64_t first = wait();
    const std::uint64_t last = wait();
    mark(FindingCode::contract, 0, "5.1.8.2-1");
    EXPECT_FALSE(is_decisive(first));
    EXPECT_TRUE(is_decisive(last));
    EXPECT_FALSE(is_decisive(timeline_.last_number()));
}

TEST_F(VerdictMarksTest, AreOnTheOverwriteAndTheRecordOfATornEvent) {
    publish(1);
    const std::uint64_t overwrite = publish(2);
    facts_.operations.back().overwritten_first = facts_.operations.back().overwritten_last = 1;
    const std::uint64_t record = step(StepKind::record, 1);
    mark(FindingCode::torn_event, 1);
    EXPECT_TRUE(is_decisive(overwrite));
    EXPECT_TRUE(is_decisive(record));
    EXPECT_FALSE(is_decisive(1));
}

TEST_F(VerdictMarksTest, AreOnTheLastLoadOfTheTailBeforeATornCopy) {
    publish_at(1);
    const std::uint64_t earlier = load_tail(0);
    const std::uint64_t load = load_tail(0);
    step(StepKind::access, 1);
    publish_at(2);
    overwrites(1, 1);
    const std::uint64_t copy = step(StepKind::access, 1);
    step(StepKind::access, 0, "reads write_pos");
    const std::uint64_t later = load_tail(100);
    step(StepKind::record, 1);
    mark(FindingCode::torn_event, 1);
    EXPECT_TRUE(is_decisive(copy)) << "the check is missing after it";
    EXPECT_FALSE(is_decisive(earlier));
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("not passed event 1"));
    EXPECT_THAT(why(load), HasSubstr("No load of tail_pos follows the copy"));
    EXPECT_FALSE(is_decisive(later)) << "it is about the next event";
}

TEST_F(VerdictMarksTest, AreOnTheLoadOfTheTailAfterATornCopy) {
    publish_at(1);
    const std::uint64_t before = load_tail(0);
    step(StepKind::access, 1);
    publish_at(2);
    overwrites(1, 1);
    const std::uint64_t load = load_tail(100);
    step(StepKind::record, 1);
    mark(FindingCode::torn_event, 1);
    EXPECT_FALSE(is_decisive(before));
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("has passed event 1"));
}

TEST_F(VerdictMarksTest, AreOnTheFirstLoadOfTheTailThatShowsALap) {
    publish_at(1);
    publish_at(2);
    overwrites(1, 1);
    const std::uint64_t load = load_tail(100);
    step(StepKind::access, 1);
    const std::uint64_t again = load_tail(100);
    step(StepKind::record, 1);
    mark(FindingCode::torn_event, 1);
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("has passed event 1"));
    EXPECT_FALSE(is_decisive(again));
}

// The run has recorded only the reads after the overwrite, which are those of the later event.
TEST_F(VerdictMarksTest, AreOnTheReadInThePlaceOfATornEvent) {
    const auto read_at = [&](std::uint64_t position) {
        const std::uint64_t number = step(StepKind::access, 2);
        facts_.event_reads.push_back({number, false, buffer(0), position, 50});
        return number;
    };
    publish_at(1);
    publish_at(2);
    overwrites(1, 1);
    const std::uint64_t elsewhere = read_at(kCapacityBytes + 100);
    const std::uint64_t copy = read_at(kCapacityBytes + 40);
    step(StepKind::access, 0, "reads write_pos");
    const std::uint64_t later = read_at(kCapacityBytes);
    step(StepKind::record, 1);
    mark(FindingCode::torn_event, 1);
    EXPECT_FALSE(is_decisive(elsewhere));
    EXPECT_TRUE(is_decisive(copy));
    EXPECT_THAT(why(copy), HasSubstr("last recorded read of event 1"));
    EXPECT_FALSE(is_decisive(later)) << "another iteration";
}

TEST_F(VerdictMarksTest, AreOnTheLoadOfTheTailIfNoReadIsRecorded) {
    publish_at(1);
    load_tail(0);
    const std::uint64_t load = load_tail(0);
    step(StepKind::access, 0, "reads write_pos");
    step(StepKind::record, 1);
    const std::uint64_t later = load_tail(0);
    mark(FindingCode::misread_event, 1);
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("No read of event 1 is recorded"));
    EXPECT_FALSE(is_decisive(later));
}

TEST_F(VerdictMarksTest, AreOnTheCopyThatAWrongRecordFollows) {
    publish_at(1);
    publish_at(2);
    const std::uint64_t first = step(StepKind::access, 1);
    const std::uint64_t copy = step(StepKind::access, 1);
    step(StepKind::access, 2);
    load_tail(0);
    const std::uint64_t record = step(StepKind::record, 1);
    mark(FindingCode::misread_event, 1);
    EXPECT_FALSE(is_decisive(first));
    EXPECT_TRUE(is_decisive(copy));
    EXPECT_TRUE(is_decisive(record));
    EXPECT_THAT(why(copy), HasSubstr("follows this copy of event 1"));
}

TEST_F(VerdictMarksTest, AreOnTheLoadOfTheGenerationThatIsReported) {
    const std::uint64_t load = step(StepKind::access, 0, "reads generation: 2");
    const std::uint64_t record = step(StepKind::record);
    facts_.step_of_line[0] = record;
    mark(FindingCode::wrong_generation);
    EXPECT_TRUE(is_decisive(load));
}

TEST_F(VerdictMarksTest, AreOnTheLoadOfTheTailBeforeARefusalAfterALap) {
    publish_at(1);
    step(StepKind::record, 1);
    publish_at(2);
    publish_at(3);
    overwrites(1, 2);
    const std::uint64_t load = load_tail(200);
    const std::uint64_t refusal = step(StepKind::record);
    facts_.step_of_line[0] = refusal;
    mark(FindingCode::refused_without_reason);
    EXPECT_TRUE(is_decisive(refusal));
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("has passed event 2"));
}

TEST_F(VerdictMarksTest, AreOnTheLastLoadOfTheTailBeforeAnEventInThePlaceOfAnother) {
    publish_at(1);
    step(StepKind::record, 1);
    publish_at(2);
    const std::uint64_t load = load_tail(100);
    publish_at(3);
    overwrites(1, 2);
    step(StepKind::access, 3);
    step(StepKind::access, 0, "reads write_pos");
    const std::uint64_t later = load_tail(200);
    step(StepKind::record, 3);
    mark(FindingCode::early_event, 3);
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("not passed event 2"));
    EXPECT_FALSE(is_decisive(later)) << "it is about the next event";
}

TEST_F(VerdictMarksTest, AreOnNoLoadOfTheTailWithoutALap) {
    publish_at(1);
    publish_at(2);
    const std::uint64_t load = load_tail(0);
    step(StepKind::record, 2);
    mark(FindingCode::missing_event, 1);
    EXPECT_FALSE(is_decisive(load));
}

TEST_F(VerdictMarksTest, AreOnTheFirstLoadOfTheTailAfterALap) {
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) publish_at(sequence);
    const std::uint64_t before = load_tail(0);
    publish_at(4);
    overwrites(1, 1);
    const std::uint64_t load = load_tail(100);
    const std::uint64_t again = load_tail(100);
    step(StepKind::record, 4);
    mark(FindingCode::missing_event, 2);
    EXPECT_FALSE(is_decisive(before));
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("tail_pos is at event 2"));
    EXPECT_FALSE(is_decisive(again));
}

TEST_F(VerdictMarksTest, AreOnTheLoadOfTheTailAfterALapBeforeASleep) {
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) publish_at(sequence);
    publish_at(4);
    overwrites(1, 2);
    const std::uint64_t load = load_tail(200);
    const std::uint64_t wait = step(StepKind::wait_begin);
    facts_.waits.push_back({wait, 0, buffer(0), 1});
    mark(FindingCode::lost_wake_up, 3);
    EXPECT_TRUE(is_decisive(load));
    EXPECT_THAT(why(load), HasSubstr("tail_pos is at event 3"));
}

TEST_F(VerdictMarksTest, AreOnTheFirstRecordAfterAMissingOne) {
    const std::uint64_t publication = publish(1);
    publish(2);
    const std::uint64_t next = step(StepKind::record, 2);
    mark(FindingCode::missing_event, 1);
    EXPECT_TRUE(is_decisive(publication));
    EXPECT_TRUE(is_decisive(next));
}

TEST_F(VerdictMarksTest, AreOnTheLastAccessToTheRetiredBufferWithAMissingEvent) {
    const auto load_of = [&](BufferIndex buffer) {
        const std::uint64_t number = step(StepKind::access, 0, "reads generation");
        facts_.metadata_accesses.push_back({number, buffer});
        return number;
    };
    publish_at(1);
    const BufferIndex retired = buffer(0);
    const std::uint64_t before = load_of(retired);
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    StepFacts::Operation swap;
    swap.step = step(StepKind::producer);
    swap.retired = retired;
    facts_.operations.push_back(swap);
    const std::uint64_t last = load_of(retired);
    load_of(buffer(0));
    publish_at(2);
    step(StepKind::record, 2);
    mark(FindingCode::missing_event, 1);
    EXPECT_FALSE(is_decisive(before));
    EXPECT_TRUE(is_decisive(last));
    EXPECT_FALSE(is_decisive(last + 1));
}

TEST_F(VerdictMarksTest, AreOnTheLastStepOfTheThreadThatExits) {
    const auto by_thread = [&](StepKind kind, int thread) {
        const std::uint64_t number = step(kind);
        timeline_.last().thread = thread;
        if (kind == StepKind::end) timeline_.last().cpu.reset();
        return number;
    };
    by_thread(StepKind::access, 2);
    const std::uint64_t access = by_thread(StepKind::access, 2);
    by_thread(StepKind::record, 2);
    const std::uint64_t other = by_thread(StepKind::access, 3);
    timeline_.last().cpu = 1;
    const std::uint64_t exit = by_thread(StepKind::end, 2);
    mark(FindingCode::ended_too_early);
    EXPECT_TRUE(is_decisive(exit));
    EXPECT_TRUE(is_decisive(access));
    EXPECT_FALSE(is_decisive(other));
}

// It has only checked the buffer that another thread reads.
TEST_F(VerdictMarksTest, AreOnNoAccessOfAThreadThatOnlyWaitsForTheOthers) {
    const std::uint64_t check = step(StepKind::access);
    timeline_.last().thread = 1;
    step(StepKind::access);
    timeline_.last().thread = 2;
    step(StepKind::end);
    timeline_.last().thread = 1;
    mark(FindingCode::ended_too_early);
    EXPECT_FALSE(is_decisive(check));
}

TEST_F(VerdictMarksTest, AreOnTheLastOperationOfAMove) {
    const std::uint64_t first = publish(1);
    const std::uint64_t last = publish(2);
    for (StepFacts::Operation& operation : facts_.operations) operation.in_move = true;
    mark(FindingCode::crash);
    EXPECT_FALSE(is_decisive(first));
    EXPECT_TRUE(is_decisive(last));
}

TEST_F(VerdictMarksTest, AreOnEachAccessOfALoop) {
    const auto by_thread = [&](StepKind kind, const std::string& text) {
        const std::uint64_t number = step(kind, 0, text);
        timeline_.last().thread = 1;
        return number;
    };
    const std::uint64_t publication = publish(1);
    const std::uint64_t first = by_thread(StepKind::access, "reads generation: 1");
    by_thread(StepKind::record, "writes");
    const std::uint64_t once = by_thread(StepKind::access, "reads generation: 1");
    std::uint64_t write_pos = 0;
    std::uint64_t tail_pos = 0;
    for (int i = 0; i < 10; ++i) {
        write_pos = by_thread(StepKind::access, "reads write_pos: " + std::to_string(i));
        tail_pos = by_thread(StepKind::access, "reads tail_pos: 7");
    }
    Finding finding;
    finding.code = FindingCode::missing_event;
    finding.cpu = 0;
    finding.sequence = 1;
    finding.message = "Evidence: the consumer used 20 ms" + std::string(kSpins);
    step(StepKind::end);
    VerdictMarks(timeline_, facts_, &rings_.history()).mark_all(finding, timeline_.last_number());
    EXPECT_TRUE(is_decisive(publication));
    EXPECT_TRUE(is_decisive(write_pos));
    EXPECT_TRUE(is_decisive(tail_pos));
    EXPECT_THAT(why(tail_pos), HasSubstr("repeats this access"));
    EXPECT_FALSE(is_decisive(write_pos - 2));
    EXPECT_FALSE(is_decisive(first));
    EXPECT_FALSE(is_decisive(once));
}

TEST_F(VerdictMarksTest, AreOnTheLastCallWhoseResultsAreKept) {
    step(StepKind::attach, 0, std::string(kAttachGets) + "4 buffers");
    const std::uint64_t attach = step(StepKind::attach, 0, std::string(kAttachGets) + "4 buffers");
    step(StepKind::attach, 0, "kmes_attach: EINVAL");
    const std::uint64_t map = step(StepKind::map, 0, "maps buffer 4 of CPU 0");
    Finding finding;
    finding.clause = "5.1.8.3-6";
    finding.code = FindingCode::contract;
    const std::uint64_t last = step(StepKind::end);
    const auto marked_for = [&](std::string_view what) {
        for (const std::uint64_t number : {attach, map, last})
            timeline_.find(number)->decisive = false;
        finding.message = "the consumer has 336 " + std::string(what);
        VerdictMarks(timeline_, facts_, &rings_.history()).mark_all(finding, last);
        return is_decisive(attach) ? attach : is_decisive(map) ? map : last;
    };
    EXPECT_EQ(marked_for(kOpenDescriptors), attach);
    EXPECT_EQ(marked_for(kFilesOfBuffers), attach);
    EXPECT_EQ(marked_for(kMappingsOfBuffers), map);
    EXPECT_EQ(marked_for("regions of memory"), last);
    EXPECT_FALSE(is_decisive(1));
}

TEST_F(VerdictMarksTest, AreOnTheVerdictWhereNoStepDecides) {
    publish(1);
    mark(FindingCode::write_outside);
    EXPECT_FALSE(is_decisive(1));
    EXPECT_TRUE(is_decisive(timeline_.last_number()));
    EXPECT_FALSE(timeline_.steps().back().why.empty());
}

}  // namespace
}  // namespace kmes::conformance
