// SPDX-License-Identifier: MIT
//
// Tests of Progress: what a report says so far.
#include "conformance/oracle/judge.h"

#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

TEST(Progress, FollowsTheReport) {
    TestRun run(256, 2);
    RecordParser parser;
    Progress progress(run.history);
    EXPECT_EQ(progress.first_undelivered(0), nullptr);
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of(std::string(kEndEventType)));
    ASSERT_NE(progress.first_undelivered(0), nullptr);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 1u);
    parser.feed("E 0 1 5 1 61 0 cbf29ce484222325\nE 0 99999 5 1 61 0 cbf29ce484222325\n");
    progress.update(parser);
    EXPECT_EQ(progress.last_sequence(0), 1u);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 2u);
    parser.feed("E 0 2 5 1 6b6d65732e636f6e666f726d616e63652e656e64 0 cbf29ce484222325\n");
    progress.update(parser);
    progress.update(parser);
    EXPECT_TRUE(progress.ended(0));
    EXPECT_EQ(progress.delivered_count(0), 3u);
    EXPECT_FALSE(progress.all_ended());
    parser.feed("R 1 no\nL 77 1\n");
    progress.update(parser);
    EXPECT_TRUE(progress.all_ended());
    EXPECT_TRUE(progress.refused(1));
}

TEST(Progress, OwesWhatWentToANewBuffer) {
    TestRun run;
    Progress progress(run.history);
    run.swap(0, 256, false);
    run.emit(0, spec_of("a"));
    ASSERT_NE(progress.first_undelivered(0), nullptr);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 1u);
}

}  // namespace
}  // namespace kmes::conformance
