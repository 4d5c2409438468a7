// SPDX-License-Identifier: MIT
//
// Tests of the list of known failures.
#include "conformance/main/known_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/main/report_shell.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KnownFailures, DoNotFailTheRun) {
    const Folder folder;
    const std::string list = folder.file("known");
    write_file(list, "# mended in June\nE3/d [E9] CPU 0: event 14 is lost\n");
    ReportShell shell;
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
    ReportShell shell;
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
    ReportShell shell;
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

TEST(KnownFailures, MayHaveTheFormerIdOfACase) {
    const Folder folder;
    const std::string list = folder.file("known");
    write_file(list, "E3/before [E9] lost\n5.1.6/b [E9] lost\n");
    ReportShell shell;
    shell.cases[3].former_id = "E3/before";
    shell.failures = {{"E3/d", "lost"}};
    EXPECT_EQ(shell.test({"--known-failures", list, "--filter", "E3/*"}), 0);
    EXPECT_EQ(shell.error.str(), "");
    EXPECT_EQ(shell.test({"--known-failures", list, "--fix-known-failures"}), 0);
    EXPECT_EQ(read_file(list), "E3/d [E9] lost\n");
    write_file(list, "E3/before [E9] lost\nE3/d [E9] lost\n");
    EXPECT_EQ(shell.test({"--known-failures", list}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("known:2: the case \"E3/d\" is listed twice"));
}

TEST(KnownFailures, SayWhatIsWrongWithTheList) {
    const Folder folder;
    const std::string list = folder.file("known");
    ReportShell shell;
    EXPECT_EQ(shell.test({"--known-failures", list}), 2);
    EXPECT_THAT(shell.error.str(),
                AllOf(HasSubstr(": --known-failures: /"), HasSubstr("known: No such file")));
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
    ReportShell shell;
    shell.failures = {{"E3/d", "lost"}};
    const std::vector<std::string> lists = {"--known-failures", list, "--expect-unsupported",
                                            unsupported};
    EXPECT_EQ(shell.test(lists), 0) << shell.error.str();
    shell.verdict = Verdict::unsupported;
    write_file(unsupported, "E3/d\r\n");
    EXPECT_EQ(shell.test(lists), 0) << shell.error.str();
}

// A run of a failure: the first one, or the one that is drawn.
CaseOutcome failure_of(bool is_drawn) {
    auto record = std::make_shared<RunRecord>();
    record->findings.emplace_back();
    record->timeline.add({});
    CaseOutcome outcome{Verdict::fail, is_drawn ? "E24" : "E9",
                        is_drawn ? "lost. Evidence: byte 7 of 0x5f; the cause: the consumer reads"
                                 : "lost. Evidence: 8 bytes after the mapping",
                        ""};
    outcome.record = std::move(record);
    return outcome;
}

// Only some reports need the second run of a failure.
TEST(KnownFailures, AreThoseOfTheFirstRunWithoutItsEvidence) {
    const Folder folder;
    const std::string list = folder.file("known");
    ReportShell shell;
    shell.act = [&shell](const Case& the_case) {
        return the_case.id == "E3/d" ? failure_of(shell.last_settings.record_accesses)
                                     : CaseOutcome{Verdict::pass, "", "", ""};
    };
    EXPECT_EQ(shell.test({"--known-failures", list, "--fix-known-failures"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("clause E24"));
    EXPECT_EQ(read_file(list), "E3/d [E9] lost\n");
    // The last one is the list of an earlier release.
    for (const char* line : {"lost", "lost. Evidence: 3 bytes before the mapping"}) {
        write_file(list, std::string("E3/d [E9] ") + line + "\n");
        for (const char* form : {"console", "json", "junit"})
            EXPECT_EQ(shell.test({"--known-failures", list, "--report", form}), 0) << form;
        shell.shard = {"2", "1", ""};
        EXPECT_EQ(shell.test({"--known-failures", list}), 0) << shell.error.str();
        shell.shard = {};
    }
}

TEST(KnownFailures, AreRewrittenWithTheLineEndsOfTheFile) {
    const Folder folder;
    const std::string list = folder.file("known");
    write_file(list, "\xef\xbb\xbf# why\r\nE3/d [E9] lost\r\n");
    ReportShell shell;
    shell.failures = {{"E3/d", "torn"}, {"E9/e", "lost"}};
    EXPECT_EQ(shell.test({"--known-failures", list, "--fix-known-failures"}), 0);
    EXPECT_EQ(read_file(list), "\xef\xbb\xbf# why\r\nE3/d [E9] torn\r\nE9/e [E9] lost\r\n");
}

TEST(KnownFailures, DoNotDependOnNumbers) {
    EXPECT_EQ(without_numbers("thread 31972 at 0x7ffe12ab, 3.5"), "thread # at #, #.#");
}

}  // namespace
}  // namespace kmes::conformance
