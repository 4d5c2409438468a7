// SPDX-License-Identifier: MIT
//
// The double mapping in the testee (5.1.4, 5.1.5), and the reports of mmaps that violate the
// contract.

#include <linux/futex.h>
#include <sys/mman.h>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class MappingTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, MappingTest, kBothWays, name_of);

TEST_P(MappingTest, IsOneMemoryInBothCopiesAndBothProcesses) {
    TestRun run(options_for(GetParam()));
    run.buffers[0]->data()[65535] = 7;
    run.start("alias");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    EXPECT_EQ(run.buffers[0]->metadata()[132], 1) << "the testee's store to need_wake is not seen";
    run.buffers[0]->data()[5] = 100;
    run.buffers[0]->wake();
    EXPECT_EQ(run.finish().exit_status, 0);
    // The data cannot be made writable (EACCES); the page before it keeps its protection.
    EXPECT_EQ(run.tracer.output().standard_output(),
              "first copy 42\nsecond copy 42\nlast byte 7\nmake writable 13\nmake data writable "
              "13\nafter 200\n");
}

TEST_P(MappingTest, AWakeFromTheRunnerReachesASleeperInTheKernel) {
    TestRun run(options_for(GetParam()));
    run.start("sleep");
    ASSERT_TRUE(run.next<FutexWait>());
    const Inspection inspection = run.until_asleep();
    ASSERT_TRUE(inspection.all_blocked_for_good);
    EXPECT_EQ(run.buffers[0]->wake(), 1);
    const auto end = run.next<FutexWaitEnd>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, 0);
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), "woken 0\n");
}

TEST_P(MappingTest, TellsEveryDeviationAndDoesWhatAKernelWould) {
    TestRun run(options_for(GetParam()));
    run.buffers[1]->data()[5] = 42;
    run.buffers[0]->metadata()[0] = 75;
    run.start("odd-maps");
    std::vector<Mapped> maps;
    while (maps.size() < 8) {
        const auto mapped = run.next<Mapped>();
        ASSERT_TRUE(mapped);
        maps.push_back(*mapped);
    }
    ASSERT_TRUE(run.next<FutexWait>());
    EXPECT_TRUE(maps[0].deviation.length);
    EXPECT_FALSE(maps[0].deviation.shared || maps[0].deviation.offset ||
                 maps[0].deviation.protection);
    EXPECT_TRUE(maps[1].deviation.length && maps[1].deviation.protection &&
                maps[1].deviation.again);
    EXPECT_TRUE(maps[2].deviation.shared && !maps[2].deviation.length);
    EXPECT_FALSE(maps[2].mapping.shared);
    EXPECT_TRUE(maps[3].deviation.offset);
    EXPECT_EQ(maps[4].mapping.offset_bytes, 4096u + 65536u);
    EXPECT_TRUE(maps[5].deviation.address && !maps[5].deviation.length);
    EXPECT_EQ(maps[6].error, EINVAL);
    EXPECT_TRUE(maps[6].deviation.offset);
    EXPECT_EQ(maps[7].buffer, 1u);
    EXPECT_FALSE(maps[7].deviation.any()) << "a dup of the fd is the same file";
    // The mapping with a fixed address was removed, the others remain.
    const std::vector<Mapping> live = run.tracer.mappings();
    ASSERT_EQ(live.size(), 6u);
    EXPECT_EQ(live.back().address, maps[7].mapping.address);
    EXPECT_EQ(run.tracer.open_fds().size(), 2u);
    run.buffers[1]->wake();
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(),
              "page alone 75\none copy 42\nprivate 42\ndata alone 42\nsecond alone 42\nfixed "
              "1\nbad offset 22\n"
              "by dup 42\n");
}

}  // namespace
}  // namespace kmes::conformance
