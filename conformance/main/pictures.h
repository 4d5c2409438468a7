// SPDX-License-Identifier: MIT
//
// Which failed cases of a run get a picture, and from which run of the case: one that tells every
// access of the testee, if it fails in the same way. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_PICTURES_H_
#define KMES_CONFORMANCE_MAIN_PICTURES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "conformance/failure/picture.h"
#include "conformance/main/program.h"

namespace kmes::conformance {

class Pictures {
  public:
    // `all`: every failed case has one (-v); else only the first few.
    Pictures(const Surroundings& around, const PictureOptions& options, bool all)
        : around_(around), options_(options), all_(all) {}

    struct Picture {
        std::string text;
        // What the run that is drawn says of the failure: it has seen more, and may know the
        // clause better. None: the first run is drawn.
        std::optional<CaseOutcome> outcome;
    };

    // Empty: none, or it did not fail. Runs the case once more. `seconds`: what the first run took.
    Picture of(const Case& the_case, const StageSettings& settings, const CaseOutcome& outcome,
               double seconds);

  private:
    CaseOutcome run_again(const Case& the_case, const StageSettings& settings,
                          const RunRecord& record) const;

    const Surroundings& around_;
    PictureOptions options_;
    bool all_;
    std::size_t drawn_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PICTURES_H_
