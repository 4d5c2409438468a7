// SPDX-License-Identifier: MIT
//
// Somebody who looks over the stage's shoulder (--debug): is called at each thing that the testee
// does, while its thread stands still, before the stage acts on it. Knows no way to ask anybody.
#ifndef KMES_CONFORMANCE_STAGE_DEBUGGER_H_
#define KMES_CONFORMANCE_STAGE_DEBUGGER_H_

#include "conformance/tracer/events.h"

namespace kmes::conformance {

class Stage;

class Debugger {
  public:
    virtual ~Debugger() = default;
    virtual void at(Stage& stage, const TracerEvent& event) = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_DEBUGGER_H_
