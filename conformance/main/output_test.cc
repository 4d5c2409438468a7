// SPDX-License-Identifier: MIT
//
// The outputs of the program, and what happens if they cannot be written: pipes, full devices, a
// limit of file sizes.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/main/testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCorrect = "conformance/testees/reference";

std::vector<std::string> one_case(const std::string& report_file) {
    return {
        "--filter", "5.1.5/attach-and-map", "--report", "json", "--report-file", report_file, "--",
        kCorrect};
}

std::function<void()> limit_file_size(rlim_t bytes, bool is_ignored = false) {
    return [=] {
        const rlimit limit{bytes, bytes};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::signal(SIGXFSZ, is_ignored ? SIG_IGN : SIG_DFL);
    };
}

TEST(ReportFile, CanBeAProcessSubstitution) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, 0), 0);
    Process program(one_case("/dev/fd/" + std::to_string(ends[1])));
    ::close(ends[1]);
    EXPECT_EQ(program.end(), 0) << program.out;
    std::string report(std::size_t{1} << 16, '\0');
    const ssize_t got = ::read(ends[0], report.data(), report.size());
    ::close(ends[0]);
    ASSERT_GT(got, 0);
    report.resize(static_cast<std::size_t>(got));
    EXPECT_EQ(nlohmann::json::parse(report)["cases"].size(), 1u);
}

TEST(ReportFile, IsReportedWhereItCannotBeWritten) {
    Process full(one_case("/dev/full"));
    EXPECT_EQ(full.end(), 3);
    EXPECT_THAT(full.out, HasSubstr("cannot write the report file \"/dev/full\": No space left"));
    // A pipe without a reader.
    int ends[2];
    ASSERT_EQ(::pipe2(ends, 0), 0);
    Process broken(one_case("/dev/fd/" + std::to_string(ends[1])), [&] { ::close(ends[0]); });
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(broken.end(), 3);
    EXPECT_THAT(broken.out, HasSubstr("Broken pipe"));
    EXPECT_THAT(broken.out, HasSubstr("1 case: 1 pass"));
}

TEST(Program, SaysThatItCannotWriteItsOutput) {
    for (const char* word : {"--list", "--version", "--help", "clauses"}) {
        Process program({word}, [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); });
        EXPECT_EQ(program.end(), 3) << word;
        EXPECT_EQ(program.out, "kmes-conformance: cannot write to standard output\n") << word;
    }
}

TEST(ReportFile, IsNoLoopOfLinks) {
    const Folder folder;
    const std::string link = folder.file("link");
    std::filesystem::create_symlink("link", link);
    Process program(one_case(link));
    EXPECT_EQ(program.end(), 2);
    EXPECT_EQ(program.out, "kmes-conformance: the report file \"" + link +
                               "\" is a loop of symbolic links; expected a file name\n");
}

TEST(Program, EndsWhereNobodyReadsItsOutput) {
    Process program({"--", kCorrect});
    ASSERT_TRUE(program.wait_for("seed 1\n"));
    program.close_output();
    EXPECT_EQ(program.end(), 3);
}

TEST(FileSizeLimit, MakesErrorsOfTheSuiteAndNotTheEndOfTheRunner) {
    const Folder folder;
    for (const bool is_ignored : {false, true}) {
        Process program({"--filter", "event-model/*mebi*", "--", kCorrect},
                        limit_file_size(20'000 * 1024, is_ignored));
        EXPECT_EQ(program.end(), 3);
        EXPECT_THAT(program.out, HasSubstr("File too large"));
    }
    Process small(one_case(folder.file("report")), limit_file_size(64));
    EXPECT_EQ(small.end(), 3);
    EXPECT_THAT(small.out, HasSubstr("cannot write the report file"));
    EXPECT_FALSE(std::filesystem::exists(folder.file("report")));
}

// SigIgn of /proc/self/status has bit 24 for signal 25.
TEST(FileSizeLimit, LeavesTheTesteeTheDispositionThatTheRunnerWasGiven) {
    for (const bool is_ignored : {false, true}) {
        Process program({"--filter", "5.1.5/attach-and-map", "--", "sh", "-c",
                         "grep SigIgn: /proc/self/status >&2; exit 1"},
                        [=] { ::signal(SIGXFSZ, is_ignored ? SIG_IGN : SIG_DFL); });
        program.end();
        EXPECT_THAT(program.out, HasSubstr(is_ignored ? "0000000001000000" : "0000000000000000"));
    }
}

}  // namespace
}  // namespace kmes::conformance
