// SPDX-License-Identifier: MIT
//
// Support for property tests of the oracle: random tapes, findings as text, and a loop that checks
// a property.
#ifndef KMES_CONFORMANCE_ORACLE_PROPERTY_SUPPORT_H
#define KMES_CONFORMANCE_ORACLE_PROPERTY_SUPPORT_H

#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "conformance/model/finding.h"

namespace kmes::conformance::simulation {

inline std::vector<std::uint32_t> any_tape() {
    constexpr int kLongestTape = 400;

    return *rc::gen::resize(kLongestTape, rc::gen::container<std::vector<std::uint32_t>>(
                                              rc::gen::inRange(0u, 1u << 20)));
}

inline std::string describe(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings)
        text += std::string(finding_name(finding.code)) + " " + finding.clause + ": " +
                finding.message + " (line " + std::to_string(finding.line) + ")\n";
    return text;
}

// Checks `property` `runs` times, or as often as RC_PARAMS="max_success=..." says.
template <typename Property>
bool holds(const std::string& name, int runs, Property property) {
    rc::detail::TestParams parameters = rc::detail::configuration().testParams;
    if (std::getenv("RC_PARAMS") == nullptr) parameters.maxSuccess = runs;
    rc::detail::TestMetadata metadata;
    metadata.id = metadata.description = name;
    const auto result = rc::detail::checkTestable(property, metadata, parameters);
    rc::detail::printResultMessage(result, std::cerr);
    std::cerr << "\n";
    return result.template is<rc::detail::SuccessResult>();
}

}  // namespace kmes::conformance::simulation

#endif
