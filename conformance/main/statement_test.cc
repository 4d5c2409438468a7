// SPDX-License-Identifier: MIT
//
// Tests of the conformance statement, and of `verify`.
#include "conformance/main/report_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/main/report_shell.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

TEST(Statement, IsVerified) {
    const Folder folder;
    const std::string statement = folder.file("s");
    const std::string json = folder.file("j");
    ReportShell shell;
    shell.failures["E3/d"] = std::string(1000, '\xff') + "lost";
    EXPECT_EQ(shell.test({"--report", "statement:" + statement, "--report", "json:" + json,
                          "--consumer", "reader", "--consumer-version", "7"}),
              1);
    EXPECT_EQ(shell.run({"verify", statement, json}), 0);
    EXPECT_THAT(read_file(statement), HasSubstr("consumer:      reader\nversion:       7\n"));
    std::string forged = read_file(statement);
    forged.replace(forged.find("not passed"), 10, "passed");
    write_file(statement, forged);
    EXPECT_EQ(shell.run({"verify", statement, json}), 1);
    EXPECT_THAT(shell.error.str(), HasSubstr("the statement has \"erratum:       passed"));
    // Another report: one different figure is enough.
    EXPECT_EQ(shell.test({"--report", "statement:" + statement, "--report", "json:" + json}), 1);
    std::string other = read_file(json);
    other.replace(other.find("\"replay\": \""), 11, "\"replay\": \"x");
    write_file(json, other);
    EXPECT_EQ(shell.run({"verify", statement, json}), 1);
    EXPECT_THAT(shell.error.str(), HasSubstr("json report:   sha256:"));
}

// The case that tests E9 passes, so the finding of E3/d gets the clause E3.
TEST(Statement, HasTheClauseOfAFailureThatAllReportsHave) {
    const Folder folder;
    const std::string json = folder.file("j");
    const std::string statement = folder.file("s");
    ReportShell shell;
    shell.failures = {{"E3/d", "lost"}};
    EXPECT_EQ(shell.test({"--report", "console", "--report", "statement:" + statement, "--report",
                          "json:" + json}),
              1);
    EXPECT_THAT(shell.out.str(), HasSubstr("fail E3/d (clause E3)\n"));
    EXPECT_EQ(nlohmann::json::parse(read_file(json))["cases"][3]["clause"], "E3");
    EXPECT_THAT(read_file(statement), HasSubstr("  E3/d [E3] lost\n"));
    EXPECT_EQ(shell.run({"verify", statement, json}), 0) << shell.error.str();
}

// A case that an option adds cannot take the place of a case that --without omits.
TEST(Statement, CountsTheCasesThatAnOptionAdds) {
    const Folder folder;
    const std::string json = folder.file("j");
    const std::string statement = folder.file("s");
    ReportShell shell;
    shell.cases.push_back(case_of("5.1.9/shared", Level::must, Demand::shared));
    const std::vector<std::string> reports = {"--report", "statement:" + statement, "--report",
                                              "json:" + json};
    const auto must_line = [&](std::vector<std::string> options) {
        options.insert(options.end(), reports.begin(), reports.end());
        EXPECT_EQ(shell.test(options), 0) << shell.error.str();
        EXPECT_EQ(shell.run({"verify", statement, json}), 0) << shell.error.str();
        const std::string text = read_file(statement);
        const std::size_t begin = text.find("must: ");
        return text.substr(begin, text.find('\n', begin) - begin);
    };
    EXPECT_EQ(must_line({}), "must:          passed (2 of 2 cases ran: 2 passed)");
    EXPECT_EQ(must_line({"--shared"}), "must:          passed (3 of 3 cases ran: 3 passed)");
    EXPECT_EQ(must_line({"--shared", "--without", "5.1.6/b"}),
              "must:          incomplete (2 of 3 cases ran: 2 passed)");
    EXPECT_EQ(must_line({"--explore", "off"}),
              "must:          passed (2 of 2 cases ran: 2 passed)");
}

// A reader of the statement sees what was left out.
TEST(Statement, NamesTheCasesThatWereChosen) {
    const Folder folder;
    const std::string json = folder.file("j");
    const std::string statement = folder.file("s");
    ReportShell shell;
    std::vector<std::string> options = {
        "--report", "statement:" + statement, "--report", "json:" + json, "--filter", "E*"};
    for (int i = 0; i < 22; ++i) {
        options.emplace_back("--without");
        options.push_back("E3/d" + std::string(i, '*'));
    }
    EXPECT_EQ(shell.test(options), 0) << shell.error.str();
    const std::string text = read_file(statement);
    EXPECT_THAT(text, HasSubstr(" --filter 'E*' --without E3/d --without 'E3/d*' "));
    EXPECT_THAT(text, HasSubstr(" (and 2 more of --without)\n"));
    EXPECT_EQ(shell.run({"verify", statement, json}), 0) << shell.error.str();
}

TEST(Statement, NeedsTheJsonReport) {
    ReportShell shell;
    EXPECT_EQ(shell.test({"--report", "statement"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --report json:FILE"));
}

TEST(Verify, RefusesOtherFiles) {
    const Folder folder;
    const std::string file = folder.file("f");
    ReportShell shell;
    EXPECT_EQ(shell.run({"verify"}), 2);
    EXPECT_EQ(shell.run({"verify", file}), 2);
    EXPECT_EQ(shell.run({"verify", file, file}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("No such file"));
    write_file(file, "KMES conformance statement, format 2\n");
    EXPECT_EQ(shell.run({"verify", file, file}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("expected a first line"));
    write_file(file, "{}");
    EXPECT_EQ(shell.run({"verify", file, file}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("; the statement comes before the JSON report"));
    write_file(file, "KMES conformance statement, format 1\n");
    EXPECT_EQ(shell.run({"verify", file, file}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("the file is no JSON from line 1 on"));
}

}  // namespace
}  // namespace kmes::conformance
