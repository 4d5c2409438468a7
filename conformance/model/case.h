// SPDX-License-Identifier: MIT
//
// The definition of a case. Does not know how a testee is driven (Stage, conformance/stage) or how
// results are printed.
#ifndef KMES_CONFORMANCE_MODEL_CASE_H_
#define KMES_CONFORMANCE_MODEL_CASE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case_id.h"
#include "conformance/model/settings.h"
#include "conformance/model/verdict.h"

namespace kmes::conformance {

class Stage;  // conformance/stage

// The option that a run needs, so that it includes a case. (The case's level must fit as well.)
enum class Demand {
    always,
    explored,      // all but --explore off: the case explores interleavings
    shared,        // --shared: the case has several consumers on one buffer
    soak,          // --soak SECONDS
    stream,        // --stream FILE
    as_published,  // --producer as-published
    holes,         // a form of the layout whose array of CPUs can have holes: --layout D
};

using CaseFunction = std::function<CaseOutcome(Stage&)>;

// One case. The texts are static.
struct Case {
    std::string_view id;  // `<clause>/<slug>`, unique; case-ids.txt pins it
    Level level = Level::must;
    std::string_view title;        // a few words, for --list
    std::string_view description;  // the actions of the suite, and their reason
    std::string_view expectation;  // the behaviour of a correct testee
    CaseFunction run;
    Demand demand = Demand::always;
    // The clause that it tests, if its id does not begin with that.
    std::string_view other_clause = {};
    // The part of the exploration time of a whole run that this case gets (0 to 1).
    double explore_share = 0;
    // Only the case of a row has these. The first returns one line about a mistake in a schedule
    // for it (empty: there is none). The second describes a move of such a schedule in words.
    std::function<std::string(const Schedule&)> schedule_problem = nullptr;
    std::function<std::string(const Move&)> describe_move = nullptr;
    // The earlier id of the case, which works forever in place of `id`. Empty: there was none.
    std::string_view former_id = {};

    // The clause that it tests: "5.1.8.1-2", "E21", "contract-3".
    std::string_view clause() const {
        return other_clause.empty() ? clause_of_id(id) : other_clause;
    }
};

// Returns the case with this id or former id, or nullptr.
const Case* find_case(const std::vector<Case>& cases, std::string_view id);

// Returns a mistake in this list: an id of another form, a duplicate or former id that another
// case has, an empty text. Empty: there is none.
std::string check_cases(const std::vector<Case>& cases);

// Whether these settings include the case.
bool is_demanded(const Case& the_case, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_CASE_H_
