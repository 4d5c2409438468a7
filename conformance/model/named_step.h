// SPDX-License-Identifier: MIT
//
// Which step of a failure a report names as its place ("where:"). Knows no text and no drawing.
#ifndef KMES_CONFORMANCE_MODEL_NAMED_STEP_H_
#define KMES_CONFORMANCE_MODEL_NAMED_STEP_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "conformance/model/step_texts.h"
#include "conformance/model/timeline.h"

namespace kmes::conformance {

// Returns the index of that step: the last decisive access, or else the last decisive step, the
// last access, the last step. (A wait says only that the consumer had nothing else to do.) Only
// steps of the consumer for which `may_be_named` is true count. Returns nothing if
// there is none, or if no line of code shows what a whole run has left over.
template <typename Step>
std::optional<std::size_t> named_step(const std::vector<Step>& steps, const auto& may_be_named) {
    std::optional<std::size_t> found[4];  // by preference
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (step.decisive && step.why == kWholeRunDecides) return std::nullopt;
        if (step.thread == 0 || !may_be_named(step)) continue;
        const bool is_access = step.kind == StepKind::access;
        found[(step.decisive ? 0 : 2) + (is_access ? 0 : 1)] = i;
        found[3] = i;
    }
    for (const std::optional<std::size_t>& index : found)
        if (index) return index;
    return std::nullopt;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_NAMED_STEP_H_
