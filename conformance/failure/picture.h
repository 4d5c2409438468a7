// SPDX-License-Identifier: MIT
//
// The picture of a failure for a terminal: time downwards, the producer left, the consumer's
// threads right, the step that decided the outcome marked. Draws what the timeline says and knows
// nothing else: no stage, no testee, no case. Texts may come from a testee or from a file: they are
// hostile.
#ifndef KMES_CONFORMANCE_FAILURE_PICTURE_H_
#define KMES_CONFORMANCE_FAILURE_PICTURE_H_

#include <cstddef>
#include <string>

#include "conformance/model/timeline.h"

namespace kmes::conformance {

struct PictureOptions {
    std::size_t width = 100;  // of the terminal; smaller than 72 is taken for 72
    bool colour = false;
    bool unicode = false;  // drawn lines; without it plain ASCII
    // About so many lines: what is farther from the decisive steps is folded. These are shown
    // whatever they take.
    std::size_t maximum_lines = 60;
};

// Lines that end with a newline; empty for an empty timeline.
std::string draw(const Timeline& timeline, const PictureOptions& options = {});

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_PICTURE_H_
