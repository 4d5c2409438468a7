// SPDX-License-Identifier: MIT
#include "conformance/main/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Version, BeginsWithTheReleaseOfTheTree) {
    std::ifstream file("VERSION");
    std::string release;
    ASSERT_TRUE(std::getline(file, release));
    EXPECT_THAT(version_text(""), StartsWith("kmes-conformance " + release + ", unknown commit\n"));
    EXPECT_THAT(version_text("0123abcd"), HasSubstr(release + ", commit 0123abcd\n"));
    EXPECT_THAT(version_text("a\nb"), HasSubstr("commit a\\x0ab\n"));
}

TEST(Version, IsTheSameInReports) {
    EXPECT_THAT(version_text("0123abcd"),
                StartsWith("kmes-conformance " + suite_version("").release + ", commit "));
    EXPECT_EQ(suite_version("0123abcd").commit, "0123abcd");
    EXPECT_EQ(suite_version("").ring_format, 1u);
}

TEST(Version, HasTheVersionsOfTheRing) {
    EXPECT_THAT(version_text(""),
                HasSubstr("\nring format version 1\ntestee contract version 1\n"));
}

}  // namespace
}  // namespace kmes::conformance
