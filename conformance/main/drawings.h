// SPDX-License-Identifier: MIT
//
// Decides which failed cases of a run get a trace, and from which run: one that records every
// access of the testee, if it fails in the same way. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_DRAWINGS_H_
#define KMES_CONFORMANCE_MAIN_DRAWINGS_H_

#include <cstddef>
#include <vector>

#include "conformance/failure/drawing.h"
#include "conformance/main/failure_groups.h"
#include "conformance/main/program.h"
#include "conformance/report/result.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

class Drawings {
  public:
    // none: only order the failures. best: at the end, draw the best few. all: draw each one (-v).
    enum class Drawn { none, best, all };
    Drawings(const Surroundings& around, const DrawingOptions& options, Drawn which)
        : around_(around), options_(options), which_(which) {}

    // Call it after each case, whose result is the last one of the report and stays at its place.
    // `outcome` is that of the first run. Keeps the little that drawing may need later.
    void add(const Case& the_case, const StageSettings& settings, const CaseOutcome& outcome,
             RunReport& report);
    // Call it after all cases: draws, and puts the failures into the order for the reader.
    void finish(RunReport& report);

  private:
    // What drawing a case needs.
    struct Kept {
        std::size_t failure = 0;  // index in failures_
        const Case* the_case = nullptr;
        StageSettings settings;
        CaseOutcome outcome;
    };

    void keep(Kept kept);
    bool draw_best(const std::vector<FailureGroup>& groups, RunReport& report);
    bool draw_failure(std::size_t failure, RunReport& report);
    std::size_t simplest_of(const FailureGroup& group) const;
    // Draws the run, if it has all accesses, or else a second one that has them. The text then
    // describes the drawn run, which has seen more and may know the clause better.
    void draw_into(const Kept& kept, RunReport& report) const;
    bool draw_second_run(const Kept& kept, RunReport& report) const;
    CaseOutcome run_again(const Kept& kept) const;
    CaseResult& result_of(const Kept& kept, RunReport& report) const {
        return report.results[results_[kept.failure]];
    }

    const Surroundings& around_;
    DrawingOptions options_;
    Drawn which_;
    std::vector<FailedCase> failures_;
    std::vector<std::size_t> results_;  // for each failure, its index among the results
    std::vector<Kept> kept_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_DRAWINGS_H_
