// SPDX-License-Identifier: MIT
//
// Scripts shrink to what is needed, by edits that cannot form a cycle.
#include "props/script/shrink.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace kmes::props {
namespace {

Script parsed(const std::string& lines) {
    auto result = parse_script("kmes-script 1\n" + lines);
    if (const auto* error = std::get_if<ScriptError>(&result)) {
        ADD_FAILURE() << lines << "\nline " << error->line << ": " << error->message;
        return {};
    }
    return std::get<Script>(result);
}

std::string lines_of(const Script& script) {
    return print_script(script).substr(kScriptHeader.size() + 1);
}

// Returns a script of `lines` operations with every verb and random values.
Script long_script(std::uint64_t seed, std::size_t lines) {
    std::mt19937_64 random(seed);
    Script script;
    script.operations.emplace_back(Verb::settings)
        .set(Key::capacity, 65536)
        .set(Key::position, 1ull << 63)
        .set(Key::guard, 1);
    for (std::uint64_t consumer : {0, 2, 3}) {
        script.operations.emplace_back(Verb::reader).set(Key::consumer, consumer).set(Key::form, 2);
    }
    for (std::size_t i = 0; i < lines; i++) {
        const auto verb = static_cast<Verb>(2 + random() % (kVerbCount - 2));
        Operation& operation = script.operations.emplace_back(verb);
        for (const KeyRule& key : rule_of(verb).keys) {
            if (key.key == Key::capacity) {
                operation.set(key.key, 256ull << random() % 17);
            } else if (random() % 2 == 0) {
                const std::uint64_t range = key.maximum - key.minimum;
                operation.set(key.key,
                              key.minimum + (range == ~0ull ? random() : random() % (range + 1)));
            }
        }
        if (rule_of(verb).has_type) operation.type = std::string(random() % 20, 'x');
        operation.is_started = rule_of(verb).actor == Actor::producer && random() % 3 == 0;
    }
    return script;
}

bool has(const Script& script, Verb verb) {
    for (const Operation& operation : script.operations) {
        if (operation.verb == verb) return true;
    }
    return false;
}

TEST(Shrink, FindsTheTwoLinesAndTheOneValueThatMatter) {
    const auto fails = [](const Script& script) {
        bool large = false;
        for (const Operation& operation : script.operations) {
            large |= operation.verb == Verb::emit && operation[Key::payload] > 100;
            if (operation.verb == Verb::resize && large) return true;
        }
        return false;
    };
    for (std::uint64_t seed = 1; seed <= 20; seed++) {
        const Script script = long_script(seed, 300);
        ASSERT_TRUE(fails(script)) << seed;
        EXPECT_EQ(lines_of(minimise(script, fails, 100000)), "emit payload=101\nresize\n") << seed;
    }
}

TEST(Shrink, KeepsWhatIsNeededOfSettingsReadersStartAndTypes) {
    const auto fails = [](const Script& script) {
        bool started = false;
        for (const Operation& operation : script.operations) {
            started |= operation.is_started && operation.type.find('b') != std::string::npos;
        }
        return script.settings()[Key::capacity] <= 1024 && script.readers().size() >= 2 && started;
    };
    const Script script = parsed(
        "settings capacity=256 cpu=9 position=77\nreader form=run\nreader consumer=3 room=99\n"
        "batch\nstart emit type=aaabccc seed=7 origin=3\nadvance count=5\nfinish\n");
    ASSERT_TRUE(fails(script));
    EXPECT_EQ(lines_of(minimise(script, fails, 10000)),
              "settings capacity=256\nreader\nreader consumer=1\nstart emit type=b\n");
}

TEST(Shrink, FindsABoundByBisectionAlsoWhereNumbersAreLarge) {
    std::size_t asked = 0;
    const auto fails = [&asked](const Script& script) {
        asked++;
        return script.settings()[Key::position] >= (1ull << 62) + 12345;
    };
    const Script script = parsed("settings position=0xFFFFF00000000000\n");
    EXPECT_EQ(lines_of(minimise(script, fails, 10000)),
              "settings position=" + std::to_string((1ull << 62) + 12345) + "\n");
    EXPECT_LT(asked, 5000u);
}

TEST(Shrink, TakesAnOpeningAndItsEndTogether) {
    // Fails while there are as many openings as ends: neither can be removed alone.
    const auto fails = [](const Script& script) {
        int open = 0;
        for (const Operation& operation : script.operations) {
            open += operation.verb == Verb::batch;
            open -= operation.verb == Verb::end;
        }
        return open == 0 && has(script, Verb::nudge) && has(script, Verb::jump);
    };
    const Script script = parsed("batch\nnudge\nadd\nend\njump\nbatch\nend\n");
    EXPECT_EQ(lines_of(minimise(script, fails, 1000)), "nudge\njump\n");
}

TEST(Shrink, MakesOneLineOfStepsInARow) {
    const auto fails = [](const Script& script) {
        std::uint64_t steps = 0;
        for (const Operation& operation : script.operations) {
            if (operation.verb == Verb::step) steps += operation[Key::count];
        }
        return steps == 9;
    };
    EXPECT_EQ(lines_of(minimise(parsed("step count=2\nstep count=3\nstep count=4\n"), fails, 1000)),
              "step count=9\n");
}

TEST(Shrink, CallsConsumersByTheLowestNumbersInAllLines) {
    const auto fails = [](const Script& script) {
        return script.readers()[0][Key::form] == 2 && has(script, Verb::step) &&
               script.operations.back()[Key::consumer] == script.readers()[0][Key::consumer];
    };
    EXPECT_EQ(lines_of(minimise(parsed("reader consumer=3 form=bulk\nemit\nstep consumer=3\n"),
                                fails, 1000)),
              "reader form=bulk\nstep\n");
}

TEST(Shrink, StopsAtItsBudgetWithAScriptThatFails) {
    std::size_t asked = 0;
    const auto fails = [&asked](const Script& script) {
        asked++;
        return has(script, Verb::emit);
    };
    const Script script = long_script(3, 200);
    for (std::size_t budget : {0u, 1u, 7u, 50u}) {
        asked = 0;
        const Script smaller = minimise(script, fails, budget);
        EXPECT_LE(asked, budget);
        EXPECT_TRUE(has(smaller, Verb::emit));
    }
}

TEST(Shrink, LeavesAScriptAsItIsWhereNothingSmallerFails) {
    const Script script = parsed("settings capacity=256\nreader stop=1\nstart emit payload=3\n");
    const auto only_this = [&script](const Script& other) { return other == script; };
    EXPECT_EQ(minimise(script, only_this, 10000), script);
}

TEST(Shrink, OffersTheMostAggressiveFirst) {
    const Script script = parsed("settings cpu=1\nemit\nend\ncommit\nretire\n");
    const std::vector<Script> candidates = shrink_candidates(script);
    ASSERT_GT(candidates.size(), 4u);
    EXPECT_EQ(lines_of(candidates[0]), "settings cpu=1\n");
    EXPECT_EQ(lines_of(candidates[1]), "settings cpu=1\nemit\nend\n");
    EXPECT_EQ(lines_of(candidates[2]), "settings cpu=1\ncommit\nretire\n");
    EXPECT_EQ(lines_of(candidates[3]), "settings cpu=1\nemit\nend\ncommit\n");
}

// The order of shrink.cc: everything that an edit leads to is smaller by it.
using Rank = std::tuple<std::size_t, std::size_t, std::uint64_t, std::vector<std::uint64_t>>;

Rank rank_of(const Script& script) {
    std::size_t started = 0;
    std::uint64_t consumers = 0;
    std::vector<std::uint64_t> rest;
    for (const Operation& operation : script.operations) {
        started += operation.is_started;
        if (rule_of(operation.verb, Key::consumer) != nullptr) {
            consumers += operation[Key::consumer];
        }
        if (rule_of(operation.verb).has_type) {
            rest.push_back(operation.type == kStandardType ? 0 : operation.type.size() + 1);
        }
        for (const KeyRule& key : rule_of(operation.verb).keys) {
            const std::uint64_t value = operation[key.key];
            if (key.key != Key::consumer) {
                rest.push_back(value == key.standard ? 0 : value - key.minimum + 1);
            }
        }
    }
    return {script.operations.size(), started, consumers, rest};
}

TEST(Shrink, MakesEveryScriptSmallerAndReadable) {
    for (std::uint64_t seed = 1; seed <= 10; seed++) {
        const Script script = long_script(seed, 40);
        std::set<std::string> texts;
        for (const Script& candidate : shrink_candidates(script)) {
            ASSERT_LT(rank_of(candidate), rank_of(script)) << print_script(script) << "\n"
                                                           << print_script(candidate);
            const auto again = parse_script(print_script(candidate));
            ASSERT_TRUE(std::holds_alternative<Script>(again)) << print_script(candidate);
            ASSERT_EQ(std::get<Script>(again), candidate);
        }
    }
}

}  // namespace
}  // namespace kmes::props
