// SPDX-License-Identifier: MIT
//
// Tests of runs in shards, and of `merge` after them.
#include "conformance/main/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/main/report_shell.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes the report of each shard to a file.
std::vector<std::string> run_shards(ReportShell& shell, const Folder& folder, int total,
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
    ReportShell shell;
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
    ReportShell shell;
    std::vector<std::string> words = run_shards(shell, folder, 2);
    words.insert(words.begin(), "merge");
    EXPECT_EQ(shell.run(words), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("\n5 cases, 4 CPUs, capacity 65536 bytes, seed 1\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("\n5 cases: 5 pass, 0 fail; "));
}

TEST(Shards, SayWhatIsMissing) {
    const Folder folder;
    ReportShell shell;
    const std::vector<std::string> files = run_shards(shell, folder, 3);
    EXPECT_EQ(shell.run({"merge", files[0], files[2], "--report", "junit:" + folder.file("xml")}),
              3);
    EXPECT_THAT(shell.error.str(), HasSubstr("shard 1 of 3 is missing\n"));
    EXPECT_THAT(shell.error.str(), HasSubstr("2 cases did not run, the first is "));
    EXPECT_THAT(shell.out.str(), HasSubstr("\n2 cases were not run:\n"));
    EXPECT_THAT(read_file(folder.file("xml")), HasSubstr("type=\"not run\""));
}

TEST(Shards, AreNotMergedWithOthers) {
    const Folder folder;
    ReportShell shell;
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
    ReportShell shell;
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
    ReportShell shell;
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

TEST(Shards, AreNotThoseOfAnotherProgram) {
    std::vector<std::string> words = {"TEST_TOTAL_SHARDS=2", "A=1", "TEST_SHARD_INDEX=0",
                                      "TEST_SHARD_INDEX_OF=1", "TEST_SHARD_STATUS_FILE=f"};
    std::vector<char*> environment;
    for (std::string& word : words) environment.push_back(word.data());
    environment.push_back(nullptr);
    EXPECT_THAT(without_shard(environment.data()),
                ElementsAre(words[1].data(), words[3].data(), nullptr));
}

// A known failure that only one part of a search finds.
TEST(Shards, LeaveTheLinesOfCasesWithPartsToMerge) {
    const Folder folder;
    const std::string known = folder.file("known");
    write_file(known, "E2/c [E9] lost\n");
    ReportShell shell;
    for (const bool fails : {true, false}) {
        std::vector<std::string> words = {"merge"};
        for (int i = 0; i < 2; ++i) {
            shell.shard = {"2", std::to_string(i), ""};
            shell.failures.clear();
            if (fails && i == 0) shell.failures = {{"E2/c", "lost"}};
            words.push_back(folder.file("shard" + std::to_string(i)));
            EXPECT_EQ(shell.test({"--explore", "deep", "--known-failures", known, "--report",
                                  "json:" + words.back()}),
                      0);
            EXPECT_EQ(shell.error.str(), "");
        }
        shell.shard = {};
        EXPECT_EQ(shell.run(words), fails ? 0 : 1);
        EXPECT_EQ(shell.error.str().find("E2/c passed, but ") == std::string::npos, fails);
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
