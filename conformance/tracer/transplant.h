// SPDX-License-Identifier: MIT
//
// Executes instructions of the testee in the runner itself, with the testee's registers and flags.
// The memory operand is at an address of the runner's choice. So the processor itself defines their
// effect on registers, flags and memory, and their atomicity. Works for instructions that touch
// only general registers, flags and one memory operand. Knows no processes.

#ifndef CONFORMANCE_TRACER_TRANSPLANT_H_
#define CONFORMANCE_TRACER_TRANSPLANT_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/tracer/decode.h"

namespace kmes::conformance::tracing {

// The flags that arithmetic sets, and the direction of string operations.
inline constexpr uint64_t kArithmeticFlags = 0x8d5;
inline constexpr uint64_t kDirectionFlag = 0x400;

// Loads the general registers (except rsp) and `eflags` of `registers`, executes the instruction
// with its memory operand at `memory`, and stores them back. `rip` is ignored. A string operation
// has its operands at rsi and rdi, and ignores `memory`. All touched bytes must be the runner's
// own, accessible, and of no object that the compiler could keep in a register.
using Routine = void (*)(user_regs_struct* registers, const void* memory);

// The executable memory with these routines.
class RoutinePages {
  public:
    RoutinePages() = default;
    ~RoutinePages();
    RoutinePages(const RoutinePages&) = delete;
    RoutinePages& operator=(const RoutinePages&) = delete;

    // Returns null if the instruction cannot be executed this way, or if there is no executable
    // memory. The same instruction gets the same routine.
    Routine routine_for(const Instruction& instruction);

  private:
    struct Entry {
        std::vector<uint8_t> instruction;
        Routine routine = nullptr;
    };
    Routine place(const std::vector<uint8_t>& code);

    std::vector<uint8_t*> pages_;
    size_t used_bytes_ = 0;  // of the last page
    std::vector<Entry> entries_;
};

// Kept from one testee to the next. An exploration starts the same program thousands of times, and
// each change of executable memory interrupts the processors of all threads.
RoutinePages& routines_of_this_thread();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TRANSPLANT_H_
