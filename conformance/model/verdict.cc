// SPDX-License-Identifier: MIT
//
// The names of levels and verdicts.
#include "conformance/model/verdict.h"

#include <algorithm>

namespace kmes::conformance {

namespace {

template <typename Values, typename Name>
std::optional<typename Values::value_type> named(const Values& values, Name name_of,
                                                 std::string_view name) {
    const auto found = std::ranges::find(values, name, name_of);
    if (found == values.end()) return std::nullopt;
    return *found;
}

}  // namespace

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
    return named(kLevels, level_name, name);
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

std::optional<Verdict> verdict_from_name(std::string_view name) {
    return named(kVerdicts, verdict_name, name);
}

}  // namespace kmes::conformance
