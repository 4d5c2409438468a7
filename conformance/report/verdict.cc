// SPDX-License-Identifier: MIT
//
// Names of levels and verdicts, the summary, the exit status.
#include "conformance/report/verdict.h"

namespace kmes::conformance {

std::string_view level_name(Level level) {
    switch (level) {
        case Level::must:
            return "must";
        case Level::should:
            return "should";
        case Level::erratum:
            return "erratum";
        case Level::robust:
            return "robust";
    }
    return "must";
}

std::optional<Level> level_from_name(std::string_view name) {
    for (const Level level : {Level::must, Level::should, Level::erratum, Level::robust}) {
        if (level_name(level) == name) return level;
    }
    return std::nullopt;
}

std::string_view verdict_name(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return "pass";
        case Verdict::fail:
            return "fail";
        case Verdict::inconclusive:
            return "inconclusive";
        case Verdict::unsupported:
            return "unsupported";
        case Verdict::suite_error:
            return "suite_error";
    }
    return "suite_error";
}

Summary summarise(const std::vector<CaseResult>& results) {
    Summary summary;
    for (const CaseResult& result : results) {
        switch (result.verdict) {
            case Verdict::pass:
                ++summary.pass;
                break;
            case Verdict::fail:
                ++summary.fail;
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
    if (summary.fail > 0) return kExitFailed;
    if (summary.inconclusive > 0) return kExitInconclusive;
    return kExitClean;
}

}  // namespace kmes::conformance
