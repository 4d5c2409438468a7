// SPDX-License-Identifier: MIT
//
// Judges the run of a file again: from its histories alone, without a testee. Knows no stage.
#ifndef KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_
#define KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_

#include <string>
#include <vector>

#include "conformance/model/run_record.h"

namespace kmes::conformance {

struct JudgedAgain {
    // The oracle's, now, from the histories of the file.
    std::vector<Finding> oracle;
    // The oracle's in the file. Equal: the same findings with the same words.
    std::vector<Finding> oracle_in_file;
    // What the driver found during the run: nobody can find it again without a testee.
    std::vector<Finding> driver;
    bool equal = false;
    // One line; not empty: it cannot be judged, and the other members say nothing.
    std::string error;
};

JudgedAgain judge_record(const RunRecord& record);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_JUDGE_FILE_H_
