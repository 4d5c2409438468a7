// SPDX-License-Identifier: MIT
//
// The program with --layout: consumers of another form of the layout, and the texts that name the
// form.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/main/testing.h"
#include "record/test_support.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFormA = "conformance/testees/c_consumer";
constexpr const char* kFormD = "conformance/testees/form_d_consumer";
constexpr const char* kBroken = "conformance/testees/form_d/broken_no-recheck";
constexpr const char* kEndsAtAHole = "conformance/testees/form_d/broken_ends-at-a-hole";
constexpr const char* kVariable = "KMES_CONFORMANCE_LAYOUT";

TEST(LayoutOption, TestsAConsumerOfTheForm) {
    Process program(
        {"--layout=stream", "--filter", "5.1.[15]/*", "--report", "json", "--", kFormD});
    EXPECT_EQ(program.end(), 0) << program.out;
    EXPECT_EQ(nlohmann::json::parse(program.out)["run"]["layout"], "D");
}

TEST(LayoutOption, FindsTheFormOut) {
    for (const std::vector<std::string>& option :
         {std::vector<std::string>{"--layout", "auto"}, {"--layout=auto"}}) {
        std::vector<std::string> words = option;
        words.insert(words.end(), {"--filter", "5.1.1/one-cpu", "--", kFormD});
        Process program(words);
        EXPECT_EQ(program.end(), 0) << program.out;
        EXPECT_THAT(program.out,
                    HasSubstr("--layout auto: form D, because kmes_attach asks for the number of "
                              "CPUs\n"));
    }
    Process form_a({"--layout", "auto", "--filter", "5.1.1/one-cpu", "--", kFormA},
                   [] { ::setenv(kVariable, "D", 1); });
    EXPECT_EQ(form_a.end(), 0) << form_a.out;
    EXPECT_THAT(form_a.out, HasSubstr("--layout auto: form A, because"));
    Process smoke({"smoke", "--layout", "auto", "--", kFormD});
    EXPECT_EQ(smoke.end(), 0) << smoke.out;
    EXPECT_THAT(smoke.out, HasSubstr("conformance/kmes-conformance --layout D -- "));
    Process none({"--layout", "auto"});
    EXPECT_EQ(none.end(), 2);
    EXPECT_THAT(none.out, HasSubstr("no program to test is named"));
}

// Words that run no case do not start the consumer.
TEST(LayoutOption, FindsTheFormOnlyForARun) {
    const Folder folder;
    const std::string file = folder.file("started");
    for (const auto& [option, status] : {std::pair<std::vector<std::string>, int>{{"--list"}, 0},
                                         {{"--help"}, 0},
                                         {{"--cpus", "0"}, 2},
                                         {{"--filter", "no-such-case"}, 2},
                                         {{"--debug", "no-such-case"}, 2}}) {
        std::vector<std::string> words = {"--layout", "auto"};
        words.insert(words.end(), option.begin(), option.end());
        words.insert(words.end(), {"--", "/bin/sh", "-c", "touch " + file});
        Process program(words);
        EXPECT_EQ(program.end(), status) << program.out;
        EXPECT_THAT(program.out, Not(HasSubstr("--layout auto: form")));
    }
    Process smoke({"smoke", "--layout", "auto", "--help", "--", "/bin/sh", "-c", "touch " + file});
    EXPECT_EQ(smoke.end(), 0) << smoke.out;
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(LayoutOption, IsIrrelevantIfTheProgramCannotBeStarted) {
    for (const std::vector<std::string>& begin :
         {std::vector<std::string>{"--report", "tap"}, {"smoke"}}) {
        std::vector<std::string> words = begin;
        words.insert(words.end(), {"--", "/no/such/program"});
        Process without(words);
        words.insert(words.end() - 2, {"--layout", "auto"});
        Process automatic(words);
        EXPECT_EQ(without.end(), 3);
        EXPECT_EQ(automatic.end(), 3);
        EXPECT_EQ(automatic.out, without.out);
    }
}

TEST(LayoutOption, IsNoPartOfTheReportInFormA) {
    Process program(
        {"--layout", "A", "--filter", "5.1.1/one-cpu", "--report", "json", "--", kFormA},
        [] { ::setenv(kVariable, "D", 1); });
    EXPECT_EQ(program.end(), 0) << program.out;
    EXPECT_FALSE(nlohmann::json::parse(program.out)["run"].contains("layout"));
}

TEST(LayoutOption, FailsAConsumerOfAnotherForm) {
    Process other({"--layout", "D", "--filter", "5.1.1/one-cpu", "--", kFormA});
    EXPECT_EQ(other.end(), 1);
    Process form_a({"--filter", "5.1.1/one-cpu", "--", kFormD});
    EXPECT_EQ(form_a.end(), 1);
}

TEST(LayoutOption, NamesTheFormByWhichAProgramAttaches) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--layout", "C", "--", kFormA},
          {"smoke", "--layout", "C", "--", kFormA}}) {
        Process form_a(words);
        EXPECT_EQ(form_a.end(), 1);
        EXPECT_THAT(form_a.out, HasSubstr("the program attaches as a consumer of form A does"));
        EXPECT_THAT(form_a.out, HasSubstr("this run is for form C: use --layout auto"));
    }
}

TEST(LayoutOption, SaysWhatHasNoMeaning) {
    Process program({"--layout", "D", "--filter", "contract-1/later-attach-eagain", "--", kFormD});
    program.end();
    EXPECT_THAT(program.out, HasSubstr("not applicable in form D: kmes_attach does not fail with"));
}

// A case of form D alone: the default run of another form does not have it.
TEST(LayoutOption, HasAHoleInTheCpusOfFormD) {
    const std::string id = "contract-1/hole-in-the-cpus";
    Process correct({"--layout", "D", "--filter", id, "--", kFormD});
    EXPECT_EQ(correct.end(), 0) << correct.out;
    Process broken({"--layout", "D", "--timeout-scale", "0.1", "--filter", id, "--", kEndsAtAHole});
    EXPECT_EQ(broken.end(), 1);
    EXPECT_THAT(broken.out, HasSubstr("(clause contract-1)"));
    EXPECT_THAT(broken.out, HasSubstr("CPU 2: the consumer makes no kmes_attach for it"));
    Process form_a({"--filter", id, "--", kFormA});
    EXPECT_EQ(form_a.end(), 2);
    EXPECT_THAT(form_a.out, HasSubstr("matches only cases that need another option; add "
                                      "--layout D"));
    Process debug({"--debug", id, "--", kFormA});
    EXPECT_EQ(debug.end(), 2);
    EXPECT_THAT(debug.out, HasSubstr("also needs --layout D"));
}

// The consumer sleeps without a time limit and makes sure of its buffer by an inode.
TEST(LayoutOption, HasAProducerThatFollowsThePublishedRules) {
    Process losses({"--layout", "D", "--producer", "as-published", "--filter", "published/*",
                    "--report", "json", "--", kFormD});
    EXPECT_EQ(losses.end(), 0) << losses.out;
    const nlohmann::json report = nlohmann::json::parse(losses.out);
    ASSERT_EQ(report["cases"].size(), 4u);
    for (const nlohmann::json& each : report["cases"]) {
        const bool is_lost = each["id"] != "published/swap-without-a-nudge";
        EXPECT_EQ(each["verdict"], is_lost ? "unsupported" : "pass") << each;
        if (is_lost) {
            EXPECT_THAT(each["message"].get<std::string>(),
                        HasSubstr("no consumer can prevent this loss ("));
        }
    }
    Process form_a({"--producer", "as-published", "--", kFormA});
    EXPECT_EQ(form_a.end(), 2);
    EXPECT_THAT(form_a.out, HasSubstr("--producer as-published also needs --layout B, C or D"));
    Process wrong({"--layout", "D", "--producer", "other", "--", kFormD});
    EXPECT_EQ(wrong.end(), 2);
    EXPECT_THAT(wrong.out, HasSubstr("--producer is \"other\"; expected as-published"));
    Process without({"--layout", "D", "--filter", "published/*", "--", kFormD});
    EXPECT_EQ(without.end(), 2);
    EXPECT_THAT(without.out, HasSubstr("add --producer as-published"));
}

TEST(LayoutOption, HasTheNumbersOfTheFormInTheTexts) {
    Process form_d({"--layout", "D", "--explain", "5.1.5/attach-and-map"});
    EXPECT_EQ(form_d.end(), 0);
    EXPECT_THAT(form_d.out, HasSubstr("8192 + 2 x capacity"));
    EXPECT_THAT(form_d.out, HasSubstr("\npublished:   Attaching and Mapping, Mapping\n"));
    Process contract({"--layout", "D", "--explain", "contract-4/cpu-by-cpu"});
    EXPECT_EQ(contract.end(), 0);
    EXPECT_THAT(contract.out, HasSubstr("\npublished:   none; the published documents have no "
                                        "contract for testees\n"));
    Process form_a({"--explain", "5.1.5/attach-and-map"});
    EXPECT_EQ(form_a.end(), 0);
    EXPECT_THAT(form_a.out, HasSubstr("4096 + 2 x capacity"));
    EXPECT_THAT(form_a.out, Not(HasSubstr("published:")));
}

// A record file has events of form A; the consumer gets them in its own form.
TEST(LayoutOption, EmitsRecordedEvents) {
    const Folder folder;
    const auto bytes = record::testing::file_of(2, 50, "payload");
    std::ofstream(folder.file("events"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    Process program(
        {"--layout", "D", "--stream", folder.file("events"), "--filter", "stream/*", "--", kFormD});
    EXPECT_EQ(program.end(), 0) << program.out;
    EXPECT_THAT(program.out, HasSubstr("100 events of 1 CPU, "));
    EXPECT_THAT(program.out, HasSubstr("4 cases: 4 pass"));
}

TEST(LayoutOption, HasAFormForTheSmokeCommand) {
    Process program({"smoke", "--layout", "D", "--", kFormD});
    EXPECT_EQ(program.end(), 0);
    EXPECT_THAT(program.out, HasSubstr("conformance/kmes-conformance --layout D -- "));
    Process wrong({"smoke", "--layout", "E", "--", kFormD});
    EXPECT_EQ(wrong.end(), 2);
    EXPECT_THAT(wrong.out, HasSubstr("--layout is \"E\"; expected auto, A, B, C or D"));
}

TEST(LayoutOption, IsRefusedInOneLineWhereItIsWrong) {
    Process variable({"--list"}, [] { ::setenv(kVariable, "a\nb", 1); });
    EXPECT_EQ(variable.end(), 2);
    EXPECT_THAT(variable.out, HasSubstr("KMES_CONFORMANCE_LAYOUT is \"a"));
    EXPECT_THAT(variable.out, HasSubstr("; expected A, B, C or D"));
    EXPECT_EQ(variable.out.find('\n') + 1, variable.out.size());
}

// The failure file contains the form, and the commands on it need no option.
TEST(LayoutOption, IsInTheFileOfAFailure) {
    const Folder folder;
    Process program({"--layout", "D", "--filter", "E2/event-at-every-step", "--cpus", "1", "--save",
                     folder.file("saved"), "--", kBroken});
    EXPECT_EQ(program.end(), 1);
    EXPECT_THAT(program.out, HasSubstr(" --layout D "));
    const std::string path = folder.file("saved/E2-event-at-every-step.json");
    EXPECT_EQ(nlohmann::json::parse(read_file(path))["run"]["layout"], "D");
    Process judge({"judge", path});
    EXPECT_EQ(judge.end(), 1);
    EXPECT_THAT(judge.out, Not(HasSubstr("kmes-conformance:")));
    Process replay({"replay", path});
    EXPECT_EQ(replay.end(), 1);
    Process correct({"replay", path, "--", kFormD});
    EXPECT_EQ(correct.end(), 0) << correct.out;
}

}  // namespace
}  // namespace kmes::conformance
