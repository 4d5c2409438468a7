// SPDX-License-Identifier: MIT
#include "conformance/stage/testee_report.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

class TesteeReportTest : public ServedRingsTest {
  protected:
    TesteeReportTest() { report_.watch(rings_.history()); }
    TesteeReport report_;
};

TEST_F(TesteeReportTest, GrowsByEachLineExceptComments) {
    EXPECT_FALSE(report_.feed("# alive\n"));
    EXPECT_FALSE(report_.feed("not a rec"));
    EXPECT_TRUE(report_.feed("ord\n"));
    EXPECT_EQ(report_.records().malformed_count(), 1u);
    EXPECT_EQ(report_.text(), "# alive\nnot a record\n");
    EXPECT_EQ(report_.bytes_left_out(), 0u);
}

TEST_F(TesteeReportTest, OwesWhatIsPublished) {
    rings_.history().note_attached(buffer(1));
    EXPECT_TRUE(report_.owes_nothing());
    emit(1);
    EXPECT_FALSE(report_.owes_nothing());
    EXPECT_TRUE(report_.feed("R 1 malformed\n"));
    EXPECT_TRUE(report_.progress().refused(1));
    EXPECT_TRUE(report_.owes_nothing());
}

TEST_F(TesteeReportTest, KeepsTheBeginningOfAFlood) {
    const std::string line = "# " + std::string(100000, 'x') + "\n";
    for (int i = 0; i < 200; ++i) report_.feed(line);
    EXPECT_GT(report_.bytes_left_out(), 0u);
    EXPECT_EQ(report_.text().size() + report_.bytes_left_out(), 200 * line.size());
}

}  // namespace
}  // namespace kmes::conformance
