// SPDX-License-Identifier: MIT
//
// See registers.h.

#include "conformance/tracer/registers.h"

#include <sys/ptrace.h>

#include <algorithm>
#include <iterator>

namespace kmes::conformance::tracing {

std::optional<user_regs_struct> read_registers(pid_t tid) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, tid, 0, &registers) != 0) return std::nullopt;
    return registers;
}

bool write_registers(pid_t tid, const user_regs_struct& registers) {
    return ptrace(PTRACE_SETREGS, tid, 0, &registers) == 0;
}

long call_number_of(const user_regs_struct& registers) {
    return static_cast<int32_t>(registers.orig_rax);
}

void arguments_of(const user_regs_struct& r, uint64_t (&arguments)[6]) {
    const uint64_t values[6] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
    std::copy(std::begin(values), std::end(values), std::begin(arguments));
}

void set_arguments(user_regs_struct& r, const uint64_t (&arguments)[6]) {
    r.rdi = arguments[0];
    r.rsi = arguments[1];
    r.rdx = arguments[2];
    r.r10 = arguments[3];
    r.r8 = arguments[4];
    r.r9 = arguments[5];
}

uint64_t rseq_area_of(pid_t tid) {
    __ptrace_rseq_configuration area{};
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof area, &area) < 0) return 0;
    return area.rseq_abi_pointer;
}

}  // namespace kmes::conformance::tracing
