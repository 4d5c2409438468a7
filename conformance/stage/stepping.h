// SPDX-License-Identifier: MIT
//
// Converts the value of --stepper to the type of the tracer.
#ifndef KMES_CONFORMANCE_STAGE_STEPPING_H_
#define KMES_CONFORMANCE_STAGE_STEPPING_H_

#include "conformance/model/settings.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

inline Stepping stepping_of(Stepper stepper) {
    switch (stepper) {
        case Stepper::guards:
            return Stepping::kGuardPages;
        case Stepper::watchpoints:
            return Stepping::kWatchpoints;
        case Stepper::single_step:
            return Stepping::kSingleStep;
        case Stepper::automatic:
            break;
    }
    return TracerOptions{}.stepping;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STEPPING_H_
