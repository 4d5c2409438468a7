// SPDX-License-Identifier: MIT
//
// The same scripts on the core as shipped: without hooks, with memory really mapped twice, and
// compiled as for users. No access is reported, so an operation is one step. Its result and every
// byte that it leaves are compared as well.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "props/machine/play.h"
#include "props/script/arbitrary.h"

namespace kmes::props {
namespace {

// Nothing smaller than a page can be mapped twice.
constexpr std::uint64_t kPageBytes = 4096;

Script in_pages(Script script) {
    for (Operation& operation : script.operations) {
        if (rule_of(operation.verb, Key::capacity) != nullptr)
            operation.set(Key::capacity, std::max(kPageBytes, operation[Key::capacity]));
    }
    if (script.first_operation() == 0 || script.operations[0].verb != Verb::settings)
        script.operations.insert(script.operations.begin(), script.settings());
    return script;
}

TEST(CoreAsItShips, IsWhatThePlainModelIs) {
    Seen seen;
    for (std::size_t profile = 0; profile < kProfileCount; profile++) {
        EXPECT_TRUE(rc::check([&seen, profile] {
            // The printed script is the one that was played.
            const Script script = *rc::gen::map(scripts(static_cast<Profile>(profile)), in_pages);
            const PlayResult result = play(script);
            if (result.failure)
                RC_FAIL(
                    describe(script, *result.failure) +
                    "\ntools/kmes replay has the hooked core. If the script passes there, repeat "
                    "this test with the RC_PARAMS below");
            seen += result.seen;
        }));
    }
    for (const auto figure : {&Seen::written, &Seen::dropped, &Seen::overwritten, &Seen::swaps,
                              &Seen::left_behind, &Seen::handovers, &Seen::nudges, &Seen::nested,
                              &Seen::crossed_end, &Seen::deliveries, &Seen::lost})
        EXPECT_GT(seen.*figure, 0u);
}

TEST(CoreAsItShips, PlaysEveryScriptOfTheCorpus) {
    std::size_t played = 0;
    for (const auto& entry : std::filesystem::directory_iterator("props/corpus")) {
        if (entry.path().extension() != ".kmes") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        const auto parsed = parse_script(text);
        ASSERT_TRUE(std::holds_alternative<Script>(parsed)) << entry.path();
        const Script script = in_pages(std::get<Script>(parsed));
        const PlayResult result = play(script);
        EXPECT_FALSE(result.failure) << entry.path() << ": " << describe(script, *result.failure);
        played++;
    }
    EXPECT_GT(played, 0u);
}

}  // namespace
}  // namespace kmes::props
