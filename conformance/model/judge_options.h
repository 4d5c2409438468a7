// SPDX-License-Identifier: MIT
//
// The judge's options. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_
#define KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_

#include <cstddef>
#include <string>

namespace kmes::conformance {

struct JudgeOptions {
    // The testee exited with status 0: every CPU must have ended (contract 4).
    bool exited_with_zero = false;
    // The driver ended the run early, when a correct testee may still have had work to do. A record
    // that could still have come does not count as missing.
    bool cut_short = false;
    // The clause of the situation that the case stages. Findings use it if a fault does not show
    // which clause it breaks (bytes misread, a valid buffer refused).
    std::string clause = "contract";
    // Per code. One more finding sums up the rest ("and 311 more of this kind").
    std::size_t maximum_findings_per_code = 8;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_JUDGE_OPTIONS_H_
