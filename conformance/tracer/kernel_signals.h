// SPDX-License-Identifier: MIT
//
// Signals as the kernel takes and tells them: masks of 64 bits, actions without glibc's change of
// order. Knows no processes.

#ifndef CONFORMANCE_TRACER_KERNEL_SIGNALS_H_
#define CONFORMANCE_TRACER_KERNEL_SIGNALS_H_

#include <signal.h>

#include <cstdint>

namespace kmes::conformance::tracing {

constexpr uint64_t signal_bit(int signal_number) {
    return uint64_t{1} << (signal_number - 1);
}

// While a call or a step is the runner's: of these two the kernel would take the handlers away.
inline constexpr uint64_t kAllButFaults = ~(signal_bit(SIGTRAP) | signal_bit(SIGSEGV));

// For rt_sigaction; zero is SIG_DFL with nothing blocked.
struct SignalAction {
    uint64_t handler, flags, restorer, mask;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_KERNEL_SIGNALS_H_
