// SPDX-License-Identifier: MIT
//
// Instructions of the testee executed by the runner itself: with the testee's registers and flags,
// but with the memory operand at an address of the runner's choice. So whatever the instruction
// does to registers, flags and memory is what the processor does, atomically where it is atomic.
// Only instructions that touch general registers, flags and one memory operand. Knows no processes.

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

// Loads the general registers (all but rsp) and `eflags` of `registers`, executes the instruction
// with its memory operand at `memory`, and stores them back; `rip` is ignored. A string operation
// has its operands where rsi and rdi point, and ignores `memory`. Every byte that is touched must
// be the runner's own, accessible, and of no object that the compiler could have in a register.
using Routine = void (*)(user_regs_struct* registers, const void* memory);

// The memory that holds such routines.
class RoutinePages {
  public:
    RoutinePages() = default;
    ~RoutinePages();
    RoutinePages(const RoutinePages&) = delete;
    RoutinePages& operator=(const RoutinePages&) = delete;

    // Null for an instruction that cannot be executed so, and where the system gives no memory that
    // can be executed. The same instruction gets the same routine.
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

// Kept from one testee to the next: an exploration starts thousands of the same program, and each
// change of such memory has to be told to the processors of all its threads.
RoutinePages& routines_of_this_thread();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TRANSPLANT_H_
