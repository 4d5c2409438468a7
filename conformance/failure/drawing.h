// SPDX-License-Identifier: MIT
//
// Draws the trace of a failure for a terminal. Time runs downwards, with the producer on the left
// and the consumer's threads on the right. The step that decided the outcome is marked. Knows only
// the timeline: no stage, no testee, no case. Its texts may come from a testee or a file and are
// hostile.
#ifndef KMES_CONFORMANCE_FAILURE_DRAWING_H_
#define KMES_CONFORMANCE_FAILURE_DRAWING_H_

#include <cstddef>
#include <string>

#include "conformance/model/timeline.h"

namespace kmes::conformance {

struct DrawingOptions {
    std::size_t width = 100;  // of the terminal; less than 72 counts as 72
    bool colour = false;
    bool unicode = false;  // draw lines; otherwise plain ASCII
    // The approximate number of lines: steps far from the decisive ones are folded. The decisive
    // steps are shown even if they take more.
    std::size_t maximum_lines = 60;
};

// Returns lines that end with a newline; empty for an empty timeline.
std::string draw(const Timeline& timeline, const DrawingOptions& options = {});

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_DRAWING_H_
