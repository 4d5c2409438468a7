// SPDX-License-Identifier: MIT
//
// What stopping at an access costs at least on this machine, whoever does it: a figure of the
// stepper's says little without it, since the same kernel calls take twice as long on another
// machine. Knows nothing of the tracer that is measured beside it.

#ifndef CONFORMANCE_TRACER_STOP_FLOOR_H_
#define CONFORMANCE_TRACER_STOP_FLOOR_H_

namespace kmes::conformance {

enum class BareStop {
    fault,  // of a page without permissions: what faulted is asked for, the registers read and set
    step,   // a single step, and nothing asked
};

// The median time of one such stop, in nanoseconds, of `count` of a child that is made for it. The
// calling thread and the child share one processor meanwhile. -1: no child, or it could not be
// traced.
double bare_stop_ns(BareStop kind, int count);

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_STOP_FLOOR_H_
