// SPDX-License-Identifier: MIT
//
// Stores to data pages, and crashes with their places.

#include <gmock/gmock.h>

#include <csignal>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class FaultTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, FaultTest, kBothWays, name_of);

TEST_P(FaultTest, AStoreToADataPageIsReportedWithItsInstruction) {
    TestRun run(options_for(GetParam()));
    run.start("write-data");
    const auto fault = run.next<WriteFault>();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->access.place.buffer, 0u);
    EXPECT_EQ(fault->access.place.offset_bytes, 4096u + 100u);
    EXPECT_EQ(fault->access.size_bytes, 1u);
    EXPECT_TRUE(fault->access.is_write);
    EXPECT_NE(fault->code.resolved().text.find("mov"), std::string::npos)
        << fault->code.resolved().text;
    EXPECT_NE(fault->code.resolved().module.find("testee"), std::string::npos);
    EXPECT_EQ(fault->code.resolved().symbol.rfind("mode_write_data+", 0), 0u)
        << fault->code.resolved().symbol;
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGSEGV);
    ASSERT_TRUE(ended.fault);
    EXPECT_EQ(ended.fault->distance_bytes, 0);
    EXPECT_EQ(run.buffers[0]->data()[100], 0);
}

// The first fault ends the process while the tracer receives the others.
TEST_P(FaultTest, FaultsOfManyThreadsAreNoSignalFromOutside) {
    for (int i = 0; i < 20; ++i) {
        TestRun run(options_for(GetParam()));
        run.start("write-data-at-once");
        const Ended ended = run.finish();
        EXPECT_EQ(ended.kind, EndKind::kKilled);
        EXPECT_EQ(ended.signal, SIGSEGV);
        EXPECT_FALSE(ended.is_from_outside);
        EXPECT_TRUE(ended.fault);
    }
}

TEST_P(FaultTest, TheTesteesOwnHandlerRunsWithTheKernelsWords) {
    TestRun run(options_for(GetParam()));
    run.start("write-data-handled");
    ASSERT_TRUE(run.next<WriteFault>());
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited);
    EXPECT_EQ(ended.exit_status, 7);
    ASSERT_TRUE(ended.fault) << "the fault before an exit by a handler is kept";
    EXPECT_EQ(run.tracer.output().standard_output(), "handled 11\nat offset 4196\ncode 2\n");
}

// An injection between the fault and its delivery must not change the handler's information.
TEST_P(FaultTest, ADeferredSignalKeepsItsInformation) {
    TestRun run(options_for(GetParam()));
    run.start("write-data-handled");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<WriteFault>());
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 3, 1));
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    EXPECT_EQ(run.finish().exit_status, 7);
    EXPECT_EQ(run.tracer.output().standard_output(), "handled 11\nat offset 4196\ncode 2\n");
}

TEST_P(FaultTest, ACrashPastAMappingSaysHowFar) {
    TestRun run(options_for(GetParam()));
    run.start("read-past");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGSEGV);
    ASSERT_TRUE(ended.fault);
    ASSERT_TRUE(ended.fault->nearest_mapping);
    EXPECT_EQ(ended.fault->nearest_mapping->buffer, 0u);
    EXPECT_EQ(ended.fault->distance_bytes, 10);
    EXPECT_NE(ended.text.find("10 bytes after the last byte of the mapping of buffer 0"),
              std::string::npos)
        << ended.text;
}

TEST_P(FaultTest, ACrashInWhatWasAMappingSaysSo) {
    TestRun run(options_for(GetParam()));
    run.start("read-after-unmap");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    ASSERT_TRUE(ended.fault);
    EXPECT_FALSE(ended.fault->nearest_mapping);
    ASSERT_TRUE(ended.fault->removed_mapping);
    EXPECT_EQ(ended.fault->removed_mapping->buffer, 0u);
    ASSERT_TRUE(ended.fault->removal);
    EXPECT_EQ(ended.fault->removal->address, ended.fault->removed_mapping->address);
    EXPECT_THAT(ended.text,
                testing::ContainsRegex(
                    "at offset 0x1009 of what was the mapping of buffer 0 until it was removed by "
                    "thread [0-9]+ with munmap[(]0x[0-9a-f]+, [0-9]+[)] at "
                    "mode_read_after_unmap[(][)] testee_faults.c:[0-9]+ [(]via .*munmap[)], by "));
}

TEST_P(FaultTest, ACrashInOtherRemovedMemoryNamesTheCall) {
    TestRun run(options_for(GetParam()));
    run.start("read-after-free");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    ASSERT_TRUE(ended.fault);
    EXPECT_THAT(ended.text,
                testing::ContainsRegex("in memory that was removed by thread [0-9]+ with munmap[(]"
                                       ".*at mode_read_after_free[(][)] testee_faults.c:[0-9]+"));
}

TEST_P(FaultTest, AnAbortIsAnAbort) {
    TestRun run(options_for(GetParam()));
    run.start("abort");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGABRT);
    ASSERT_TRUE(ended.fault);
    EXPECT_FALSE(ended.fault->has_address);
    ASSERT_TRUE(ended.fault->called_by);
    EXPECT_EQ(ended.fault->called_by->resolved().symbol.rfind("mode_abort+", 0), 0u)
        << ended.fault->called_by->resolved().symbol;
    EXPECT_NE(ended.text.find(", called from testee+"), std::string::npos) << ended.text;
}

TEST_P(FaultTest, AJumpToNowhereSaysSo) {
    TestRun run(options_for(GetParam()));
    run.start("jump-to-zero");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGSEGV);
    EXPECT_NE(ended.text.find("by 0x0, where no code is, called from testee+"), std::string::npos)
        << ended.text;
}

}  // namespace
}  // namespace kmes::conformance
