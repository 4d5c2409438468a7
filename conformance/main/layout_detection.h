// SPDX-License-Identifier: MIT
//
// Detects the form of the layout that a consumer is written for (--layout auto). It reads the
// start of the consumer: the arguments of its kmes_attach calls, and the length of its first
// mapping.
#ifndef KMES_CONFORMANCE_MAIN_LAYOUT_DETECTION_H_
#define KMES_CONFORMANCE_MAIN_LAYOUT_DETECTION_H_

#include <string>
#include <vector>

#include "conformance/model/layout.h"
#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

struct DetectedLayout {
    const Layout* layout = nullptr;  // never null
    std::string reason;              // what the program did, in one clause
    bool is_startable = true;
    bool attaches = true;  // false: the program calls no kmes_attach, and its form is not known
};

// Starts the program once or twice. Each run ends when it has shown enough, or after 10 s times
// `timeout_scale`. A program that does not start or does not attach counts as form A.
// docs/layouts.md says how the forms are told apart.
DetectedLayout detect_layout(const std::vector<std::string>& program, double timeout_scale,
                             const StopFlag& stop);

// Returns one sentence that names the form by which the program attaches, and the option for it.
// Returns an empty string if that is the form of this process, or if the form is not known. For a
// program whose adapter does not work. Starts the program as detect_layout does.
std::string other_form_text(const std::vector<std::string>& program, double timeout_scale,
                            const StopFlag& stop);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_LAYOUT_DETECTION_H_
