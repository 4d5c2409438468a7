// SPDX-License-Identifier: MIT
//
// Tests of known failures, statements, shards and their merge: the whole program, with made-up
// cases and without a testee.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/main/known_failures.h"
#include "conformance/main/program.h"
#include "conformance/main/report_commands.h"
#include "conformance/main/report_files.h"
#include "conformance/main/testing.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CaseOutcome never_run(Stage&) {
    throw std::logic_error("the test runs cases itself");
}

Case case_of(std::string_view id, Level level, Demand demand = Demand::always) {
    return {id, level, id.substr(0, id.find('/')), "title", "done", "right", never_run, demand, 0};
}

class Shell {
  public:
    int run(std::vector<std::string> words) {
        out.str("");
        error.str("");
        ran.clear();
        const auto play = [this](const Case& the_case, const StageSettings&) {
            ran.emplace_back(the_case.id);
            const auto found = failures.find(std::string(the_case.id));
            if (found == failures.end()) return CaseOutcome{Verdict::pass, "", "", ""};
            return CaseOutcome{verdict, "E9", found->second, ""};
        };
        const Surroundings surroundings{
            .cases = cases,
            .run_on_stage = play,
            .check_set_up = [](const StageSettings&) { return std::string(); },
            .out = out,
            .error = error,
            .timeout_scale = "",
            .shard = shard,
            .stop = stop,
            .commands = report_commands(),
        };
        return run_program(words, surroundings);
    }
    int test(std::vector<std::string> options) {
        options.insert(options.end(), {"--", "./consumer"});
        return run(options);
    }

    std::vector<Case> cases = {case_of("5.1.5/a", Level::must), case_of("5.1.6/b", Level::must),
                               case_of("E2/c", Level::erratum, Demand::explored),
                               case_of("E3/d", Level::erratum), case_of("E9/e", Level::erratum)};
    std::map<std::string, std::string> failures;  // id and message
    Verdict verdict = Verdict::fail;
    ShardEnvironment shard;
    StopFlag stop;
    std::ostringstream out;
    std::ostringstream error;
    std::vector<std::string> ran;
};

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

// -- Known failures ------------------------------------------------------------------------------

TEST(KnownFailures, DoNotFailTheRun) {
    const Folder folder;
    const std::string list = folder.file("known");
    write_file(list, "# mended in June\nE3/d [E9] CPU 0: event 14 is lost\n");
    Shell shell;
    shell.failures["E3/d"] = "CPU 0: event 27 is lost";
    EXPECT_EQ(shell.test({}), 1);
    EXPECT_EQ(shell.test({"--known-failures", list, "--report", "json"}), 0);
    const auto json = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(json["cases"][3]["known"], true);
    EXPECT_EQ(json["summary"]["known"], 1);
    EXPECT_EQ(json["summary"]["fail"], 1);
    EXPECT_EQ(shell.error.str(), "");
    EXPECT_EQ(shell.test({"--known-failures", list, "--report", "junit"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("failures=\"0\" errors=\"0\" skipped=\"1\""));
    EXPECT_THAT(shell.out.str(), HasSubstr("<skipped message=\"known failure: CPU 0"));
    EXPECT_EQ(shell.test({"--known-failures", list, "--report", "tap"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("not ok 4 - E3/d # TO"
                                           "DO known failure\n"));
    // A failure of another case is not known.
    shell.failures["E9/e"] = "CPU 0: event 27 is lost";
    EXPECT_EQ(shell.test({"--known-failures", list}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("2 fail (1 known)"));
}

TEST(KnownFailures, FailTheRunWhereTheyAreStale) {
    const Folder folder;
    const std::string list = folder.file("known");
    write_file(list, "E3/d [E9] lost\nE9/e [E9] torn\nE9/gone [E9] torn\n5.1.6/b [E3] lost\n");
    Shell shell;
    shell.failures = {{"E9/e", "reordered"}, {"5.1.6/b", "lost"}};
    EXPECT_EQ(shell.test({"--known-failures", list}), 1);
    EXPECT_EQ(shell.error.str(), "kmes-conformance: 5.1.6/b failed with another message than " +
                                     list +
                                     " lists: [E9] lost; listed: [E3] lost\n"
                                     "kmes-conformance: E3/d passed, but " +
                                     list +
                                     " lists it as a known failure\n"
                                     "kmes-conformance: E9/e failed with another message than " +
                                     list +
                                     " lists: [E9] reordered; listed: [E9] torn\n"
                                     "kmes-conformance: " +
                                     list + " lists \"E9/gone\", but there is no such case\n");
    // A case that did not run or is undecided is no difference.
    write_file(list, "E3/d [E9] lost\n");
    EXPECT_EQ(shell.test({"--known-failures", list, "--filter", "5.1.5/a"}), 0);
    shell.failures = {{"E3/d", "too slow"}};
    shell.verdict = Verdict::inconclusive;
    EXPECT_EQ(shell.test({"--known-failures", list}), 4);
}

TEST(KnownFailures, AreRewritten) {
    const Folder folder;
    const std::string list = folder.file("known");
    const std::string link = folder.file("link");
    write_file(list, "# why\n\nE3/d [E9] lost\nE9/gone [E9] torn\nE9/e [E9] event 3 is torn\n");
    std::filesystem::create_symlink("known", link);
    Shell shell;
    shell.failures = {{"5.1.5/a", "a\nline"}, {"E9/e", "event 4 is torn"}};
    EXPECT_EQ(shell.test({"--known-failures", link, "--fix-known-failures"}), 0);
    EXPECT_EQ(read_file(list), "# why\n\nE9/e [E9] event 3 is torn\n5.1.5/a [E9] a\\x0aline\n");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(shell.test({"--known-failures", list}), 0);
    // The lines of cases that do not run stay.
    shell.failures.clear();
    EXPECT_EQ(shell.test({"--known-failures", list, "--fix-known-failures", "--filter", "E9/e"}),
              0);
    EXPECT_EQ(read_file(list), "# why\n\n5.1.5/a [E9] a\\x0aline\n");
    // A missing file is created.
    shell.failures = {{"E9/e", "torn"}};
    EXPECT_EQ(shell.test({"--known-failures", folder.file("new"), "--fix-known-failures"}), 0);
    EXPECT_EQ(read_file(folder.file("new")), "E9/e [E9] torn\n");
}

TEST(KnownFailures, SayWhatIsWrongWithTheList) {
    const Folder folder;
    const std::string list = folder.file("known");
    Shell shell;
    EXPECT_EQ(shell.test({"--known-failures", list}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("known: No such file"));
    EXPECT_EQ(shell.test({"--known-failures", folder.file(".")}), 2);
    for (const char* line : {"E9/e", "E9/e torn", "E9/e [E9]", "\xff\x01", "E9/e\t[E9] torn"}) {
        write_file(list, std::string("# c\n") + line + "\n");
        EXPECT_EQ(shell.test({"--known-failures", list}), 2) << line;
        EXPECT_THAT(shell.error.str(), HasSubstr(":2: expected a case id, the clause in"));
    }
    write_file(list, "E9/e [E9] torn\nE9/e [E9] lost\n");
    EXPECT_EQ(shell.test({"--known-failures", list}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr(":2: the case \"E9/e\" is listed twice"));
    EXPECT_EQ(shell.test({"--fix-known-failures"}), 2);
    EXPECT_THAT(shell.ran, IsEmpty());
}

TEST(KnownFailures, MayHaveLinesThatEndWithCrLf) {
    const Folder folder;
    const std::string list = folder.file("known");
    const std::string unsupported = folder.file("unsupported");
    write_file(list, "# why\r\n\r\nE3/d [E9] lost\r\n");
    write_file(unsupported, "# none\r\n\r\n");
    Shell shell;
    shell.failures = {{"E3/d", "lost"}};
    const std::vector<std::string> lists = {"--known-failures", list, "--expect-unsupported",
                                            unsupported};
    EXPECT_EQ(shell.test(lists), 0) << shell.error.str();
    shell.verdict = Verdict::unsupported;
    write_file(unsupported, "E3/d\r\n");
    EXPECT_EQ(shell.test(lists), 0) << shell.error.str();
}

TEST(KnownFailures, DoNotDependOnNumbers) {
    EXPECT_EQ(without_numbers("thread 31972 at 0x7ffe12ab, 3.5"), "thread # at #, #.#");
}

// -- Files ---------------------------------------------------------------------------------------

// The arguments of the consumer may be longer than any text that a reader of the JSON accepts.
TEST(Files, AreCompleteWithALongCommand) {
    const Folder folder;
    const std::string json = folder.file("j");
    const std::string statement = folder.file("s");
    std::vector<std::string> words = {
        "--report", "statement:" + statement, "--report", "json:" + json, "--", "./consumer"};
    words.resize(words.size() + 20, std::string(60'000, 'x'));
    Shell shell;
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

TEST(Files, AreNotNamedTwice) {
    const Folder folder;
    const std::string file = folder.file("x");
    const std::string link = folder.file("link");
    std::filesystem::create_symlink("x", link);
    Shell shell;
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

// -- Statements ----------------------------------------------------------------------------------

TEST(Statement, IsVerified) {
    const Folder folder;
    const std::string statement = folder.file("s");
    const std::string json = folder.file("j");
    Shell shell;
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
    Shell shell;
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
    Shell shell;
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

TEST(Statement, NeedsTheJsonReport) {
    Shell shell;
    EXPECT_EQ(shell.test({"--report", "statement"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --report json:FILE"));
}

TEST(Verify, RefusesOtherFiles) {
    const Folder folder;
    const std::string file = folder.file("f");
    Shell shell;
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

// -- Shards --------------------------------------------------------------------------------------

// Writes the report of each shard to a file.
std::vector<std::string> run_shards(Shell& shell, const Folder& folder, int total,
                                    const std::vector<std::string>& options = {}) {
    std::vector<std::string> files;
    for (int i = 0; i < total; ++i) {
        shell.shard = {std::to_string(total), std::to_string(i), folder.file("status")};
        files.push_back(folder.file("shard" + std::to_string(i)));
        std::vector<std::string> words = options;
        words.insert(words.end(), {"--report", "json:" + files.back()});
        shell.test(words);
    }
    shell.shard = {};
    return files;
}

TEST(Shards, HaveTogetherWhatOneRunHas) {
    const Folder folder;
    Shell shell;
    shell.failures = {{"E3/d", "lost"}};
    EXPECT_EQ(shell.test({"--report", "json:" + folder.file("whole")}), 1);
    auto whole = nlohmann::json::parse(read_file(folder.file("whole")));
    for (const int total : {1, 2, 3, 8}) {
        const std::vector<std::string> files = run_shards(shell, folder, total);
        EXPECT_TRUE(std::filesystem::exists(folder.file("status")));
        std::vector<std::string> words = {"merge", "--report", "json"};
        words.insert(words.end(), files.rbegin(), files.rend());
        EXPECT_EQ(shell.run(words), 1);
        auto merged = nlohmann::json::parse(shell.out.str());
        for (auto* each : {&whole, &merged}) {
            (*each)["run"]["began"] = (*each)["run"]["seconds"] = "";
            for (auto& one : (*each)["cases"]) one["seconds"] = 0;
        }
        EXPECT_EQ(merged, whole) << total;
    }
}

TEST(Shards, AreMergedIntoOneConsoleReport) {
    const Folder folder;
    Shell shell;
    std::vector<std::string> words = run_shards(shell, folder, 2);
    words.insert(words.begin(), "merge");
    EXPECT_EQ(shell.run(words), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("\n5 cases, 4 CPUs, capacity 65536 bytes, seed 1\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("\n5 cases: 5 pass, 0 fail; "));
}

TEST(Shards, SayWhatIsMissing) {
    const Folder folder;
    Shell shell;
    const std::vector<std::string> files = run_shards(shell, folder, 3);
    EXPECT_EQ(shell.run({"merge", files[0], files[2], "--report", "junit:" + folder.file("xml")}),
              3);
    EXPECT_THAT(shell.error.str(), HasSubstr("shard 1 of 3 is missing\n"));
    EXPECT_THAT(shell.error.str(), HasSubstr("2 cases did not run, the first is "));
    EXPECT_THAT(read_file(folder.file("xml")), HasSubstr("type=\"not run\""));
}

TEST(Shards, AreNotMergedWithOthers) {
    const Folder folder;
    Shell shell;
    const std::vector<std::string> files = run_shards(shell, folder, 2);
    EXPECT_EQ(shell.run({"merge", files[0], files[0]}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("are both shard 0"));
    shell.shard = {"2", "1", ""};
    EXPECT_EQ(shell.test({"--report", "json:" + folder.file("other"), "--seed", "9"}), 0);
    EXPECT_EQ(shell.run({"merge", files[0], folder.file("other")}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("differ in --seed"));
    shell.shard = {};
    EXPECT_EQ(shell.test({"--report", "json:" + folder.file("other")}), 0);
    EXPECT_EQ(shell.run({"merge", folder.file("other")}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("this is no report of a shard"));
    EXPECT_EQ(shell.run({"merge", folder.file("none")}), 2);
    EXPECT_EQ(shell.run({"merge", "--report", "xml", files[0]}), 2);
    EXPECT_EQ(shell.run({"merge"}), 2);
}

// Each shard reports the stale lines of its own cases, and the merged run has them all.
TEST(Shards, KeepTheStaleLinesOfAList) {
    const Folder folder;
    const std::string known = folder.file("known");
    const std::string unsupported = folder.file("unsupported");
    Shell shell;
    const auto run_and_merge = [&] {
        const std::vector<std::string> lists = {"--known-failures", known, "--expect-unsupported",
                                                unsupported};
        std::vector<std::string> words = run_shards(shell, folder, 2, lists);
        words.insert(words.begin(), {"merge", "--report", "json"});
        return shell.run(words);
    };
    write_file(known, "E3/d [E9] lost\n");
    write_file(unsupported, "");
    EXPECT_EQ(run_and_merge(), 1);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: E3/d passed, but " + known + " lists it as a known failure\n");
    const auto json = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(json["differences"].size(), 1u);
    EXPECT_EQ(json["differences"][0]["case"], "E3/d");
    // A line without a case is one difference, although each shard has it.
    write_file(known, "E9/gone [E9] lost\n");
    EXPECT_EQ(run_and_merge(), 1);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: " + known + " lists \"E9/gone\", but there is no such case\n");
    write_file(known, "");
    write_file(unsupported, "5.1.6/b\n");
    EXPECT_EQ(run_and_merge(), 1);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.6/b is expected to be unsupported"));
    // A line of a case of another shard is not stale.
    shell.failures = {{"E3/d", "lost"}};
    write_file(known, "E3/d [E9] lost\n");
    write_file(unsupported, "");
    EXPECT_EQ(run_and_merge(), 0) << shell.error.str();
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Shards, AreNumbersOfTheEnvironment) {
    Shell shell;
    for (const auto& [total, index] :
         {std::pair("x", "0"), std::pair("-1", "0"), std::pair("99999", "0"), std::pair("2", "2"),
          std::pair("2", ""), std::pair("2", "one")}) {
        shell.shard = {total, index, ""};
        EXPECT_EQ(shell.test({}), 2) << total << " " << index;
    }
    shell.shard = {"2", "0", "/no/such/folder/status"};
    EXPECT_EQ(shell.test({}), 2);
    shell.shard = {"2", "0", ""};
    EXPECT_EQ(shell.test({"--known-failures", "/dev/null", "--fix-known-failures"}), 2);
    // The environment of Bazel for a test without shards.
    shell.shard = {"0", "0", ""};
    EXPECT_EQ(shell.test({}), 0);
    EXPECT_EQ(shell.ran.size(), 5u);
}

// The reports of two shards that both played a part of one case.
std::vector<RunReport> two_parts(Verdict one, Verdict other) {
    std::vector<RunReport> shards(2);
    for (std::uint32_t index = 0; index < 2; ++index) {
        CaseResult result;
        result.id = "b/1";
        result.verdict = index == 0 ? one : other;
        result.message = index == 0 ? "the first" : "the second";
        result.seconds = 1.0 + index;
        result.explored = Explored{100 + index, 1.5, true};
        shards[index].shard = Shard{index, 2, {"b/1"}};
        shards[index].results.push_back(result);
    }
    return shards;
}

TEST(Merge, AddsThePlaysOfTheParts) {
    const Merged merged = merge_shards(two_parts(Verdict::pass, Verdict::pass), {"0", "1"});
    ASSERT_EQ(merged.report.results.size(), 1u);
    const CaseResult& all = merged.report.results[0];
    EXPECT_EQ(all.verdict, Verdict::pass);
    EXPECT_EQ(all.explored->schedules, 201u);
    EXPECT_TRUE(all.explored->whole);
    EXPECT_EQ(all.seconds, 2.0);
    EXPECT_EQ(all.message, "201 schedules in 2 shards");
}

TEST(Merge, FailsWhereOnePartFailed) {
    for (const Verdict other :
         {Verdict::pass, Verdict::unsupported, Verdict::inconclusive, Verdict::suite_error}) {
        const Merged merged = merge_shards(two_parts(other, Verdict::fail), {"0", "1"});
        ASSERT_EQ(merged.report.results.size(), 1u);
        EXPECT_EQ(merged.report.results[0].verdict, Verdict::fail);
        EXPECT_EQ(merged.report.results[0].message, "the second");
        const Merged inconclusive = merge_shards(two_parts(Verdict::pass, other), {"0", "1"});
        EXPECT_EQ(inconclusive.report.results[0].verdict, other);
    }
    // Of two failures, that of the first shard, in whatever order the files are named.
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::fail);
    std::swap(shards[0], shards[1]);
    EXPECT_EQ(merge_shards(shards, {"1", "0"}).report.results[0].message, "the first");
}

TEST(Merge, FailsWhereOneOfTwoFailuresIsUnknown) {
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::fail);
    shards[0].results[0].is_known = true;
    const Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_EQ(merged.report.results[0].message, "the second");
    EXPECT_FALSE(merged.report.results[0].is_known);
    EXPECT_EQ(exit_status(merged.report), 1);
}

// A shard in which its part of a known failure passed says nothing about the whole case.
TEST(Merge, TakesADifferenceFromTheDecisivePart) {
    std::vector<RunReport> shards = two_parts(Verdict::fail, Verdict::pass);
    shards[0].results[0].is_known = true;
    shards[1].differences = {{"b/1", "b/1 passed"}};
    Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_THAT(merged.report.differences, IsEmpty());
    EXPECT_EQ(exit_status(merged.report), 0);
    shards = two_parts(Verdict::pass, Verdict::pass);
    for (RunReport& shard : shards) shard.differences = {{"b/1", "b/1 passed"}};
    merged = merge_shards(shards, {"0", "1"});
    EXPECT_THAT(merged.report.differences, ElementsAre(ListDifference{"b/1", "b/1 passed"}));
    EXPECT_EQ(exit_status(merged.report), 1);
}

TEST(Merge, KeepsThePreflightOnlyIfNoShardHasRun) {
    std::vector<RunReport> shards = two_parts(Verdict::pass, Verdict::pass);
    shards[0].preflight = "  no event\n";
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.preflight, "");
    shards[1].preflight = shards[0].preflight;
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.preflight, "  no event\n");
}

TEST(Merge, NamesACaseOfWhichAPartDidNotRun) {
    std::vector<RunReport> shards = two_parts(Verdict::pass, Verdict::pass);
    shards[1].results.clear();
    shards[1].not_run = {"b/1"};
    const Merged merged = merge_shards(shards, {"0", "1"});
    EXPECT_TRUE(merged.report.results.empty());
    EXPECT_THAT(merged.report.not_run, ElementsAre("b/1"));
    EXPECT_THAT(merged.missing, ElementsAre(HasSubstr("1 case did not run")));
    shards[0].results[0].verdict = Verdict::fail;
    EXPECT_EQ(merge_shards(shards, {"0", "1"}).report.results.size(), 1u);
}

TEST(Shards, EachHasItsPartOfADeepSearchAndOfASoak) {
    std::vector<Case> cases;
    cases.push_back(case_of("a/1", Level::must, Demand::always));
    cases.push_back(case_of("b/1", Level::must, Demand::explored));
    cases.push_back(case_of("soak", Level::robust, Demand::soak));
    ExploreSettings deep;
    deep.deep = true;
    for (std::uint32_t index = 0; index < 2; ++index) {
        std::vector<const Case*> mine;
        for (const Case& each : cases) mine.push_back(&each);
        Shard shard{index, 2, {}};
        take_shard(shard, deep, mine);
        std::vector<std::string_view> ids;
        for (const Case* each : mine) ids.push_back(each->id);
        if (index == 0)
            EXPECT_THAT(ids, ElementsAre("a/1", "b/1", "soak"));
        else
            EXPECT_THAT(ids, ElementsAre("b/1", "soak"));
        EXPECT_THAT(shard.cases, ElementsAre("a/1", "b/1", "soak"));
    }
}

TEST(Shards, SpreadTheExploredCases) {
    std::vector<Case> cases;
    for (const char* id : {"a/1", "a/2", "b/1", "b/2"})
        cases.push_back(case_of(id, Level::must, id[0] == 'b' ? Demand::explored : Demand::always));
    for (std::uint32_t index = 0; index < 2; ++index) {
        std::vector<const Case*> mine;
        for (const Case& each : cases) mine.push_back(&each);
        Shard shard{index, 2, {}};
        take_shard(shard, {}, mine);
        ASSERT_EQ(mine.size(), 2u);
        EXPECT_EQ(mine[1]->demand, Demand::explored);
        EXPECT_THAT(shard.cases, ElementsAre("a/1", "a/2", "b/1", "b/2"));
    }
}

}  // namespace
}  // namespace kmes::conformance
