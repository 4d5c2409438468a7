// SPDX-License-Identifier: MIT
//
// One x86-64 instruction: its text, its effect on registers, and the memory that it touches. An
// Instruction keeps what follows from the bytes alone, so each place is decoded once. Addresses
// follow from it and the registers. Knows no buffers, and of ptrace only the register structure.

#ifndef CONFORMANCE_TRACER_DECODE_H_
#define CONFORMANCE_TRACER_DECODE_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kmes::conformance::tracing {

inline constexpr size_t kLongestInstruction = 15;

// General registers by their number in the encoding: rax 0, rcx 1, ..., r15 15.
inline constexpr int kNoRegister = -1;
inline constexpr int kRcx = 1;
inline constexpr int kRsp = 4;
inline constexpr int kRsi = 6;
inline constexpr int kRdi = 7;
inline constexpr int kGeneralRegisters = 16;
inline constexpr int kRip = 16;

// The offset of a general register in ptrace's structure.
size_t register_offset_bytes(int number);
unsigned long long& register_of(user_regs_struct& registers, int number);
unsigned long long register_of(const user_regs_struct& registers, int number);

// The elements of a gather or scatter: a vector register holds their indexes.
struct GatherForm {
    int index_vector = 0;  // number of the vector register
    uint32_t index_bytes = 4;
    uint32_t element_bytes = 4;
    uint32_t elements = 0;
    bool mask_is_opmask = false;  // k register; otherwise the sign bits of a vector's elements
    int mask = 0;                 // its number
};

// A memory operand as the instruction names it.
struct AddressForm {
    bool is_computable = true;  // false: this structure cannot describe its address (xlat)
    int base = kNoRegister;     // or kRip
    int index = kNoRegister;
    uint32_t scale = 1;
    int64_t displacement = 0;
    bool is_32_bits = false;
    enum class Segment { kFlat, kFs, kGs } segment = Segment::kFlat;
    uint32_t size_bytes = 0;  // of one element in a gather
    bool is_read = false;
    bool is_write = false;
    // For bt and its relatives with a register: the register counts bits from the operand on, also
    // beyond it.
    int bit_register = kNoRegister;
    bool is_gather = false;
    GatherForm gather;
};

// movs, cmps, stos, lods, scas.
struct StringForm {
    enum class Kind { kNone, kMovs, kCmps, kStos, kLods, kScas } kind = Kind::kNone;
    uint32_t element_bytes = 1;
    bool repeats = false;
    bool stops_at_difference = false;  // repe cmps, repe scas
    bool stops_at_equality = false;    // repne
    bool has_source() const {
        return kind == Kind::kMovs || kind == Kind::kCmps || kind == Kind::kLods;
    }
    bool has_destination() const { return kind != Kind::kLods; }
    bool writes() const { return kind == Kind::kMovs || kind == Kind::kStos; }
    bool compares() const { return kind == Kind::kCmps || kind == Kind::kScas; }
};

struct Instruction {
    bool is_valid = false;
    uint32_t length_bytes = 0;
    uint8_t bytes[kLongestInstruction] = {};
    // Orders an earlier store before a later load (E1): mfence, a locked operation, xchg with
    // memory, a serialising instruction. sfence, lfence and everything else do not.
    bool is_full_barrier = false;
    bool is_system_call = false;
    bool never_faults = false;  // names memory that it does not touch, or only as a hint
    bool is_locked = false;     // also xchg with memory
    bool pushes_flags = false;  // pushf: a single step of it leaves the trap flag on the stack
    bool takes_flags = false;   // popf, iret: the kernel takes the trap flag for the testee's own
    StringForm string;
    std::vector<AddressForm> memory;
    // Bits of general registers: read for another purpose than an address; written in 32 or 64
    // bits.
    uint32_t values_read = 0;
    uint32_t written_whole = 0;
    // For each register, the bits that a narrower write changes.
    uint64_t written_bits[kGeneralRegisters] = {};
};

// `code` holds the bytes at the instruction's address, as many as could be read.
Instruction decode_instruction(const uint8_t* code, size_t code_bytes);

// Intel syntax for an instruction at `address`; empty if the bytes are no instruction.
std::string text_of(const Instruction& instruction, uint64_t address);

// The address of an operand. For a string operation: of the next element. For a gather: of an
// element with index 0.
uint64_t address_of(const Instruction& instruction, const AddressForm& form,
                    const user_regs_struct& registers);
// The part of the address that comes from a bit number; 0 except for bt and its relatives.
int64_t bit_offset_bytes(const AddressForm& form, const user_regs_struct& registers);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_DECODE_H_
