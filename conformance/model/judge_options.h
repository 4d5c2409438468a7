// SPDX-License-Identifier: MIT
//
// What the judge needs beside the history and the records. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_
#define KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_

#include <cstddef>
#include <string>

namespace kmes::conformance {

struct JudgeOptions {
    // The testee exited by itself with status 0: every CPU must have ended (contract 4).
    bool exited_with_zero = false;
    // The driver ended the run before a correct testee had to be done: a record that
    // could still have come is not missed.
    bool cut_short = false;
    // Of what the case stages: of a fault that says of itself only that it is one (bytes misread, a
    // sound buffer refused), this is what it breaks.
    std::string clause = "contract";
    // Of one code; what is beyond is summed up in one more finding ("and 311 more of this kind").
    std::size_t maximum_findings_per_code = 8;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_
