// SPDX-License-Identifier: MIT
#include "conformance/stage/attach_answers.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "conformance/stage/stage_rings_testing.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {
namespace {

class AttachAnswersTest : public ServedRingsTest {
  protected:
    StageSettings settings_;
    AttachAnswers answers_{settings_, buffers_};
};

TEST_F(AttachAnswersTest, NameTheCurrentBuffers) {
    const AttachAnswer answer = answers_.next(rings_);
    EXPECT_EQ(answer.error, 0);
    EXPECT_EQ(answer.buffers, (std::vector<BufferId>{id(0), id(1)}));
    EXPECT_EQ(answer.capacity_bytes, kCapacityBytes);
}

TEST_F(AttachAnswersTest, BeginWithTheErrorsOfTheCase) {
    answers_.set_errors({EAGAIN, EMFILE});
    EXPECT_EQ(answers_.next(rings_).error, EAGAIN);
    EXPECT_EQ(answers_.next(rings_).error, EMFILE);
    EXPECT_EQ(answers_.next(rings_).error, 0);
}

TEST_F(AttachAnswersTest, ReportAnotherCapacity) {
    EXPECT_FALSE(answers_.reports_other_capacity());
    answers_.set_reported_capacity(4096);
    EXPECT_TRUE(answers_.reports_other_capacity());
    EXPECT_EQ(answers_.next(rings_).capacity_bytes, 4096u);
    EXPECT_EQ(answers_.served(rings_, buffer(0)).expected_mapping_bytes, kMetadataBytes + 2 * 4096);
}

TEST_F(AttachAnswersTest, AreThoseOfTheModuleWithADevice) {
    settings_.device = "/dev/kmes";
    EXPECT_THROW(answers_.set_reported_capacity(4096), Stop);
    EXPECT_THROW(answers_.set_least_fd(100), Stop);
    EXPECT_EQ(answers_.least_fd(), 0);
}

}  // namespace
}  // namespace kmes::conformance
