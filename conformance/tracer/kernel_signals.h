// SPDX-License-Identifier: MIT
//
// Signals in the kernel's format: masks of 64 bits, and actions in the kernel's order of fields.
// Knows no processes.

#ifndef CONFORMANCE_TRACER_KERNEL_SIGNALS_H_
#define CONFORMANCE_TRACER_KERNEL_SIGNALS_H_

#include <signal.h>

#include <cstdint>

namespace kmes::conformance::tracing {

constexpr uint64_t signal_bit(int signal_number) {
    return uint64_t{1} << (signal_number - 1);
}

// The mask during a call or a step of the runner. The kernel would reset the handlers of these two
// if they were blocked.
inline constexpr uint64_t kAllButFaults = ~(signal_bit(SIGTRAP) | signal_bit(SIGSEGV));

// The argument of rt_sigaction; zero is SIG_DFL with no signal blocked.
struct SignalAction {
    uint64_t handler, flags, restorer, mask;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_KERNEL_SIGNALS_H_
