// SPDX-License-Identifier: MIT
//
// Tests of the preflight of a run: when it runs, and what the program says after it.
#include "conformance/main/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "conformance/main/shell.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Program, EndsBeforeTheFirstCaseWhereTheAdapterCannotWork) {
    Shell shell;
    shell.preflight = {"  line 1: oh no\n      is:    \"E\"\n", 1, "line 1: oh no"};
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.ran, IsEmpty());
    EXPECT_EQ(
        std::regex_replace(shell.out.str(), std::regex("[0-9.]+ s\n"), "N s\n"),
        "kmes-conformance 1: ./consumer 'an argument'\n"
        "3 cases, 4 CPUs, capacity 65536 bytes, seed 1\n"
        "\n"
        "the adapter cannot work, and no case was run:\n"
        "  line 1: oh no\n"
        "      is:    \"E\"\n"
        "    check the adapter alone: tools/kmes conformance smoke -- ./consumer 'an argument'\n"
        "    run the cases nevertheless: tools/kmes conformance --no-preflight -- ./consumer "
        "'an argument'\n"
        "\n"
        "0 cases: 0 pass, 0 fail, 3 not run; N s\n");
    EXPECT_EQ(shell.error.str(), "");
    shell.preflight.status = 4;
    EXPECT_EQ(shell.test({"--report", "json"}), 4);
    const nlohmann::json parsed = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(parsed["preflight"], shell.preflight.mistakes);
    EXPECT_EQ(parsed["not_run"].size(), 3u);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: the adapter cannot work: line 1: oh no (--no-preflight runs the "
              "cases nevertheless)\n");
}

TEST(Program, SaysInALineThatAProgramCannotBeStarted) {
    Shell shell;
    shell.preflight = {"  ./p: no interpreter\n", 3, "./p: no interpreter", true};
    EXPECT_EQ(shell.test(), 3);
    EXPECT_EQ(shell.out.str(), "");
    EXPECT_EQ(shell.error.str(), "kmes-conformance: ./p: no interpreter\n");
}

TEST(Program, KeepsTheOptionsInWhatItSuggestsAfterThePreflight) {
    Shell shell;
    shell.preflight = {"  no\n", 1, "no"};
    EXPECT_EQ(shell.test({"--cpus", "2", "--timeout-scale", "2"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("smoke --timeout-scale 2 -- ./consumer"));
    EXPECT_THAT(shell.out.str(),
                HasSubstr(" --cpus 2 --timeout-scale 2 --no-preflight -- ./consumer"));
}

TEST(Program, SaysByWhichFormAProgramAttachesThatCannotWork) {
    Shell shell;
    shell.preflight = {"  no\n", 1, "no"};
    shell.other_form = "the program attaches as a consumer of form A does";
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("no case was run:\n"
                                           "  the program attaches as a consumer of form A does\n"
                                           "  no\n"));
}

TEST(Program, RunsNoPreflightWhereThatIsAskedOrOfNoUse) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_EQ(shell.preflights, 1);
    shell.preflight = {"  no\n", 1, "no"};
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--no-preflight"}), 1);
    EXPECT_EQ(shell.ran.size(), 3u);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --no-preflight -- ./consumer"));
    shell.act = nullptr;
    EXPECT_EQ(shell.test({"--debug", "5.1.5/maps"}), 0);
    EXPECT_EQ(shell.test({"--device", "/dev/kmes"}), 0);
    EXPECT_EQ(shell.preflights, 1);
}

}  // namespace
}  // namespace kmes::conformance
