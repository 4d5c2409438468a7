// SPDX-License-Identifier: MIT
//
// One x86-64 instruction: its text, and which memory it touches with given registers. Knows no
// buffers and no ptrace but the register structure.

#ifndef CONFORMANCE_TRACER_DECODE_H_
#define CONFORMANCE_TRACER_DECODE_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kmes::conformance::tracing {

struct MemoryOperand {
    bool address_known =
        true;  // false for gathers and scatters, whose addresses stand in a vector register
    uint64_t address = 0;
    uint32_t size_bytes = 0;
    bool is_read = false;
    bool is_write = false;
};

struct DecodedInstruction {
    bool valid = false;
    uint32_t length_bytes = 0;
    // Orders an earlier store before a later load (E1): mfence, a locked operation, xchg with
    // memory, a serialising instruction. sfence, lfence and everything else do not.
    bool is_full_barrier = false;
    bool is_system_call = false;
    std::string text;
    std::vector<MemoryOperand> operands;
};

// `code` holds the bytes at registers.rip, as many as could be read (15 are enough for any
// instruction). Of a repeated string operation the operands of one repetition are given: that is
// what one step executes.
DecodedInstruction decode_instruction(const uint8_t* code, size_t code_bytes,
                                      const user_regs_struct& registers);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_DECODE_H_
