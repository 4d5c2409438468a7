// SPDX-License-Identifier: MIT
//
// The names of levels and verdicts.
#include "conformance/model/verdict.h"

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

}  // namespace kmes::conformance
