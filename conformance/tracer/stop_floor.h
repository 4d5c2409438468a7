// SPDX-License-Identifier: MIT
//
// Measures the minimal cost of a stop at an access on this machine. A figure of the stepper says
// little without it, because machines differ by a factor of two in these kernel calls. Knows
// nothing of the tracer.

#ifndef CONFORMANCE_TRACER_STOP_FLOOR_H_
#define CONFORMANCE_TRACER_STOP_FLOOR_H_

namespace kmes::conformance {

enum class BareStop {
    fault,  // a fault on a page without permissions: read the fault, read and set the registers
    step,   // a single step, and no other request
};

// Returns the median time of one such stop in nanoseconds, over `count` stops of a new child. The
// calling thread and the child share one processor meanwhile. Returns -1 if the child could not be
// started or traced.
double bare_stop_ns(BareStop kind, int count);

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_STOP_FLOOR_H_
