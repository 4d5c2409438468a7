// SPDX-License-Identifier: MIT
//
// See drawings.h.
#include "conformance/main/drawings.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "conformance/failure/failure_file.h"
#include "conformance/main/evidence.h"
#include "conformance/main/report_order.h"
#include "conformance/main/symptom.h"
#include "conformance/model/run_record.h"
#include "conformance/model/step_texts.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

namespace {

constexpr std::size_t kUnrequestedDrawings = 3;
constexpr int kDrawingPasses = 4;
// A longer run (a hang, which had to wait for a time limit) is not repeated for a trace.
constexpr double kWorthASecondRunSeconds = 20;
constexpr std::string_view kSomeMissing =
    "Some accesses may be missing: no run with all of them recorded failed in this way.\n";
constexpr std::string_view kNotDrawn =
    "(the trace of this failure: run it again as below, or with -v)\n";

void note_symptom(const CaseOutcome& outcome, const Case& the_case, CaseResult& result) {
    Finding finding;
    if (outcome.record && !outcome.record->findings.empty())
        finding = outcome.record->findings.front();
    finding.clause = result.found_clause = result.clause;
    // The reason is not a part of the symptom.
    finding.message = outcome.message.substr(0, outcome.message.find(kTheCause));
    const Symptom symptom = symptom_of(finding, the_case.clause());
    result.cause = symptom.cause;
    result.is_clause_assumed = symptom.is_assumed;
}

// Whether the accesses of the run were recorded from its beginning.
bool has_accesses(const Timeline& timeline) {
    for (const TimelineStep& step : timeline.steps()) {
        if (step.kind == StepKind::access) return true;
        if (step.text == kLoopRecorded) return false;
    }
    return false;
}

// The steps until the verdict was known.
std::uint64_t steps_of(const Timeline& timeline) {
    for (std::size_t i = 0; i < timeline.steps().size(); ++i) {
        if (timeline.steps()[i].text == kLoopRecorded) return timeline.number(i);
    }
    return timeline.last_number();
}

}  // namespace

void Drawings::add(const Case& the_case, const StageSettings& settings, const CaseOutcome& outcome,
                   RunReport& report) {
    if (outcome.verdict != Verdict::fail) return;
    CaseResult& result = report.results.back();
    note_symptom(outcome, the_case, result);
    if (outcome.record) result.steps = steps_of(outcome.record->timeline);
    const auto place = static_cast<std::size_t>(&the_case - around_.cases.data());
    failures_.push_back(failed_of(the_case, place, result));
    results_.push_back(report.results.size() - 1);
    if (which_ == Drawn::none || !outcome.record || outcome.record->timeline.empty()) return;
    Kept kept{failures_.size() - 1, &the_case, settings, outcome};
    if (which_ == Drawn::all) {
        draw_into(kept, report);
    } else {
        result.drawing = kNotDrawn;
        keep(std::move(kept));
    }
}

// Keeps only as many failures as could be drawn if there were no others. In a group with the
// clauses of its cases, the best is known only after all cases: it is the best of some clause.
void Drawings::keep(Kept kept) {
    const FailedCase added = failures_[kept.failure];
    kept_.push_back(std::move(kept));
    const auto is_like_it = [&](const Kept& each) {
        const FailedCase& failed = failures_[each.failure];
        return group_key(failed) == group_key(added) &&
               (!added.is_assumed || failed.case_clause == added.case_clause);
    };
    const std::size_t limit = added.is_assumed ? 1 : kUnrequestedDrawings;
    if (std::count_if(kept_.begin(), kept_.end(), is_like_it) <= static_cast<std::ptrdiff_t>(limit))
        return;
    auto least = std::find_if(kept_.begin(), kept_.end(), is_like_it);
    for (auto each = least; each != kept_.end(); ++each) {
        if (is_like_it(*each) &&
            !is_better_evidence(failures_[each->failure], failures_[least->failure]))
            least = each;
    }
    kept_.erase(least);
}

void Drawings::finish(RunReport& report) {
    const PassedCases passed = passed_cases(around_.cases, report);
    std::vector<FailureGroup> groups = group_failures(failures_, passed);
    // A second run may know a clause better, and then the groups change.
    for (int pass = 0; pass < kDrawingPasses && draw_best(groups, report); ++pass)
        groups = group_failures(failures_, passed);
    kept_.clear();
    // Whatever its case tests, a failure gets the clause of the clearest failure with the same
    // reason.
    order_failures(groups, results_, report);
}

// Draws the best evidence of the first groups. A group whose clause is only assumed has a reason
// that a trace can show: then the simplest of its cases is drawn, too. Returns true if a clause or
// a reason has changed.
bool Drawings::draw_best(const std::vector<FailureGroup>& groups, RunReport& report) {
    bool has_changed = false;
    for (std::size_t i = 0; i < std::min(groups.size(), kUnrequestedDrawings); ++i) {
        const std::size_t best = groups[i].members.front();
        has_changed = draw_failure(best, report) || has_changed;
        const FailedCase& failed = failures_[best];
        if (failed.is_assumed && failed.root.empty())
            has_changed = draw_failure(simplest_of(groups[i]), report) || has_changed;
    }
    return has_changed;
}

std::size_t Drawings::simplest_of(const FailureGroup& group) const {
    std::size_t simplest = group.members.front();
    for (const Kept& each : kept_) {
        const FailedCase& failed = failures_[each.failure];
        if (!failed.is_explored && failed.place < failures_[simplest].place &&
            std::ranges::find(group.members, each.failure) != group.members.end())
            simplest = each.failure;
    }
    return simplest;
}

// Draws a failure, unless that has been done. Returns true if its clause or its reason has changed.
bool Drawings::draw_failure(std::size_t failure, RunReport& report) {
    const auto kept = std::ranges::find(kept_, failure, &Kept::failure);
    if (kept == kept_.end()) return false;
    draw_into(*kept, report);
    const FailedCase before = std::exchange(
        failures_[failure],
        failed_of(*kept->the_case, failures_[failure].place, result_of(*kept, report)));
    kept_.erase(kept);
    return before.finding_clause != failures_[failure].finding_clause ||
           before.root != failures_[failure].root;
}

void Drawings::draw_into(const Kept& kept, RunReport& report) const {
    const RunRecord& first = *kept.outcome.record;
    CaseResult& result = result_of(kept, report);
    if (first.has_all_accesses) {
        result.drawing = draw(first.timeline, options_);
    } else if (!draw_second_run(kept, report)) {
        result.drawing = std::string(kSomeMissing) + draw(first.timeline, options_);
    }
}

// Plays the failure again with every access recorded. Returns false, and changes nothing, if that
// run would take long or does not show the failure.
bool Drawings::draw_second_run(const Kept& kept, RunReport& report) const {
    CaseResult& result = result_of(kept, report);
    if (result.seconds >= kWorthASecondRunSeconds || around_.stop) return false;
    const RunRecord& first = *kept.outcome.record;
    const CaseOutcome second = run_again(kept);
    // If a signal has cut the second run short, the first one is drawn.
    if (around_.stop || !second.record || !is_same_failure(first, *second.record)) return false;
    if (has_accesses(first.timeline) && second.clause != kept.outcome.clause) return false;
    result.clause = second.clause;
    note_symptom(second, *kept.the_case, result);
    result.message = second.message;
    result.details = second.details;
    take_evidence(second, result);
    result.drawing = draw(second.record->timeline, options_);
    // The report and the saved file say the same. If that is not possible, the file keeps the first
    // run.
    if (!result.saved.empty())
        static_cast<void>(write_failure_file(
            make_failure_file(*kept.the_case, kept.settings, second, report.stepper),
            result.saved));
    return true;
}

CaseOutcome Drawings::run_again(const Kept& kept) const {
    StageSettings again = kept.settings;
    again.record_timeline = true;
    again.record_accesses = true;
    again.schedule = kept.outcome.record->schedule;
    try {
        return around_.run_on_stage(*kept.the_case, again);
    } catch (...) {
        return CaseOutcome{};  // draw the first run then
    }
}

}  // namespace kmes::conformance
