// SPDX-License-Identifier: MIT
//
// Tests of the files that a run writes.
#include "conformance/main/report_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/main/report_shell.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The arguments of the consumer may be longer than any text that a reader of the JSON accepts.
TEST(Files, AreCompleteWithALongCommand) {
    const Folder folder;
    const std::string json = folder.file("j");
    const std::string statement = folder.file("s");
    std::vector<std::string> words = {
        "--report", "statement:" + statement, "--report", "json:" + json, "--", "./consumer"};
    words.resize(words.size() + 20, std::string(60'000, 'x'));
    ReportShell shell;
    EXPECT_EQ(shell.run(words), 0) << shell.error.str();
    EXPECT_EQ(shell.run({"verify", statement, json}), 0) << shell.error.str();
}

TEST(Files, AreWrittenWhereAnotherReportCannotBeMade) {
    const Folder folder;
    ReportFiles files;
    const StopFlag stop;
    ASSERT_EQ(
        files.open({{ReportFormat::html, folder.file("a")}, {ReportFormat::json, folder.file("b")}},
                   &stop),
        0);
    EXPECT_FALSE(files.commit([](ReportFormat format) -> std::string {
        if (format == ReportFormat::html) throw std::logic_error("no text");
        return "a report";
    }));
    EXPECT_EQ(files.error(), "cannot make the html report: no text");
    EXPECT_FALSE(std::filesystem::exists(folder.file("a")));
    EXPECT_EQ(read_file(folder.file("b")), "a report");
}

TEST(Files, HaveTheConsoleReportWhateverIsOnStandardOutput) {
    const Folder folder;
    ReportShell shell;
    shell.failures = {{"E3/d", "lost"}};
    for (const char* form : {"console", "json", "junit", "tap"}) {
        const std::string file = folder.file(std::string("of-") + form);
        EXPECT_EQ(shell.test({"--report", form, "--report", "console:" + file}), 1);
        EXPECT_THAT(read_file(file), HasSubstr("\nfail E3/d (clause ")) << form;
        EXPECT_THAT(read_file(file), HasSubstr("\n5 cases: 4 pass, 1 fail; ")) << form;
    }
}

TEST(Files, HaveNoColoursOfATerminal) {
    const Folder folder;
    ReportShell shell;
    shell.failures = {{"E3/d", "lost"}};
    shell.has_colour = true;
    EXPECT_EQ(shell.test({}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("\x1b["));
    std::vector<std::string> words;
    for (const char* form : {"console", "junit", "tap", "html", "json"})
        words.insert(words.end(), {"--report", std::string(form) + ":" + folder.file(form)});
    EXPECT_EQ(shell.test(words), 1);
    for (const char* form : {"console", "junit", "tap", "html", "json"}) {
        const std::string text = read_file(folder.file(form));
        EXPECT_THAT(text, HasSubstr("E3/d")) << form;
        EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << form;
        EXPECT_THAT(text, Not(HasSubstr("x1b["))) << form;
    }
}

TEST(Files, AreNotNamedTwice) {
    const Folder folder;
    const std::string file = folder.file("x");
    const std::string link = folder.file("link");
    std::filesystem::create_symlink("x", link);
    ReportShell shell;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--report", "json:" + file, "--report", "html:" + file},
          {"--report", "json:" + folder.file("./x"), "--report", "html:" + link},
          {"--report-file", file, "--report", "json:" + file},
          {"--known-failures", file, "--fix-known-failures", "--report", "json:" + file},
          {"--known-failures", file, "--report", "json:" + file},
          {"--expect-unsupported", file, "--report-file", link}}) {
        write_file(file, "5.1.5/a [E9] lost\n");
        EXPECT_EQ(shell.test(words), 2) << words.back();
        EXPECT_THAT(shell.error.str(), HasSubstr(" name the same file; expected another one"));
        EXPECT_EQ(read_file(file), "5.1.5/a [E9] lost\n");
    }
    EXPECT_THAT(shell.ran, IsEmpty());
    EXPECT_EQ(shell.run({"merge", "--report", "json:" + file, "--report", "tap:" + file, "none"}),
              2);
    EXPECT_THAT(shell.error.str(), HasSubstr(" name the same file"));
    // A device can have several reports, and two lists can be one file.
    EXPECT_EQ(shell.test({"--report", "json:/dev/null", "--report", "html:/dev/null"}), 0);
    write_file(file, "# none\n");
    EXPECT_EQ(shell.test({"--known-failures", file, "--expect-unsupported", file}), 0);
}

}  // namespace
}  // namespace kmes::conformance
