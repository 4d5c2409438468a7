// SPDX-License-Identifier: MIT
//
// What a case is. Knows neither how a testee is driven (Stage, conformance/stage) nor how results
// are printed.
#ifndef KMES_CONFORMANCE_MODEL_CASE_H_
#define KMES_CONFORMANCE_MODEL_CASE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/settings.h"
#include "conformance/model/verdict.h"

namespace kmes::conformance {

class Stage;  // conformance/stage

// What a run must be asked for, so that a case is part of it. (Its level must fit as well.)
enum class Demand {
    always,
    explored,  // interleavings are explored: all but --explore off
    shared,    // several consumers on one buffer: --shared
    soak,      // --soak SECONDS
    stream,    // --stream FILE
};

using CaseFunction = std::function<CaseOutcome(Stage&)>;

// One case. The texts are static.
struct Case {
    std::string_view id;  // `<clause>/<slug>`, unique, stable for ever: case-ids.txt pins it
    Level level = Level::must;
    std::string_view clause;       // that it tests: "5.1.8.1-2", "E21", "contract-3"
    std::string_view title;        // a few words, for --list
    std::string_view description;  // what is done to the testee, and why
    std::string_view expectation;  // what a correct testee does
    CaseFunction run;
    Demand demand = Demand::always;
    double explore_share = 0;  // of an explored case: of the seconds of a run of all of them
    // A row has both: what is wrong with a schedule for it, in one line (empty: nothing), and a
    // move of such a schedule in words.
    std::function<std::string(const Schedule&)> schedule_problem = nullptr;
    std::function<std::string(const Move&)> describe_move = nullptr;
};

// What is wrong with this list (an id without a clause, one that stands twice, an empty text);
// empty: nothing.
std::string check_cases(const std::vector<Case>& cases);

// Whether these settings ask for the case.
bool is_demanded(const Case& the_case, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_CASE_H_
