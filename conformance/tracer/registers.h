// SPDX-License-Identifier: MIT
//
// The registers of a stopped thread, as system calls use them. Knows no stops.

#ifndef CONFORMANCE_TRACER_REGISTERS_H_
#define CONFORMANCE_TRACER_REGISTERS_H_

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>

namespace kmes::conformance::tracing {

// The length of `syscall`. At the entry of a call, rip has passed it.
inline constexpr uint64_t kSyscallInstructionBytes = 2;

// Returns nothing if the registers cannot be read.
std::optional<user_regs_struct> read_registers(pid_t tid);
bool write_registers(pid_t tid, const user_regs_struct& registers);
// Takes the low half of the register, as the kernel does.
long call_number_of(const user_regs_struct& registers);
void arguments_of(const user_regs_struct& registers, uint64_t (&arguments)[6]);
void set_arguments(user_regs_struct& registers, const uint64_t (&arguments)[6]);
// The address of the thread's area for restartable sequences (rseq); 0: none is known.
uint64_t rseq_area_of(pid_t tid);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_REGISTERS_H_
