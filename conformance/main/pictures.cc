// SPDX-License-Identifier: MIT
//
// See pictures.h.
#include "conformance/main/pictures.h"

#include <exception>

#include "conformance/failure/run_record.h"

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

}  // namespace

CaseOutcome Pictures::run_again(const Case& the_case, const StageSettings& settings,
                                const RunRecord& record) const {
    StageSettings again = settings;
    again.record_timeline = true;
    again.record_accesses = true;
    again.schedule = record.schedule;
    try {
        return around_.run_on_stage(the_case, again);
    } catch (const std::exception&) {
        return CaseOutcome{};  // the picture of the first run then
    }
}

Pictures::Picture Pictures::of(const Case& the_case, const StageSettings& settings,
                               const CaseOutcome& outcome, double seconds) {
    if (outcome.verdict != Verdict::fail || !outcome.record || outcome.record->timeline.empty())
        return {};
    if (!all_ && drawn_ >= kPicturesWithoutBeingAsked)
        return {std::string(kNotDrawn), std::nullopt};
    ++drawn_;
    const RunRecord& first = *outcome.record;
    // A schedule that failed was played once more with everything told already.
    if (!first.schedule && !settings.record_accesses && seconds < kWorthASecondRunSeconds) {
        CaseOutcome second = run_again(the_case, settings, first);
        if (second.record && is_same(first, *second.record))
            return {draw(second.record->timeline, options_), std::move(second)};
    }
    return {draw(first.timeline, options_), std::nullopt};
}

}  // namespace kmes::conformance
