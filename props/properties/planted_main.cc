// SPDX-License-Identifier: MIT
//
// Linked with a core with a planted bug (planted.bzl). Plays the saved scripts of the bug, and then
// random scripts until a property breaks, and shrinks. Passes if the expected property broke in
// each, and the shortest script is short. Knows only the name of the bug.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "props/machine/play.h"
#include "props/script/generate.h"
#include "props/script/shrink.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kMostScripts = 20000;
constexpr std::size_t kOperations = 60;
constexpr std::size_t kShrinkBudget = 20000;

int fail(const std::string& what) {
    std::printf("FAIL: %s\n", what.c_str());
    return 1;
}

// A saved script of the corpus must show the bug by itself.
int play_saved(const char* path, const std::string& property) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto parsed = parse_script(text);
    const Script* script = std::get_if<Script>(&parsed);
    if (!script) return fail(std::string(path) + " is no script");
    const PlayResult result = play(*script);
    if (!result.failure) return fail(std::string(path) + " passes");
    if (result.failure->property == property) return 0;
    return fail(std::string(path) +
                " breaks another property: " + describe(*script, *result.failure));
}

int find_failure(const std::string& bug, const std::string& property, std::size_t most_steps) {
    for (std::uint64_t seed = 0; seed < kMostScripts; seed++) {
        const Script script =
            generate(seed, kOperations, static_cast<Profile>(seed % kProfileCount));
        const PlayResult result = play(script);
        // Another property may break first; the expected one must break before long, too.
        if (!result.failure || result.failure->property != property) continue;
        const Script shortest = minimise(
            script,
            [&property](const Script& shorter) {
                const PlayResult again = play(shorter);
                return again.failure && again.failure->property == property;
            },
            kShrinkBudget);
        const std::size_t steps = shortest.operations.size() - shortest.first_operation();
        std::printf("%s: found by script %llu; %zu steps:\n%s%s\n", bug.c_str(),
                    static_cast<unsigned long long>(seed + 1), steps,
                    print_script(shortest).c_str(),
                    describe(shortest, *play(shortest).failure).c_str());
        if (steps <= most_steps) return 0;
        return fail("the shortest script has more than " + std::to_string(most_steps) + " steps");
    }
    return fail(bug + ": the property " + property + " holds in " + std::to_string(kMostScripts) +
                " scripts");
}

}  // namespace
}  // namespace kmes::props

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: %s BUG PROPERTY MOST_STEPS SCRIPT...\n", argv[0]);
        return 2;
    }
    for (int i = 4; i < argc; i++)
        if (kmes::props::play_saved(argv[i], argv[2]) != 0) return 1;
    return kmes::props::find_failure(argv[1], argv[2], std::strtoul(argv[3], nullptr, 10));
}
