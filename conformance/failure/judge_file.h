// SPDX-License-Identifier: MIT
//
// Judges the run of a failure file again, from its histories alone, without a testee. Knows no
// stage.
#ifndef KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_
#define KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_

#include <string>
#include <vector>

#include "conformance/model/run_record.h"

namespace kmes::conformance {

struct JudgedAgain {
    // The oracle's findings now, from the histories of the file.
    std::vector<Finding> oracle;
    // The oracle's findings in the file. `equal`: they are the same, with the same words.
    std::vector<Finding> oracle_in_file;
    // The driver's findings during the run. Without a testee they cannot be found again.
    std::vector<Finding> driver;
    bool equal = false;
    // One line. If not empty, the run cannot be judged, and the other members are meaningless.
    std::string error;
};

JudgedAgain judge_record(const RunRecord& record);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_
