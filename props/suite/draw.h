// SPDX-License-Identifier: MIT
//
// Random consumers for rapidcheck, which shrink towards the plain one: fewer switches, fewer
// mistakes. For tests.
#ifndef KMES_PROPS_SUITE_DRAW_H_
#define KMES_PROPS_SUITE_DRAW_H_

#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "props/suite/switches.h"

namespace kmes::props::suite {

// Returns 0 to count - 1, equally likely from the first sample on; shrinks to 0.
inline std::size_t draw_below(std::size_t count) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, count));
}

// Consumers with any correct choices: each switch is plain with the same probability as not.
inline rc::Gen<Consumer> right_consumers() {
    return rc::gen::exec([] {
        Consumer consumer;
        for (const Key& key : vocabulary().keys) {
            const std::size_t count = key.words.size();
            const std::size_t drawn = draw_below(2 * count - 1);
            if (drawn < count) consumer.set(key.name, key.words[drawn]);
        }
        repair(consumer);
        return consumer;
    });
}

// Consumers that are correct except for these mistakes.
inline rc::Gen<Consumer> broken_consumers(const std::vector<std::string>& bugs) {
    return rc::gen::map(right_consumers(), [bugs](Consumer consumer) {
        for (const std::string& bug : bugs) make(consumer, mistake(bug));
        return consumer;
    });
}

// A mistake never shrinks to another one; two mistakes shrink to either.
inline rc::Gen<Consumer> consumers_of_two_mistakes() {
    return rc::gen::exec([] {
        const std::string first = *rc::gen::elementOf(vocabulary().bugs);
        const std::string second = *rc::gen::elementOf(vocabulary().bugs);
        Consumer consumer = *right_consumers();
        const std::size_t which = draw_below(12);  // 0, 1: only one of them
        if (which != 1) make(consumer, mistake(first));
        if (which != 0 && second != first) make(consumer, mistake(second));
        if (consumer.bugs.empty()) make(consumer, mistake(first));
        return consumer;
    });
}

inline void showValue(const Consumer& consumer, std::ostream& out) {
    out << "switched_consumer";
    for (const std::string& word : consumer.arguments()) out << " " << word;
}

// Checks `samples` fixed samples; or as many random ones as RC_PARAMS says. Fixed samples are not
// shrunk. Each try plays the suite, and the limit of the test would end it before it says what
// failed.
template <typename Property>
bool holds(const std::string& name, int samples, Property property) {
    rc::detail::TestParams parameters = rc::detail::configuration().testParams;
    if (std::getenv("RC_PARAMS") == nullptr) {
        parameters.maxSuccess = samples;
        parameters.seed = 1;
        parameters.disableShrinking = true;
    }
    rc::detail::TestMetadata metadata;
    metadata.id = name;
    metadata.description = name;
    const auto result = rc::detail::checkTestable(property, metadata, parameters);
    rc::detail::printResultMessage(result, std::cerr);
    std::cerr << "\n";
    return result.template is<rc::detail::SuccessResult>();
}

// Describes a sample that the suite judges wrongly: the verdicts, and how to repeat them.
inline std::string describe(const Consumer& consumer, const std::vector<Verdict>& verdicts,
                            RunOptions options) {
    std::string text;
    std::vector<std::string> failed;
    for (const Verdict& each : verdicts) {
        if (each.verdict == "pass" || each.verdict == "unsupported") continue;
        text +=
            each.verdict + " " + each.id + " (clause " + each.clause + "): " + each.message + "\n";
        failed.push_back(each.id);
    }
    options.filters = failed.empty() ? cases_of(consumer) : failed;
    return text + "see it again: " + command(consumer, options) + "\n";
}

}  // namespace kmes::props::suite

#endif  // KMES_PROPS_SUITE_DRAW_H_
