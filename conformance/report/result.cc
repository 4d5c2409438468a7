// SPDX-License-Identifier: MIT
//
// The summary and the exit status.
#include "conformance/report/result.h"

namespace kmes::conformance {

Summary summarise(const std::vector<CaseResult>& results) {
    Summary summary;
    for (const CaseResult& result : results) {
        switch (result.verdict) {
            case Verdict::pass:
                ++summary.pass;
                break;
            case Verdict::fail:
                ++summary.fail;
                if (result.is_known) ++summary.known;
                break;
            case Verdict::inconclusive:
                ++summary.inconclusive;
                break;
            case Verdict::unsupported:
                ++summary.unsupported;
                break;
            case Verdict::suite_error:
                ++summary.suite_error;
                break;
        }
    }
    return summary;
}

int exit_status(const Summary& summary) {
    if (summary.suite_error > 0) return kExitSuite;
    if (summary.fail > summary.known) return kExitFailed;
    if (summary.inconclusive > 0) return kExitInconclusive;
    return kExitClean;
}

}  // namespace kmes::conformance
