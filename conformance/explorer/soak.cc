// SPDX-License-Identifier: MIT
//
// See soak.h.
#include "conformance/explorer/soak.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "conformance/explorer/parts.h"
#include "conformance/explorer/scenarios.h"
#include "conformance/play/moves.h"
#include "conformance/play/play_once.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kLeastCapacityBytes = 65536;

// Fills the rings before the attach: half of the CPUs have no event, the others have some events,
// or a ring that was filled once or twice.
void fill_at_random(Player& player, std::uint32_t cpus, std::mt19937_64& random) {
    const std::uint64_t capacity = player.stage().capacity_bytes();
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
        const std::uint64_t drawn = random();
        const bool is_filled = drawn % 8 == 0;
        if (is_filled)
            player.rings().emit_many(cpu, 9 + drawn / 8 % 12, capacity / 8);
        else if (drawn % 2 == 1)
            player.rings().emit_many(cpu, 1 + drawn / 8 % 5, 40 + drawn / 64 % 500);
    }
}

// Depends only on the seed, so it is the same whatever was played before.
Scenario scenario_of(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Scenario scenario;
    scenario.name = "soak";
    scenario.description = "random plays";
    static constexpr std::uint32_t kCpus[] = {1, 1, 1, 2, 2, 3, 4, 8};
    scenario.cpus = kCpus[random() % std::size(kCpus)];
    scenario.capacity_bytes = kLeastCapacityBytes << random() % 4;
    static constexpr std::uint64_t kStarts[] = {0,
                                                1,
                                                kLeastCapacityBytes - 100,
                                                (std::uint64_t{1} << 31) - 500,
                                                (std::uint64_t{1} << 32) - 700,
                                                (std::uint64_t{1} << 63) - 900};
    scenario.start_position = kStarts[random() % std::size(kStarts)];
    scenario.guards_data = random() % 4 == 0;
    scenario.turning = Turning::at_random;
    // Enough swaps that a retired buffer is always nudged.
    scenario.swaps = 2;
    scenario.run = [random, cpus = scenario.cpus](Player& player) {
        std::mt19937_64 own = random;
        fill_at_random(player, cpus, own);
        by_turns(player);
    };
    return scenario;
}

Played play(const Case& the_case, const StageSettings& settings, const Schedule& schedule) {
    StageSettings own = settings;
    own.seed = schedule.seed;
    return play_once(the_case, own, scenario_of(schedule.seed), schedule);
}

// Describes the failed play, as moves.
CaseOutcome report_failure(const Case& the_case, const StageSettings& settings,
                           const Schedule& schedule, Played played) {
    const Failure failure{schedule, in_moves(schedule, played.trace), std::move(played.outcome)};
    const auto play_again = [&](const StageSettings& own, const Schedule& again) {
        return play(the_case, own, again);
    };
    auto [smaller, outcome, fails_again] = confirm(failure, settings, play_again);
    outcome.message = describe(smaller) + ": " + outcome.message;
    if (!fails_again)
        outcome.details = "played again, the same schedule passed\n" + outcome.details;
    return outcome;
}

}  // namespace

CaseOutcome soak(const Case& the_case, const StageSettings& settings) {
    using SoakClock = std::chrono::steady_clock;
    if (settings.schedule) return play(the_case, settings, *settings.schedule).outcome;
    const auto end = SoakClock::now() + std::chrono::duration_cast<SoakClock::duration>(
                                            std::chrono::duration<double>(settings.soak_seconds));
    StageSettings fast = settings;
    fast.record_accesses = fast.record_timeline = false;
    std::uint64_t plays = 0;
    std::uint64_t not_shown = 0;
    do {
        // A run that begins with this seed plays the same schedule first.
        const Schedule schedule{
            "soak", settings.seed + play_of_part(plays, settings.part), {}, true};
        Played played = play(the_case, fast, schedule);
        CaseOutcome& outcome = played.outcome;
        if (*settings.stop) return outcome;
        ++plays;
        if (outcome.verdict == Verdict::inconclusive || outcome.verdict == Verdict::unsupported)
            ++not_shown;
        if (outcome.verdict == Verdict::fail || outcome.verdict == Verdict::suite_error) {
            if (outcome.verdict == Verdict::fail)
                outcome = report_failure(the_case, fast, schedule, std::move(played));
            outcome.message = fmt::format("play {} (--seed {} begins with it): {}", plays,
                                          schedule.seed, outcome.message);
            return outcome;
        }
    } while (SoakClock::now() < end);
    std::string text = fmt::format("{} plays, seeds {} to {}", plays,
                                   settings.seed + play_of_part(0, settings.part),
                                   settings.seed + play_of_part(plays - 1, settings.part));
    if (settings.part.total > 1) text += fmt::format(" in steps of {}", settings.part.total);
    if (not_shown > 0) text += fmt::format("; {} could not be played", not_shown);
    return CaseOutcome{not_shown < plays ? Verdict::pass : Verdict::inconclusive,
                       std::string(the_case.clause()), text, ""};
}

}  // namespace kmes::conformance
