// SPDX-License-Identifier: MIT
//
// See soak.h.
#include "conformance/explorer/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>

#include "conformance/explorer/moves.h"
#include "conformance/explorer/player.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kLeastCapacityBytes = 65536;

// One play: its own generator, so that it is the same whatever came before it.
class Soak {
  public:
    explicit Soak(std::uint64_t seed) : random_(seed) {}

    Scenario scenario() {
        Scenario scenario;
        scenario.name = "soak";
        scenario.description = "random everything";
        static constexpr std::uint32_t kCpus[] = {1, 1, 2, 2, 3, 4, 8};
        scenario.cpus = kCpus[random_() % std::size(kCpus)];
        scenario.capacity_bytes = kLeastCapacityBytes << random_() % 4;
        static constexpr std::uint64_t kStarts[] = {0,
                                                    1,
                                                    kLeastCapacityBytes - 100,
                                                    (std::uint64_t{1} << 31) - 500,
                                                    (std::uint64_t{1} << 32) - 700,
                                                    (std::uint64_t{1} << 63) - 900};
        scenario.start_position = kStarts[random_() % std::size(kStarts)];
        scenario.looks_at_data = random_() % 4 == 0;
        // So many that a retired buffer is always nudged.
        scenario.swaps = 2;
        scenario.run = [this](Player& player) { play(player); };
        cpus_ = scenario.cpus;
        return scenario;
    }

  private:
    std::uint32_t any_cpu() { return static_cast<std::uint32_t>(random_() % cpus_); }

    std::uint64_t any_size(std::uint64_t capacity) {
        switch (random_() % 12) {
            case 0:
                return 30;
            case 1:
                return capacity / 2;
            case 2:
                return 30 + random_() % (capacity / 2 - 30);
            case 3:
                return 4096;
            default:
                return 30 + random_() % 700;
        }
    }

    void emit_some(Player& player) {
        const std::uint32_t cpu = any_cpu();
        const std::uint64_t capacity = player.stage().capacity_bytes();
        player.publish_reserved(cpu);
        for (std::uint64_t i = 0, count = 1 + random_() % 6; i < count; ++i)
            player.emit(cpu, any_size(capacity));
    }

    void resize(Player& player) {
        const std::uint64_t capacity = player.stage().capacity_bytes();
        switch (random_() % 4) {
            case 0:
                return player.resize_all(2 * capacity);
            case 1:
                return player.resize_all(capacity / 2);
            case 2:
                player.resize_all(capacity);
                return player.resize_all(capacity);
            default:
                return player.resize_all(capacity);
        }
    }

    // While the testee stands still: it then finds more than one thing changed.
    void frozen_stretch(Player& player) {
        player.stage().freeze();
        for (std::uint64_t i = 0, count = 1 + random_() % 5; i < count; ++i) step(player, false);
        player.stage().thaw();
    }

    void step(Player& player, bool may_wait) {
        const std::uint32_t cpu = any_cpu();
        player.publish_reserved(cpu);
        switch (random_() % (may_wait ? 14 : 9)) {
            case 0:
                return emit_batch(player.rings(), cpu);
            case 1:
                return player.rings().drop(cpu);
            case 2:
                return resize(player);
            case 3:
                return player.rings().emit_many(cpu, 60, 30 + random_() % 200);
            case 4:
                return player.rings().emit_many(cpu, 3 + random_() % 12,
                                                player.stage().capacity_bytes() / 8);
            case 5:
                player.rings().spurious_wake(cpu);
                return player.nudge_retired();
            case 9:
                return frozen_stretch(player);
            case 10:
                return player.stage().let_run(random_() % 3);
            case 11:
            case 12:
                return player.settle();
            default:
                return emit_some(player);
        }
    }

    void play(Player& player) {
        for (std::uint64_t i = random_() % 4; i > 0; --i) emit_some(player);
        if (random_() % 3 != 0) player.act_at_random(10 + random_() % 60, random_());
        player.start();
        player.stage().wait_mapped();
        for (std::uint64_t i = 10 + random_() % 60; i > 0; --i) step(player, true);
        player.act_at_random(0, 0);
        player.settle();
    }

    std::mt19937_64 random_;
    std::uint32_t cpus_ = 1;
};

CaseOutcome play(const Case& the_case, const StageSettings& settings, std::uint64_t seed) {
    Soak soak(seed);
    const Scenario scenario = soak.scenario();
    const Schedule schedule{"soak", seed, {}};
    StageSettings own = settings;
    own.seed = seed;
    own.schedule = schedule;  // what `replay` plays
    own.cpus = scenario.cpus;
    own.capacity_bytes = scenario.capacity_bytes;
    Case one = the_case;
    PlayTrace trace;  // nobody looks at it
    one.run = [&](Stage& stage) { return Player(stage, scenario, schedule, trace).play(); };
    return run_on_stage(one, own);
}

// The play that failed once more, with everything told; where it passes now, what was told of it.
CaseOutcome told(const Case& the_case, const StageSettings& settings, std::uint64_t seed,
                 CaseOutcome outcome) {
    StageSettings again = settings;
    again.record_timeline = true;
    again.record_accesses = true;
    CaseOutcome second = play(the_case, again, seed);
    return second.verdict == outcome.verdict ? second : outcome;
}

}  // namespace

CaseOutcome soak(const Case& the_case, const StageSettings& settings) {
    using SoakClock = std::chrono::steady_clock;
    if (settings.schedule) return play(the_case, settings, settings.schedule->seed);
    const auto end = SoakClock::now() + std::chrono::duration_cast<SoakClock::duration>(
                                            std::chrono::duration<double>(settings.soak_seconds));
    std::uint64_t plays = 0;
    std::uint64_t not_shown = 0;
    do {
        // A seed that is the first one of its own run is that run's first play.
        const std::uint64_t seed = settings.seed + plays;
        CaseOutcome outcome = play(the_case, settings, seed);
        if (*settings.stop) return outcome;
        ++plays;
        if (outcome.verdict == Verdict::inconclusive) ++not_shown;
        if (outcome.verdict == Verdict::fail || outcome.verdict == Verdict::suite_error) {
            if (outcome.verdict == Verdict::fail)
                outcome = told(the_case, settings, seed, std::move(outcome));
            outcome.message =
                fmt::format("play {} (--seed {} begins with it): {}", plays, seed, outcome.message);
            return outcome;
        }
    } while (SoakClock::now() < end);
    std::string text =
        fmt::format("{} plays, seeds {} to {}", plays, settings.seed, settings.seed + plays - 1);
    if (not_shown > 0) text += fmt::format("; {} could not be played", not_shown);
    return CaseOutcome{not_shown < plays ? Verdict::pass : Verdict::inconclusive,
                       std::string(the_case.clause), text, ""};
}

}  // namespace kmes::conformance
