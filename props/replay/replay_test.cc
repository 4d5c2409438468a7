// SPDX-License-Identifier: MIT
//
// The replay command: its output for scripts that pass, that fail (with a replaced core) and that
// are invalid, and its exit statuses.
#include "props/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kmes::props {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A core with a mistake: it needs an emit of more than 100 bytes, and then a resize.
PlayResult play_with_a_mistake(const Script& script, const PlayOptions& options) {
    PlayResult result;
    bool large = false;
    for (std::size_t i = 0; i < script.operations.size() && !result.failure; i++) {
        const Operation& operation = script.operations[i];
        large |= operation.verb == Verb::emit && operation[Key::payload] > 100;
        if (operation.verb == Verb::resize && large) {
            result.failure = Failure{"containment", "5.1.4", "the planted\none", i};
        }
        if (options.trace) options.trace(operation, "state " + std::to_string(i) + "\nmore\n");
    }
    // Another mistake, which must not be taken for the first.
    if (!result.failure && script.operations.size() == 1) {
        result.failure = Failure{"order", "5.1.7", "another one", 0};
    }
    return result;
}

class Replay : public testing::Test {
  protected:
    Replay() {
        folder_ = testing::TempDir() + "/kmes-replay-XXXXXX";
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    }
    ~Replay() override { std::filesystem::remove_all(folder_); }

    std::string file(const std::string& name, const std::string& text) {
        const std::string path = folder_ + "/" + name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

    int run(const std::vector<std::string>& arguments, const Player& player = play_with_a_mistake) {
        std::istringstream in(in_);
        std::ostringstream out, err;
        const int status = replay(arguments, player, in, out, err);
        out_ = out.str();
        err_ = err.str();
        return status;
    }

    std::string folder_, in_, out_, err_;
};

const std::string kGood = "kmes-script 1\nemit payload=7\nrun\n";
const std::string kBad = "kmes-script 1\n# why\nreader\nemit payload=500\nrun\nresize\nemit\n";

TEST_F(Replay, PlaysAScriptOnTheCoreAndSaysEachOperationWithTheStateAfterIt) {
    const std::string path = file("good.kmes", kGood);
    EXPECT_EQ(run({path}, play), kReplayPassed);
    EXPECT_THAT(out_, StartsWith("1: emit payload=7\n    "));
    EXPECT_THAT(out_, HasSubstr("\n2: run\n    "));
    EXPECT_THAT(out_, HasSubstr(": pass: 2 operations, 0 of them skipped; "));
    EXPECT_THAT(out_, EndsWith(" 1 events, 1 deliveries\n"));
    EXPECT_EQ(err_, "");
}

TEST_F(Replay, SaysTheVerdictAloneWhereItIsToBeQuiet) {
    const std::string path = file("good.kmes", kGood);
    EXPECT_EQ(run({"--quiet", path}, play), kReplayPassed);
    EXPECT_THAT(out_, StartsWith(path + ": pass: 2 operations"));
    EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1);
}

TEST_F(Replay, ReadsTheStandardInput) {
    in_ = kGood;
    EXPECT_EQ(run({"--quiet", "-"}, play), kReplayPassed);
    EXPECT_THAT(out_, StartsWith("-: pass: 2 operations"));
}

TEST_F(Replay, SaysOfAFailureThePropertyTheClauseAndTheOperation) {
    const std::string path = file("bad.kmes", kBad);
    EXPECT_EQ(run({path}), kReplayFailed);
    EXPECT_THAT(out_, StartsWith("1: reader\n    state 0\n    more\n2: emit payload=500\n"));
    EXPECT_THAT(out_, HasSubstr(path + ": FAIL: containment (5.1.4): the planted\none"));
    EXPECT_THAT(out_, HasSubstr("resize"));
    EXPECT_THAT(out_, testing::Not(HasSubstr("pass")));
}

TEST_F(Replay, PlaysAllFilesAndFailsIfOneDoes) {
    const std::string good = file("good.kmes", kGood);
    const std::string bad = file("bad.kmes", kBad);
    EXPECT_EQ(run({"--quiet", bad, good}), kReplayFailed);
    EXPECT_THAT(out_, HasSubstr(bad + ": FAIL"));
    EXPECT_THAT(out_, HasSubstr(good + ": pass"));
}

TEST_F(Replay, MinimisesToAScriptThatFailsByTheSameProperty) {
    EXPECT_EQ(run({"--minimise", file("bad.kmes", kBad)}), kReplayFailed);
    EXPECT_THAT(out_, StartsWith("# containment (5.1.4): the planted one"));
    EXPECT_THAT(out_, EndsWith("\nkmes-script 1\nemit payload=101\nresize\n"));
    // The output is a script that fails.
    in_ = out_;
    EXPECT_EQ(run({"--quiet", "-"}), kReplayFailed);
    EXPECT_EQ(run({"--minimise", file("good.kmes", kGood)}), kReplayPassed);
    EXPECT_EQ(out_, "");
    EXPECT_THAT(err_, HasSubstr("nothing to minimise"));
}

TEST_F(Replay, SaysFileAndLineOfABadScriptAndPlaysNone) {
    const std::string good = file("good.kmes", kGood);
    const std::string broken = file("broken.kmes", "kmes-script 1\nemit\nemitt\n");
    EXPECT_EQ(run({good, broken}), kReplayBadScript);
    EXPECT_THAT(err_, StartsWith(broken + ":3: unknown verb 'emitt'"));
    EXPECT_EQ(out_, "");
    EXPECT_EQ(run({file("empty.kmes", "")}), kReplayBadScript);
    EXPECT_THAT(err_, HasSubstr("empty.kmes:1: an empty script"));
    EXPECT_EQ(run({"--check", good}), kReplayPassed);
    EXPECT_EQ(out_ + err_, "");
    EXPECT_EQ(run({"--check", broken}), kReplayBadScript);
}

TEST_F(Replay, SaysWhichFileCannotBeReadAndPlaysNone) {
    const std::string good = file("good.kmes", kGood);
    EXPECT_EQ(run({good, folder_ + "/none.kmes"}), kReplayUnreadable);
    EXPECT_EQ(err_, folder_ + "/none.kmes: cannot be read: No such file or directory\n");
    EXPECT_EQ(out_, "");
    EXPECT_EQ(run({folder_}), kReplayUnreadable);
    EXPECT_EQ(err_, folder_ + ": cannot be read: Is a directory\n");
}

TEST_F(Replay, RefusesBadUsageInOneLine) {
    const std::string good = file("good.kmes", kGood);
    const std::vector<std::pair<std::vector<std::string>, std::string>> bad = {
        {{}, "no script; name one"},
        {{"--quiet"}, "no script; name one"},
        {{"--loud", good}, "unknown option '--loud'; one of: --quiet"},
        {{"-q", good}, "unknown option '-q'"},
        {{""}, "an empty name"},
        {{"-", "-"}, "stdin is one script"},
        {{"--quiet", "--check", good}, "one at a time"},
        {{"--minimise", good, good}, "one script at a time"},
    };
    for (const auto& [arguments, words] : bad) {
        EXPECT_EQ(run(arguments), kReplayBadScript) << words;
        EXPECT_THAT(err_, HasSubstr(words));
        EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
        EXPECT_EQ(out_, "");
    }
    EXPECT_EQ(run({"--", good}), kReplayPassed);
    EXPECT_EQ(run({"--help"}), kReplayPassed);
    EXPECT_THAT(out_, StartsWith("usage: "));
}

}  // namespace
}  // namespace kmes::props
