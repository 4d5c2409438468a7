// SPDX-License-Identifier: MIT
//
// See report_order.h.
#include "conformance/main/report_order.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "conformance/main/symptom.h"

namespace kmes::conformance {

namespace {

// Puts the clause of the failure into the verdict at the end of its trace, instead of the clause
// that the finding had alone.
void put_clause_into_trace(CaseResult& result) {
    if (result.trace.rows.empty() || result.trace.rows.back().kind != StepKind::end) return;
    std::string& clause = result.trace.rows.back().clause;
    if (clause.empty() || result.clause.empty()) return;
    const std::string in_drawing = "[" + clause + "]";
    // The verdict is the last step with a clause.
    const std::size_t at = result.drawing.rfind(in_drawing);
    if (at != std::string::npos && at > result.drawing.rfind("FAILED, "))
        result.drawing.replace(at, in_drawing.size(), "[" + result.clause + "]");
    clause = result.clause;
}

}  // namespace

FailedCase failed_of(const Case& the_case, std::size_t place, const CaseResult& result) {
    FailedCase failed{std::string(the_case.clause()),
                      result.found_clause,
                      place,
                      result.cause,
                      result.is_clause_assumed,
                      the_case.demand == Demand::explored,
                      result.steps,
                      std::string(root_of(result.message)),
                      {}};
    for (std::size_t i = 1; i < result.findings.size(); ++i)
        failed.also.push_back(result.findings[i].clause);
    return failed;
}

PassedCases passed_cases(const std::vector<Case>& cases, const RunReport& report) {
    std::set<std::string_view> passed;
    for (const CaseResult& result : report.results) {
        if (result.verdict == Verdict::pass) passed.insert(result.id);
    }
    PassedCases by_clause;
    for (const Case& each : cases) {
        if (each.demand != Demand::explored && passed.contains(each.id))
            ++by_clause[std::string(each.clause())];
    }
    return by_clause;
}

void order_failures(const std::vector<FailureGroup>& groups,
                    const std::vector<std::size_t>& results, RunReport& report) {
    report.reading_order.clear();
    for (const std::size_t failure : rank_failures(groups))
        report.reading_order.push_back(results[failure]);
    for (const FailureGroup& group : groups) {
        for (const std::size_t failure : group.members)
            report.results[results[failure]].clause = group.clause;
    }
    for (const std::size_t failure : report.reading_order)
        put_clause_into_trace(report.results[failure]);
}

void order_failures(const std::vector<Case>& cases, RunReport& report) {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < cases.size(); ++i) places.emplace(cases[i].id, i);
    std::vector<FailedCase> failures;
    std::vector<std::size_t> results;
    for (std::size_t i = 0; i < report.results.size(); ++i) {
        const CaseResult& result = report.results[i];
        const auto place = places.find(result.id);
        if (result.verdict != Verdict::fail || place == places.end()) continue;
        failures.push_back(failed_of(cases[place->second], place->second, result));
        results.push_back(i);
    }
    order_failures(group_failures(failures, passed_cases(cases, report)), results, report);
}

}  // namespace kmes::conformance
