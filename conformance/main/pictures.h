// SPDX-License-Identifier: MIT
//
// Which failed cases of a run get a picture, and from which run of the case: one that tells every
// access of the testee, if it fails in the same way. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_PICTURES_H_
#define KMES_CONFORMANCE_MAIN_PICTURES_H_

#include <cstddef>
#include <vector>

#include "conformance/failure/picture.h"
#include "conformance/main/program.h"
#include "conformance/main/telling.h"
#include "conformance/report/result.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

class Pictures {
  public:
    // none: only the order is made. best: at the end, of the few that tell most. all: of each (-v).
    enum class Drawn { none, best, all };
    Pictures(const Surroundings& around, const PictureOptions& options, Drawn which)
        : around_(around), options_(options), which_(which) {}

    // After each case, with what its first run took in `result`, which is at `index` of the
    // report's results and stays there. What may have to be drawn later is kept: little of it.
    void add(const Case& the_case, const StageSettings& settings, const CaseOutcome& outcome,
             CaseResult& result, std::size_t index);
    // When all have run: draws, and puts the failures into the order in which they are to be told.
    void finish(RunReport& report);

  private:
    // What a case left behind that may be drawn.
    struct Kept {
        std::size_t failure = 0;  // index in failures_
        const Case* the_case = nullptr;
        StageSettings settings;
        CaseOutcome outcome;
    };

    void keep(Kept kept);
    bool draw_best(const std::vector<FailureGroup>& groups, RunReport& report);
    // Runs the case once more. The text is to speak of the run that is drawn, which has seen more,
    // and may know the clause better.
    void draw_into(const Kept& kept, CaseResult& result) const;
    CaseOutcome run_again(const Kept& kept) const;

    const Surroundings& around_;
    PictureOptions options_;
    Drawn which_;
    std::vector<Failed> failures_;
    std::vector<std::size_t> results_;  // of each failure: its index among the results
    std::vector<Kept> kept_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PICTURES_H_
