// SPDX-License-Identifier: MIT
//
// The interface of --debug. The stage calls the debugger at each event of the tracer, before it
// acts on the event. The thread of the event is stopped meanwhile. Knows no user interface.
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
