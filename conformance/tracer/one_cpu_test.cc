// SPDX-License-Identifier: MIT
//
// A kmes_attach that attaches one CPU, and buffers with a metadata page that only the producer
// writes (docs/layouts.md, forms C and D).

#include <cerrno>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

constexpr uint64_t kMetadataBytes = 2 * kPageBytes;
constexpr uint64_t kFlagOffset = kPageBytes;

class OneCpuTest : public testing::TestWithParam<Interception> {
  protected:
    OneCpuTest() : run_(options_for(GetParam()), 2, kMetadataBytes) {
        run_.tracer.set_attach_call(AttachCall::kOneCpuOrCount);
    }
    TestRun run_;
};
INSTANTIATE_TEST_SUITE_P(Ways, OneCpuTest, kBothWays, name_of);

TEST_P(OneCpuTest, GivesTheFdOfACpuAndTheNumberOfCpus) {
    std::vector<Attached> all;
    run_.start("one-cpu-answers");
    const Ended ended = run_.finish([&](const TracerEvent& event) {
        if (const auto* attached = std::get_if<Attached>(&event)) all.push_back(*attached);
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run_.tracer.output().standard_output(),
              "none -22\nuntouched 7\ncount 0\nis 2\nbad capacity -14\nbad before none -14\n"
              "is an fd 1\ncapacity 65536\n");
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[0].error, EINVAL);
    EXPECT_EQ(all[0].request.cpu, 2u);
    EXPECT_TRUE(all[1].request.asks_for_count);
    EXPECT_EQ(all[1].count_written, 2);
    EXPECT_TRUE(all[1].buffers.empty());
    EXPECT_EQ(all[4].buffers, std::vector<BufferId>{run_.ids[1]});
    EXPECT_EQ(all[4].fds, std::vector<int>{all[4].result});
}

TEST_P(OneCpuTest, KnowsNoQuestionForTheNumberInFormC) {
    run_.tracer.set_attach_call(AttachCall::kOneCpu);
    run_.start("one-cpu-answers");
    EXPECT_EQ(run_.finish().exit_status, 0);
    EXPECT_TRUE(run_.tracer.output().standard_output().starts_with(
        "none -22\nuntouched 7\ncount -22\nis 7\n"))
        << run_.tracer.output().standard_output();
}

TEST_P(OneCpuTest, MapsThePageOfTheProducerReadOnly) {
    run_.start("one-cpu-maps");
    int maps = 0;
    const Ended ended = run_.finish([&](const TracerEvent& event) {
        const auto* mapped = std::get_if<Mapped>(&event);
        if (mapped == nullptr) return;
        ++maps;
        EXPECT_FALSE(mapped->deviation.any());
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(maps, 1);
    EXPECT_EQ(run_.tracer.output().standard_output(), "data 42\ndata again 42\nprotect 13\n");
    EXPECT_EQ(run_.buffers[0]->metadata()[kFlagOffset], 1);
}

TEST_P(OneCpuTest, MapsNothingButTheWholeBuffer) {
    run_.start("one-cpu-odd-maps");
    int refused = 0;
    int maps = 0;
    const Ended ended = run_.finish([&](const TracerEvent& event) {
        const auto* mapped = std::get_if<Mapped>(&event);
        if (mapped == nullptr) return;
        ++maps;
        refused += mapped->is_refused && mapped->error == EINVAL ? 1 : 0;
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(maps, 6);
    EXPECT_EQ(refused, 4);
    EXPECT_EQ(run_.tracer.output().standard_output(),
              "form A 22\npage 22\nprivate 22\noffset 22\nin pages 0\nwhole 0\n");
}

TEST_P(OneCpuTest, ReportsAStoreToThePageOfTheProducer) {
    run_.start("one-cpu-writes");
    std::vector<uint64_t> offsets;
    const Ended ended = run_.finish([&](const TracerEvent& event) {
        if (const auto* fault = std::get_if<WriteFault>(&event))
            offsets.push_back(fault->access.place.offset_bytes);
    });
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGSEGV);
    EXPECT_EQ(offsets, std::vector<uint64_t>{132});
}

TEST_P(OneCpuTest, SeesEachAccessToBothPagesOfMetadata) {
    ASSERT_TRUE(run_.start_guarded("one-cpu-accesses", 0, 2));
    std::vector<std::pair<uint64_t, bool>> all;
    const Ended ended = run_.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        const GuardStep step = run_.tracer.guards().step(hit->tid);
        ASSERT_EQ(step.outcome, GuardStep::Outcome::kDone);
        ASSERT_EQ(step.accesses.size(), 1u) << hit->code.describe();
        all.emplace_back(step.accesses[0].place.offset_bytes, step.accesses[0].is_write);
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    const std::vector<std::pair<uint64_t, bool>> expected{
        {64, false}, {kFlagOffset, true}, {kFutexWordOffset, false}};
    EXPECT_EQ(all, expected);
    EXPECT_EQ(run_.buffers[0]->metadata()[kFlagOffset], 1);
}

}  // namespace
}  // namespace kmes::conformance
