// SPDX-License-Identifier: MIT
//
// See run.h.
#include "conformance/stage/run.h"

#include <string>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

CaseOutcome run_to_stop(const Case& the_case, Stage& stage) {
    try {
        CaseOutcome outcome = the_case.run(stage);
        stage.testee().check_watchpoints();
        return outcome;
    } catch (const Stop& stop) {
        try {
            return stage.ending().outcome_of(stop);
        } catch (const Stop& again) {
            return CaseOutcome{again.verdict, again.finding.clause, again.finding.message, ""};
        }
    }
}

}  // namespace

CaseOutcome run_with_monitors(const Case& the_case, const StageSettings& settings,
                              const MonitorFactory& make_monitors) {
    Stage stage(settings, the_case, make_monitors);
    try {
        return run_to_stop(the_case, stage);
    } catch (const NotStageable& reason) {
        return CaseOutcome{Verdict::unsupported, std::string(the_case.clause()), reason.what(), ""};
    } catch (const std::exception& error) {
        return CaseOutcome{Verdict::suite_error, "", first_line(error.what()), ""};
    }
}

}  // namespace kmes::conformance
