// SPDX-License-Identifier: MIT
//
// Descriptions of the producer steps and the walks of a row, for a schedule that a person reads.
#ifndef KMES_CONFORMANCE_PLAY_STEP_TEXT_H_
#define KMES_CONFORMANCE_PLAY_STEP_TEXT_H_

#include <cstdint>
#include <string>

#include "conformance/play/play.h"
#include "conformance/play/steps.h"

namespace kmes::conformance {

// "100", "1/8 of the capacity + 16".
std::string describe(const Amount& amount);

// A producer step: "emit 2 events of 70 bytes". `count` replaces the row's own number.
std::string describe(const Step& step, std::uint64_t count);

// A play of a walk: "before access 5 to the metadata page, after a spurious wake".
// `further_wakes`: spurious wakes before that one.
std::string describe_walk(const Step& walk, const AccessNumber& access,
                          std::uint64_t further_wakes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_STEP_TEXT_H_
