// SPDX-License-Identifier: MIT
//
// Mutants are valid scripts, short enough, and usually different from their origin.
#include "props/script/mutate.h"

#include <gtest/gtest.h>

#include <set>

#include "props/script/generate.h"

namespace kmes::props {
namespace {

void expect_sound(const Script& script, std::size_t most_bytes) {
    const std::string text = print_script(script);
    ASSERT_LE(text.size(), most_bytes);
    const auto again = parse_script(text);
    const auto* error = std::get_if<ScriptError>(&again);
    ASSERT_EQ(error, nullptr) << error->line << ": " << error->message << "\n" << text;
    ASSERT_EQ(std::get<Script>(again), script) << text;
    const std::vector<Operation> readers = script.readers();
    for (const Operation& reader : readers) {
        ASSERT_EQ(reader[Key::sharing] == 1 || readers.size() == 1, true) << text;
    }
}

Script parsed(const std::string& lines) {
    const auto result = parse_script("kmes-script 1\n" + lines);
    EXPECT_TRUE(std::holds_alternative<Script>(result)) << lines;
    return std::holds_alternative<Script>(result) ? std::get<Script>(result) : Script();
}

TEST(Mutate, MakesScriptsOfScriptsHoweverOften) {
    for (std::size_t profile = 0; profile < kProfileCount; profile++) {
        Script script;
        for (std::uint64_t seed = 0; seed < 1500; seed++) {
            script = mutate(script, seed, static_cast<Profile>(profile), 1500);
            ASSERT_NO_FATAL_FAILURE(expect_sound(script, 1500));
        }
    }
}

TEST(Mutate, IsTheSameForTheSameSeed) {
    const Script script = generate(1, 20, Profile::anything);
    int changed = 0;
    std::set<std::string> texts;
    for (std::uint64_t seed = 0; seed < 300; seed++) {
        const Script mutant = mutate(script, seed);
        EXPECT_EQ(mutant, mutate(script, seed));
        changed += mutant != script;
        texts.insert(print_script(mutant));
    }
    EXPECT_EQ(changed, 300);
    EXPECT_GT(texts.size(), 250u);
}

TEST(Mutate, ReachesEveryVerbFromNothing) {
    std::set<Verb> verbs;
    for (std::uint64_t start = 0; start < 20; start++) {
        Script script;
        for (std::uint64_t seed = 0; seed < 60; seed++) {
            script = mutate(script, start * 1000 + seed);
            for (const Operation& operation : script.operations) verbs.insert(operation.verb);
        }
    }
    EXPECT_EQ(verbs.size(), kVerbCount);
}

TEST(Mutate, ChangesEachPartOfAScript) {
    const Script script = parsed(
        "settings capacity=256\nreader form=bulk\nemit payload=9\nstep count=5\nbatch\nadd\nend\n");
    bool settings = false, readers = false, longer = false, shorter = false, value = false,
         started = false;
    for (std::uint64_t seed = 0; seed < 500; seed++) {
        const Script mutant = mutate(script, seed);
        settings |= mutant.settings() != script.settings();
        readers |= mutant.readers() != script.readers();
        longer |= mutant.operations.size() > script.operations.size();
        shorter |= mutant.operations.size() < script.operations.size();
        for (const Operation& operation : mutant.operations) {
            started |= operation.is_started;
            value |= operation.verb == Verb::emit && operation[Key::payload] == 128 - 30;
        }
    }
    EXPECT_TRUE(settings && readers && longer && shorter && value && started);
}

TEST(Mutate, KeepsToTheBytesItIsGiven) {
    const Script script = generate(3, 300, Profile::batches);
    for (std::size_t bytes : {64u, 100u, 1000u, 5000u}) {
        for (std::uint64_t seed = 0; seed < 20; seed++) {
            ASSERT_NO_FATAL_FAILURE(
                expect_sound(mutate(script, seed, Profile::anything, bytes), bytes));
            ASSERT_NO_FATAL_FAILURE(expect_sound(cross(script, script, seed, bytes), bytes));
        }
    }
}

TEST(Mutate, TakesScriptsOfLargeRingsAndValues) {
    const Script script = parsed(
        "settings capacity=16777216 position=18446739675663040512 sequence=0x8000000000000000\n"
        "reader consumer=3 room=1048576\nemit payload=0xFFFFFFFF\nadd type_len=65535 extra=4096\n"
        "resize capacity=16777216 positions=shift shift=0x10000000000\nnudge buffer=1000\n"
        "jump forward=0x4000000000000000\nstep consumer=3 count=100000\n");
    for (std::uint64_t seed = 0; seed < 500; seed++) {
        const auto profile = static_cast<Profile>(seed % kProfileCount);
        ASSERT_NO_FATAL_FAILURE(expect_sound(mutate(script, seed, profile), kMutantBytes));
    }
}

TEST(Cross, HasLinesOfBothBehindTheSettingsOfTheFirst) {
    const Script one =
        parsed("settings cpu=1\nreader\nreader consumer=1 sharing=shared\nemit\nemit\n");
    const Script other = parsed("settings cpu=2\nreader consumer=2\nretire\nretire\n");
    bool both = false;
    for (std::uint64_t seed = 0; seed < 100; seed++) {
        const Script script = cross(one, other, seed);
        ASSERT_NO_FATAL_FAILURE(expect_sound(script, kMutantBytes));
        EXPECT_EQ(script.settings()[Key::cpu], 1u);
        EXPECT_EQ(script.readers().size(), 2u);
        std::set<Verb> verbs;
        for (const Operation& operation : script.operations) verbs.insert(operation.verb);
        both |= verbs.count(Verb::emit) && verbs.count(Verb::retire);
    }
    EXPECT_TRUE(both);
    EXPECT_EQ(cross(Script(), Script(), 1), Script());
}

TEST(RingBytes, AreThoseOfAllRingsThatAScriptCanMake) {
    EXPECT_EQ(ring_bytes(Script()), 4096u);
    EXPECT_EQ(ring_bytes(parsed("settings capacity=256\nresize capacity=512\nprepare\nemit\n")),
              256u + 512 + 4096);
}

}  // namespace
}  // namespace kmes::props
