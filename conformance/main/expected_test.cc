// SPDX-License-Identifier: MIT
//
// Tests of --expect-unsupported.
#include "conformance/main/expected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "conformance/main/shell.h"

namespace kmes::conformance {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Program, FailsWhereAnotherCaseIsUnsupportedThanExpected) {
    const Folder folder;
    const std::string list = folder.file("list");
    Shell shell;
    shell.fail_case("5.1.8.3/checks", Verdict::unsupported);
    write_file(list, "# why\n\n5.1.8.3/checks it cannot be had\nE7/torn-size not run\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 0);
    EXPECT_EQ(shell.error.str(), "");
    write_file(list, "# none\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 1);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.8.3/checks is unsupported, and not expected"));
    write_file(list, "5.1.8.3/checks\nE21/twice\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 1);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("E21/twice is expected to be unsupported, and was not: pass"));
    // A verdict with precedence stays.
    shell.fail_case("E21/twice", Verdict::suite_error);
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 3);
}

TEST(Program, RefusesAListThatIsNone) {
    const Folder folder;
    Shell shell;
    EXPECT_EQ(shell.test({"--expect-unsupported", folder.file("none")}), 2);
    EXPECT_THAT(shell.error.str(), AllOf(HasSubstr(": --expect-unsupported: /"),
                                         HasSubstr("none: No such file or directory")));
    write_file(folder.file("list"), "5.1.5/maps\nE99/other\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", folder.file("list")}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("there is no case \"E99/other\""));
    EXPECT_THAT(shell.ran, IsEmpty());
}

}  // namespace
}  // namespace kmes::conformance
