// SPDX-License-Identifier: MIT
//
// Plays every script that ever failed, and those that were worth keeping (props/corpus). Also plays
// a script that is too slow for the corpus, which every mutant plays.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "props/machine/play.h"
#include "props/script/form.h"

namespace kmes::props {
namespace {

std::vector<std::filesystem::path> corpus() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator("props/corpus"))
        if (entry.path().extension() == ".kmes") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

class CorpusTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(CorpusTest, Passes) {
    std::ifstream file(GetParam(), std::ios::binary);
    ASSERT_TRUE(file);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto parsed = parse_script(text);
    if (const auto* error = std::get_if<ScriptError>(&parsed))
        FAIL() << GetParam() << ":" << error->line << ": " << error->message;
    const Script& script = std::get<Script>(parsed);
    const PlayResult result = play(script);
    EXPECT_FALSE(result.failure) << describe(script, *result.failure)
                                 << "\nsee it: tools/kmes replay " << GetParam().string();
    // A skipped line does nothing, so the script may no longer show its failure. In a form with
    // longer events a script has other events in its ring, so it may skip lines there.
    const bool may_skip = text.find("skipped") != std::string::npos;
    if (!kHasGuids) {
        EXPECT_EQ(result.skipped > 0, may_skip) << GetParam() << " skips " << result.skipped;
    }
    EXPECT_EQ(std::get<Script>(parse_script(print_script(script))), script);
}

// The limits of accesses end endless loops. They must not end reads and writes of large events.
TEST(Limits, LetAScriptReadAndWriteItsBytes) {
    const Script script = std::get<Script>(
        parse_script("kmes-script 1\nsettings capacity=16777216\nemit payload=8388500\n"));
    const PlayResult result = play(script);
    EXPECT_FALSE(result.failure) << describe(script, *result.failure);
    EXPECT_EQ(result.deliveries, 1u);
}

INSTANTIATE_TEST_SUITE_P(Scripts, CorpusTest, testing::ValuesIn(corpus()), [](const auto& info) {
    std::string name = info.param.stem().string();
    std::replace_if(name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
    return name;
});

}  // namespace
}  // namespace kmes::props
