// SPDX-License-Identifier: MIT
//
// The search on real testees. In a broken one it finds the interleaving that loses an event, and
// the named schedule has the same effect when it is played alone. A correct testee passes.
#include "conformance/explorer/explore.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/explorer/scenarios.h"
#include "conformance/explorer/soak.h"
#include "conformance/model/run_record.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/play_once.h"

namespace kmes::conformance {
namespace {

constexpr const char* kTestees = "conformance/testees/";

class Explore : public testing::Test {
  protected:
    Explore() {
        settings_.stop = &stop_;
        settings_.explore.seconds = 0;
        const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
        if (scale != nullptr) settings_.timeout_scale = std::atof(scale);
    }

    CaseOutcome search(const std::string& testee, std::string_view scenario) {
        settings_.testee = {kTestees + testee};
        return explore(case_, settings_, *find_scenario(scenario), 1.0);
    }

    static bool within_tries(const std::function<bool()>& condition) {
        constexpr int kTries = 10;
        for (int i = 0; i < kTries; ++i) {
            if (condition()) return true;
        }
        return false;
    }

    StopFlag stop_;
    StageSettings settings_;
    Case case_{"5.1.8.2/explored-sleep", Level::must, "", "", "", nullptr, Demand::explored};
};

TEST_F(Explore, FindsTheEventBetweenTheLoadAndTheCounter) {
    const CaseOutcome outcome = search("broken_counter-after-the-recheck", "wake");
    EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    EXPECT_EQ(outcome.clause, "E2") << outcome.message;
    EXPECT_NE(outcome.message.find("one event is emitted"), std::string::npos) << outcome.message;
}

TEST_F(Explore, TheScheduleItNamesFailsWhenItIsPlayedAlone) {
    const CaseOutcome outcome = search("broken_counter-after-the-recheck", "wake");
    ASSERT_NE(outcome.record, nullptr);
    ASSERT_TRUE(outcome.record->schedule);
    EXPECT_EQ(outcome.record->schedule->moves.size(), 1u);
    const CaseOutcome again =
        play_schedule(case_, settings_, *find_scenario("wake"), *outcome.record->schedule);
    EXPECT_EQ(again.verdict, Verdict::fail);
    EXPECT_EQ(again.clause, outcome.clause);
}

TEST_F(Explore, FindsTheTornRead) {
    const CaseOutcome outcome = search("broken_no-tail-recheck", "tear");
    EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    EXPECT_NE(outcome.message.find("overwritten"), std::string::npos) << outcome.message;
}

TEST_F(Explore, ARightConsumerPasses) {
    settings_.explore.seconds = 6;
    for (const std::string_view scenario : {"wake", "two-cpus", "mixed"}) {
        const CaseOutcome outcome = search("c_consumer", scenario);
        EXPECT_EQ(outcome.verdict, Verdict::pass) << scenario << ": " << outcome.message << "\n"
                                                  << outcome.details;
        EXPECT_NE(outcome.message.find("schedules at"), std::string::npos) << outcome.message;
    }
}

// Each pair of an action, a prelude and a context is played, or counted as one without an access.
TEST_F(Explore, EveryPairOfTheTableIsPlayedOrCounted) {
    // This part has all pairs with an access to the data.
    settings_.part = {5, 8};
    const CaseOutcome outcome = search("c_consumer", "wake");
    ASSERT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
    const std::size_t at = outcome.message.find(" two moves, for ");
    ASSERT_NE(at, std::string::npos) << outcome.message;
    unsigned shown = 0;
    unsigned all = 0;
    unsigned without_access = 0;
    EXPECT_GE(std::sscanf(outcome.message.c_str() + at,
                          " two moves, for %u of %u pairs of action and place (no access was seen "
                          "for %u)",
                          &shown, &all, &without_access),
              2)
        << outcome.message;
    EXPECT_EQ(all, 576u / 8);
    EXPECT_EQ(shown + without_access, all) << outcome.message;
    EXPECT_EQ(without_access, 0u) << outcome.message;
}

// The second move of a cell may come at an access to the data.
TEST_F(Explore, TheCourseAfterAMoveHasItsAccessesToTheData) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    const Scenario& scenario = *find_scenario("wake");
    for (const Action action : {Action::emit, Action::lap}) {
        const Move move{{.phase = 1, .kind = PointKind::sleep}, action};
        const Played played = play_once(case_, settings_, scenario, {"wake", 1, {move}});
        ASSERT_EQ(played.outcome.verdict, Verdict::pass) << played.outcome.message;
        EXPECT_EQ(played.trace.moves_not_made, 0u);
        std::set<std::uint32_t> phases;
        for (const TraceEntry& entry : played.trace.entries) {
            if (entry.point.offset_bytes >= kMetadataBytes) phases.insert(entry.point.phase);
        }
        // Phase 1 begins with the move, and every later phase with an event.
        EXPECT_TRUE(phases.contains(1) && phases.contains(2)) << describe(action);
    }
}

TEST_F(Explore, AMoveWhoseAccessDoesNotComeIsCounted) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    const Move move{{.offset_bytes = kGenerationOffset, .size_bytes = 8, .occurrence = 1000},
                    Action::emit};
    for (const Course course : {Course::whole, Course::moves_only}) {
        const Played played =
            play_once(case_, settings_, *find_scenario("drain"), {"drain", 1, {move}}, course);
        EXPECT_EQ(played.outcome.verdict, Verdict::pass) << played.outcome.message;
        EXPECT_EQ(played.trace.moves_not_made, 1u);
    }
}

TEST_F(Explore, AReplayReportsAMoveThatDoesNotCome) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    Move move{{.offset_bytes = kGenerationOffset, .size_bytes = 8}, Action::emit};
    const Scenario& scenario = *find_scenario("drain");
    const CaseOutcome made = play_schedule(case_, settings_, scenario, {"drain", 1, {move}});
    EXPECT_EQ(made.verdict, Verdict::pass);
    EXPECT_EQ(made.message, "");
    move.point.occurrence = 1000;
    const CaseOutcome outcome = play_schedule(case_, settings_, scenario, {"drain", 1, {move}});
    EXPECT_EQ(outcome.verdict, Verdict::pass);
    EXPECT_EQ(outcome.message, "the consumer made no access for 1 of 1 moves");
}

// More accesses than a play stops at end the stops of their phase alone.
TEST_F(Explore, ThePhasesAfterABusyOneHaveTheirStops) {
    settings_.testee = {"conformance/explorer/busy_consumer"};
    const Scenario& scenario = *find_scenario("wake");
    const Played plain = play_once(case_, settings_, scenario, {"wake", 1, {}});
    ASSERT_EQ(plain.outcome.verdict, Verdict::pass) << plain.outcome.message;
    EXPECT_TRUE(plain.trace.is_cut);
    std::optional<AccessPoint> last;
    std::set<std::uint32_t> phases;
    for (const TraceEntry& entry : plain.trace.entries) {
        if (entry.point.kind != PointKind::access) continue;
        last = entry.point;
        phases.insert(entry.point.phase);
    }
    EXPECT_EQ(phases, (std::set<std::uint32_t>{0, 1, 2}));
    ASSERT_TRUE(last);
    for (const Course course : {Course::whole, Course::moves_only}) {
        const Played played =
            play_once(case_, settings_, scenario, {"wake", 1, {{*last, Action::emit}}}, course);
        EXPECT_EQ(played.outcome.verdict, Verdict::pass) << played.outcome.message;
        EXPECT_EQ(played.trace.moves_not_made, 0u);
    }
}

TEST_F(Explore, ASearchReportsABusyPhase) {
    settings_.explore.seconds = 0.001;
    settings_.testee = {"conformance/explorer/busy_consumer"};
    const CaseOutcome outcome = explore(case_, settings_, *find_scenario("two-large"), 1.0);
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
    EXPECT_NE(outcome.message.find("after the first 20000"), std::string::npos) << outcome.message;
    EXPECT_FALSE(outcome.explored->whole);
}

// Four shards find what one search finds, and no shard plays all of it.
TEST_F(Explore, ThePartsOfASearchFindTheEvent) {
    constexpr std::uint32_t kTotal = 4;
    std::uint32_t failed = 0;
    for (std::uint32_t index = 0; index < kTotal; ++index) {
        settings_.part = {index, kTotal};
        const CaseOutcome outcome = search("broken_counter-after-the-recheck", "wake");
        if (outcome.verdict == Verdict::fail)
            ++failed;
        else
            EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
    }
    EXPECT_GE(failed, 1u);
}

TEST_F(Explore, APartPlaysFewerMovesThanTheWhole) {
    settings_.explore.seconds = 0;
    const CaseOutcome whole = search("c_consumer", "tear");
    settings_.part = {1, 5};
    const CaseOutcome part = search("c_consumer", "tear");
    ASSERT_EQ(whole.verdict, Verdict::pass) << whole.message;
    ASSERT_EQ(part.verdict, Verdict::pass) << part.message;
    EXPECT_TRUE(part.explored->whole);
    EXPECT_GT(part.explored->schedules, 0u);
    EXPECT_LT(part.explored->schedules, whole.explored->schedules / 2);
}

// The part of a play without stops is played all the same: the moves are made, and the verdict is
// that of the whole play.
TEST_F(Explore, APlayIsStoppedAtWhereItsMovesAre) {
    const Scenario& scenario = *find_scenario("mixed");
    const Schedule plain{"mixed", 1, {}};
    struct Testee {
        const char* name;
        Verdict verdict;
    };
    for (const auto& [name, verdict] :
         {Testee{"c_consumer", Verdict::pass},
          Testee{"broken_counter-after-the-recheck", Verdict::fail}}) {
        settings_.testee = {std::string(kTestees) + name};
        const Played all = play_once(case_, settings_, scenario, plain);
        ASSERT_EQ(all.outcome.verdict, Verdict::pass) << all.outcome.message;
        // The testee's last read of the counter before it sleeps.
        std::optional<AccessPoint> point;
        for (const TraceEntry& entry : all.trace.entries) {
            if (entry.point.phase == 2 && entry.point.kind == PointKind::access &&
                entry.point.offset_bytes == kFutexWordOffset)
                point = entry.point;
        }
        ASSERT_TRUE(point);
        const Schedule schedule{"mixed", 1, {Move{*point, Action::emit, 0}}};
        const Played whole = play_once(case_, settings_, scenario, schedule);
        const Played part = play_once(case_, settings_, scenario, schedule, Course::moves_only);
        EXPECT_EQ(whole.outcome.verdict, verdict) << whole.outcome.message;
        EXPECT_EQ(part.outcome.verdict, verdict) << part.outcome.message;
        std::vector<AccessPoint> accesses;
        for (const TraceEntry& entry : part.trace.entries) {
            if (entry.point.kind == PointKind::access) accesses.push_back(entry.point);
        }
        ASSERT_FALSE(accesses.empty());
        EXPECT_EQ(accesses.front().phase, 2u);
        EXPECT_EQ(accesses.back(), *point);
    }
}

// A drawn schedule ends as a few moves that have the same effect when they are played alone. If two
// threads race, this sometimes takes more than one try.
TEST_F(Explore, TurnsEndInAFewMoves) {
    settings_.explore.deep = true;
    const auto plays_again = [this] {
        const CaseOutcome outcome = search("broken_counter-after-the-recheck", "turns");
        EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
        if (!outcome.record || !outcome.record->schedule) return false;
        const Schedule& schedule = *outcome.record->schedule;
        if (schedule.drawn || schedule.moves.size() > 3) return false;
        return play_schedule(case_, settings_, *find_scenario("turns"), schedule).verdict ==
               Verdict::fail;
    };
    EXPECT_TRUE(within_tries(plays_again));
}

TEST_F(Explore, ASoakFindsItAndPlaysItAgain) {
    settings_.testee = {std::string(kTestees) + "broken_counter-after-the-recheck"};
    settings_.soak_seconds = 1200;  // ends with the failure; a busy machine plays slowly
    const auto plays_again = [this] {
        settings_.schedule.reset();
        const CaseOutcome outcome = soak(case_, settings_);
        EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
        if (!outcome.record || !outcome.record->schedule) return false;
        settings_.schedule = outcome.record->schedule;
        return !settings_.schedule->drawn && soak(case_, settings_).verdict == Verdict::fail;
    };
    EXPECT_TRUE(within_tries(plays_again));
}

TEST_F(Explore, ASoakOfARightConsumerPasses) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    settings_.soak_seconds = 5;
    const CaseOutcome outcome = soak(case_, settings_);
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message << "\n" << outcome.details;
}

// With this seed, turns publish what another part of the play was about to publish, in every second
// play.
TEST_F(Explore, AReservationThatIsPublishedMeanwhileIsNoMistake) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    settings_.soak_seconds = 0.01;
    settings_.seed = 21;
    for (int i = 0; i < 12; ++i) {
        const CaseOutcome outcome = soak(case_, settings_);
        ASSERT_EQ(outcome.verdict, Verdict::pass) << outcome.message << "\n" << outcome.details;
    }
}

TEST_F(Explore, AScheduleOfAnotherScenarioIsRefused) {
    settings_.testee = {std::string(kTestees) + "c_consumer"};
    const CaseOutcome outcome =
        play_schedule(case_, settings_, *find_scenario("wake"), Schedule{"tear", 1, {}});
    EXPECT_EQ(outcome.verdict, Verdict::suite_error);
    EXPECT_NE(outcome.message.find("\"tear\""), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace kmes::conformance
