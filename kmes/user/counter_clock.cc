// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The check whether the counter is usable as a clock. See counter_clock.h.
#include "kmes/user/counter_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fstream>
#include <string>

#include "kmes/user/futex.h"
#include "kmes/user/uncancelled.h"

namespace kmes {
namespace {

// CPUID 0x80000007, EDX bit 8: the counter has one rate in every power state.
bool counter_is_invariant() {
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#else
    return false;
#endif
}

// A kernel that has found the counter unreliable uses another clock source. A container may hide
// the file. Then only CPUID decides.
bool kernel_trusts_counter() {
    const Uncancelled uncancelled;
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;

    if (!(file >> name)) return true;
    return name == "tsc" || name == "kvm-clock" || name == "hyperv_clocksource_tsc_page";
}

}  // namespace

bool counter_is_usable() {
    static const bool is_usable = counter_is_invariant() && kernel_trusts_counter();

    return is_usable;
}

uint64_t MachineSource::realtime_ns() {
    return kmes_clock_realtime_ns();
}

}  // namespace kmes
