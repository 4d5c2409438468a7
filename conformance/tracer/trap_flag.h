// SPDX-License-Identifier: MIT
//
// The trap flag that a single step sets, where instructions of the testee show it. Knows flags, and
// not why a thread is stepped.

#ifndef CONFORMANCE_TRACER_TRAP_FLAG_H_
#define CONFORMANCE_TRACER_TRAP_FLAG_H_

#include <sys/types.h>

#include "conformance/tracer/decode.h"

namespace kmes::conformance::tracing {

// Of one thread. Functions with a `tid` change that stopped thread.
class TrapFlag {
  public:
    // The thread is about to step this instruction.
    void note_step_of(const Instruction& instruction) {
        steps_pushf_ = instruction.pushes_flags;
        note_taken_flags(instruction);
    }
    // After a stepped popf, the flag of later steps remains visible.
    void note_taken_flags(const Instruction& instruction) { is_shown_ |= instruction.takes_flags; }

    // Call it after the trap of the step.
    void end_step(pid_t tid);
    // Call it after a step over pushf: the pushed flags have the trap flag of the step, and would
    // trap after a popf. If the testee has set the flag itself, it stays.
    void clear_pushed(pid_t tid) const;

    bool is_shown() const { return is_shown_; }
    // After a stepped popf, the kernel does not clear the trap flag that it sets for a step.
    void clear(pid_t tid);

  private:
    bool steps_pushf_ = false;
    bool is_shown_ = false;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TRAP_FLAG_H_
