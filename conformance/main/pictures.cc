// SPDX-License-Identifier: MIT
//
// See pictures.h.
#include "conformance/main/pictures.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "conformance/main/evidence.h"
#include "conformance/model/run_record.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

namespace {

constexpr std::size_t kPicturesWithoutBeingAsked = 3;
// A run that took longer (a hang of which one had to wait for the limit) is not made again for the
// sake of a picture.
constexpr double kWorthASecondRunSeconds = 20;
constexpr std::string_view kNotDrawn =
    "(the picture of this failure: run it again as below, or with -v)\n";

// The same thing is wrong: the same finding on the same CPU. Sequence numbers may differ, and the
// run that sees more may know the clause better.
bool is_same(const RunRecord& one, const RunRecord& other) {
    if (one.findings.empty() || other.findings.empty()) return false;
    const Finding& first = one.findings.front();
    const Finding& second = other.findings.front();
    return first.code == second.code && first.cpu == second.cpu;
}

std::uint64_t steps_of(const CaseOutcome& outcome) {
    if (!outcome.record) return 0;
    return outcome.record->timeline.steps().size() + outcome.record->timeline.left_out();
}

bool has_accesses(const Timeline& timeline) {
    return std::ranges::any_of(
        timeline.steps(), [](const TimelineStep& step) { return step.kind == StepKind::access; });
}

}  // namespace

void Pictures::add(const Case& the_case, const StageSettings& settings, const CaseOutcome& outcome,
                   CaseResult& result, std::size_t index) {
    if (outcome.verdict != Verdict::fail) return;
    failures_.push_back({std::string(the_case.clause), result.clause, steps_of(outcome)});
    results_.push_back(index);
    if (!outcome.record || outcome.record->timeline.empty()) return;
    Kept kept{failures_.size() - 1, &the_case, settings, outcome};
    if (all_) {
        draw_into(kept, result);
    } else {
        result.picture = kNotDrawn;
        keep(std::move(kept));
    }
}

// Only as many of a clause as could be drawn, if there were no other.
void Pictures::keep(Kept kept) {
    const std::string clause = failures_[kept.failure].finding_clause;
    kept_.push_back(std::move(kept));
    const auto is_of_it = [&](const Kept& each) {
        return failures_[each.failure].finding_clause == clause;
    };
    if (std::count_if(kept_.begin(), kept_.end(), is_of_it) <=
        static_cast<std::ptrdiff_t>(kPicturesWithoutBeingAsked))
        return;
    auto least = std::find_if(kept_.begin(), kept_.end(), is_of_it);
    for (auto each = least; each != kept_.end(); ++each) {
        if (is_of_it(*each) &&
            !is_better_evidence(failures_[each->failure], failures_[least->failure]))
            least = each;
    }
    kept_.erase(least);
}

void Pictures::finish(RunReport& report) {
    report.telling.clear();
    const std::vector<std::size_t> order = rank_failures(failures_);
    for (const std::size_t failure : order) report.telling.push_back(results_[failure]);
    std::size_t drawn = 0;
    for (const std::size_t failure : order) {
        const auto kept = std::find_if(kept_.begin(), kept_.end(), [failure](const Kept& each) {
            return each.failure == failure;
        });
        if (kept == kept_.end() || drawn >= kPicturesWithoutBeingAsked) continue;
        draw_into(*kept, report.results[results_[failure]]);
        ++drawn;
    }
    kept_.clear();
}

void Pictures::draw_into(const Kept& kept, CaseResult& result) const {
    const RunRecord& first = *kept.outcome.record;
    // A schedule that failed alone was played once more with everything told already.
    if (!has_accesses(first.timeline) && !kept.settings.record_accesses &&
        result.seconds < kWorthASecondRunSeconds && !around_.stop) {
        const CaseOutcome second = run_again(kept);
        // Where a signal has cut the second run short, the first one is drawn.
        if (!around_.stop && second.record && is_same(first, *second.record)) {
            result.clause = second.clause;
            result.message = second.message;
            result.details = second.details;
            take_evidence(second, result);
            result.picture = draw(second.record->timeline, options_);
            return;
        }
    }
    result.picture = draw(first.timeline, options_);
}

CaseOutcome Pictures::run_again(const Kept& kept) const {
    StageSettings again = kept.settings;
    again.record_timeline = true;
    again.record_accesses = true;
    again.schedule = kept.outcome.record->schedule;
    try {
        return around_.run_on_stage(*kept.the_case, again);
    } catch (...) {
        return CaseOutcome{};  // the picture of the first run then
    }
}

}  // namespace kmes::conformance
