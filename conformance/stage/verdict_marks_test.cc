// SPDX-License-Identifier: MIT
#include "conformance/stage/verdict_marks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

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
    void mark(FindingCode code, std::uint64_t sequence = 0) {
        Finding finding;
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

TEST_F(VerdictMarksTest, AreOnTheFirstRecordAfterAMissingOne) {
    const std::uint64_t publication = publish(1);
    publish(2);
    const std::uint64_t next = step(StepKind::record, 2);
    mark(FindingCode::missing_event, 1);
    EXPECT_TRUE(is_decisive(publication));
    EXPECT_TRUE(is_decisive(next));
}

TEST_F(VerdictMarksTest, AreOnTheLastOperationOfAMove) {
    const std::uint64_t first = publish(1);
    const std::uint64_t last = publish(2);
    for (StepFacts::Operation& operation : facts_.operations) operation.in_move = true;
    mark(FindingCode::crash);
    EXPECT_FALSE(is_decisive(first));
    EXPECT_TRUE(is_decisive(last));
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
