// SPDX-License-Identifier: MIT
//
// Builds a routine: the re-encoded instruction between code that loads and stores the registers.
// Knows no processes.

#include "conformance/tracer/transplant.h"

#include <Zydis/Zydis.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "conformance/tracer/zydis_decode.h"

namespace kmes::conformance::tracing {
namespace {

constexpr size_t kPageBytes = 4096;
// Space before each routine: a sanitizer of the runner reads there for a mark when a function is
// called.
constexpr size_t kLeadBytes = 16;

// Instructions with only general registers, flags and one memory operand, which can fault only by
// that operand's address.
constexpr ZydisMnemonic kTransplantable[] = {
    ZYDIS_MNEMONIC_MOV,     ZYDIS_MNEMONIC_MOVZX,     ZYDIS_MNEMONIC_MOVSX,  ZYDIS_MNEMONIC_MOVSXD,
    ZYDIS_MNEMONIC_MOVBE,   ZYDIS_MNEMONIC_MOVNTI,    ZYDIS_MNEMONIC_XCHG,   ZYDIS_MNEMONIC_XADD,
    ZYDIS_MNEMONIC_CMPXCHG, ZYDIS_MNEMONIC_CMPXCHG8B, ZYDIS_MNEMONIC_CMP,    ZYDIS_MNEMONIC_TEST,
    ZYDIS_MNEMONIC_ADD,     ZYDIS_MNEMONIC_ADC,       ZYDIS_MNEMONIC_SUB,    ZYDIS_MNEMONIC_SBB,
    ZYDIS_MNEMONIC_AND,     ZYDIS_MNEMONIC_OR,        ZYDIS_MNEMONIC_XOR,    ZYDIS_MNEMONIC_INC,
    ZYDIS_MNEMONIC_DEC,     ZYDIS_MNEMONIC_NEG,       ZYDIS_MNEMONIC_NOT,    ZYDIS_MNEMONIC_BT,
    ZYDIS_MNEMONIC_BTS,     ZYDIS_MNEMONIC_BTR,       ZYDIS_MNEMONIC_BTC,    ZYDIS_MNEMONIC_IMUL,
    ZYDIS_MNEMONIC_MUL,     ZYDIS_MNEMONIC_SHL,       ZYDIS_MNEMONIC_SHR,    ZYDIS_MNEMONIC_SAR,
    ZYDIS_MNEMONIC_ROL,     ZYDIS_MNEMONIC_ROR,       ZYDIS_MNEMONIC_BSF,    ZYDIS_MNEMONIC_BSR,
    ZYDIS_MNEMONIC_POPCNT,  ZYDIS_MNEMONIC_LZCNT,     ZYDIS_MNEMONIC_TZCNT,  ZYDIS_MNEMONIC_CRC32,
    ZYDIS_MNEMONIC_CMOVB,   ZYDIS_MNEMONIC_CMOVBE,    ZYDIS_MNEMONIC_CMOVL,  ZYDIS_MNEMONIC_CMOVLE,
    ZYDIS_MNEMONIC_CMOVNB,  ZYDIS_MNEMONIC_CMOVNBE,   ZYDIS_MNEMONIC_CMOVNL, ZYDIS_MNEMONIC_CMOVNLE,
    ZYDIS_MNEMONIC_CMOVNO,  ZYDIS_MNEMONIC_CMOVNP,    ZYDIS_MNEMONIC_CMOVNS, ZYDIS_MNEMONIC_CMOVNZ,
    ZYDIS_MNEMONIC_CMOVO,   ZYDIS_MNEMONIC_CMOVP,     ZYDIS_MNEMONIC_CMOVS,  ZYDIS_MNEMONIC_CMOVZ,
    ZYDIS_MNEMONIC_SETB,    ZYDIS_MNEMONIC_SETBE,     ZYDIS_MNEMONIC_SETL,   ZYDIS_MNEMONIC_SETLE,
    ZYDIS_MNEMONIC_SETNB,   ZYDIS_MNEMONIC_SETNBE,    ZYDIS_MNEMONIC_SETNL,  ZYDIS_MNEMONIC_SETNLE,
    ZYDIS_MNEMONIC_SETNO,   ZYDIS_MNEMONIC_SETNP,     ZYDIS_MNEMONIC_SETNS,  ZYDIS_MNEMONIC_SETNZ,
    ZYDIS_MNEMONIC_SETO,    ZYDIS_MNEMONIC_SETP,      ZYDIS_MNEMONIC_SETS,   ZYDIS_MNEMONIC_SETZ};

bool is_transplantable(ZydisMnemonic mnemonic) {
    return std::find(std::begin(kTransplantable), std::end(kTransplantable), mnemonic) !=
           std::end(kTransplantable);
}

bool touches_only_general_registers(const Decoded& decoded) {
    for (size_t i = 0; i < decoded.instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded.operands[i];
        if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        switch (ZydisRegisterGetClass(operand.reg.value)) {
            case ZYDIS_REGCLASS_GPR8:
            case ZYDIS_REGCLASS_GPR16:
            case ZYDIS_REGCLASS_GPR32:
            case ZYDIS_REGCLASS_GPR64:
            case ZYDIS_REGCLASS_FLAGS:
                break;
            default:
                return false;
        }
    }
    return true;
}

struct Recoded {
    std::vector<uint8_t> code;
    int address_register = kNoRegister;  // none for a string operation
};

// Encodes the same instruction with [address_register] as its memory operand. Decoded again, it
// must not differ from the original in any other way.
std::optional<Recoded> recode(const Instruction& instruction) {
    Decoded from;
    if (!decode(instruction.bytes, instruction.length_bytes, from)) return std::nullopt;
    if (!is_transplantable(from.instruction.mnemonic) || !touches_only_general_registers(from) ||
        instruction.memory.size() != 1 || instruction.memory[0].is_gather)
        return std::nullopt;
    // Registers without a REX prefix: with one, ah, bh, ch and dh could not be named.
    static constexpr int kCandidates[] = {3, 6, 7, 1, 2, 0};
    static constexpr ZydisRegister kNames[] = {
        ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RBX,
        ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI};
    uint32_t used = instruction.values_read | instruction.written_whole;
    for (int i = 0; i < kGeneralRegisters; ++i) {
        if (instruction.written_bits[i] != 0) used |= uint32_t{1} << i;
    }
    if ((used >> kRsp & 1) != 0) return std::nullopt;
    Recoded result;
    for (const int candidate : kCandidates) {
        if ((used >> candidate & 1) != 0) continue;
        result.address_register = candidate;
        break;
    }
    if (result.address_register == kNoRegister) return std::nullopt;
    ZydisEncoderRequest request;
    if (!ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(
            &from.instruction, from.operands, from.instruction.operand_count_visible, &request)))
        return std::nullopt;
    request.prefixes &= ZYDIS_ATTRIB_HAS_LOCK;
    request.address_size_hint = ZYDIS_ADDRESS_SIZE_HINT_NONE;
    for (size_t i = 0; i < request.operand_count; ++i) {
        if (request.operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        auto& memory = request.operands[i].mem;
        memory.base = kNames[result.address_register];
        memory.index = ZYDIS_REGISTER_NONE;
        memory.scale = 0;
        memory.displacement = 0;
    }
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZyanUSize length = sizeof code;
    Decoded to;
    if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, code, &length)) ||
        !decode(code, length, to) || to.instruction.mnemonic != from.instruction.mnemonic ||
        to.instruction.operand_count_visible != from.instruction.operand_count_visible ||
        ((to.instruction.attributes ^ from.instruction.attributes) & ZYDIS_ATTRIB_HAS_LOCK) != 0)
        return std::nullopt;
    for (size_t i = 0; i < to.instruction.operand_count_visible; ++i) {
        const ZydisDecodedOperand& a = from.operands[i];
        const ZydisDecodedOperand& b = to.operands[i];
        if (a.type != b.type || a.size != b.size) return std::nullopt;
        if (a.type == ZYDIS_OPERAND_TYPE_REGISTER && a.reg.value != b.reg.value)
            return std::nullopt;
        if (a.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && a.imm.value.u != b.imm.value.u)
            return std::nullopt;
    }
    result.code.assign(code, code + length);
    return result;
}

// Encodes a string operation again, without segment or address prefixes.
std::optional<Recoded> recode_string(const Instruction& instruction) {
    Decoded from;
    if (!decode(instruction.bytes, instruction.length_bytes, from)) return std::nullopt;
    const StringForm& form = instruction.string;
    Recoded result;
    if (form.stops_at_equality) {
        result.code.push_back(0xf2);
    } else if (form.repeats) {
        result.code.push_back(0xf3);
    }
    if (form.element_bytes == 2) result.code.push_back(0x66);
    if (form.element_bytes == 8) result.code.push_back(0x48);
    result.code.push_back(from.instruction.opcode);
    return result;
}

class Assembler {
  public:
    void bytes(std::initializer_list<uint8_t> list) { code_.insert(code_.end(), list); }
    void append(const std::vector<uint8_t>& more) {
        code_.insert(code_.end(), more.begin(), more.end());
    }
    void push(int number) { push_or_pop(0x50, number); }
    void pop(int number) { push_or_pop(0x58, number); }
    // Pushes a field of the structure that rdi points to.
    void push_field(size_t offset) {
        bytes({0xff, 0xb7});
        number32(offset);
    }
    void pop_field(size_t offset) {
        bytes({0x8f, 0x87});
        number32(offset);
    }
    void number32(size_t value) {
        for (int shift = 0; shift < 32; shift += 8)
            code_.push_back(static_cast<uint8_t>(value >> shift));
    }
    const std::vector<uint8_t>& code() const { return code_; }

  private:
    void push_or_pop(int opcode, int number) {
        if (number >= 8) code_.push_back(0x41);
        code_.push_back(static_cast<uint8_t>(opcode + (number & 7)));
    }
    std::vector<uint8_t> code_;
};

std::vector<uint8_t> assemble(const Recoded& recoded) {
    static constexpr int kSavedForTheCaller[] = {3, 5, 12, 13, 14, 15};
    constexpr size_t kFlags = offsetof(user_regs_struct, eflags);
    std::vector<int> carried;
    for (int i = 0; i < kGeneralRegisters; ++i) {
        if (i != kRsp && i != recoded.address_register) carried.push_back(i);
    }
    Assembler out;
    for (const int number : kSavedForTheCaller) out.push(number);
    out.push(kRdi);
    for (const int number : carried) out.push_field(register_offset_bytes(number));
    out.push_field(kFlags);
    if (recoded.address_register != kNoRegister && recoded.address_register != kRsi)
        out.bytes({0x48, 0x89, static_cast<uint8_t>(0xf0 | recoded.address_register)});  // = rsi
    out.bytes({0x9d});                                                                   // popfq
    std::for_each(carried.rbegin(), carried.rend(), [&out](int number) { out.pop(number); });
    out.append(recoded.code);
    out.bytes({0x9c, 0xfc});  // pushfq, cld
    for (const int number : carried) out.push(number);
    out.bytes({0x48, 0x8b, 0xbc, 0x24});  // mov rdi, [rsp + ...]: above everything that was pushed
    out.number32(8 * (carried.size() + 1));
    std::for_each(carried.rbegin(), carried.rend(),
                  [&out](int number) { out.pop_field(register_offset_bytes(number)); });
    out.pop_field(kFlags);
    out.pop(kRdi);
    std::for_each(std::rbegin(kSavedForTheCaller), std::rend(kSavedForTheCaller),
                  [&out](int number) { out.pop(number); });
    out.bytes({0xc3});  // ret
    return out.code();
}

}  // namespace

RoutinePages& routines_of_this_thread() {
    thread_local RoutinePages pages;
    return pages;
}

RoutinePages::~RoutinePages() {
    for (uint8_t* page : pages_) munmap(page, kPageBytes);
}

Routine RoutinePages::routine_for(const Instruction& instruction) {
    if (!instruction.is_valid) return nullptr;
    const std::vector<uint8_t> bytes(instruction.bytes,
                                     instruction.bytes + instruction.length_bytes);
    for (const Entry& entry : entries_) {
        if (entry.instruction == bytes) return entry.routine;
    }
    const auto recoded = instruction.string.kind != StringForm::Kind::kNone
                             ? recode_string(instruction)
                             : recode(instruction);
    const Routine routine = recoded ? place(assemble(*recoded)) : nullptr;
    entries_.push_back({bytes, routine});
    return routine;
}

Routine RoutinePages::place(const std::vector<uint8_t>& code) {
    if (pages_.empty() || used_bytes_ + kLeadBytes + code.size() > kPageBytes) {
        void* page =
            mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return nullptr;
        pages_.push_back(static_cast<uint8_t*>(page));
        used_bytes_ = 0;
    }
    uint8_t* page = pages_.back();
    // The page is never writable and executable at once.
    if (mprotect(page, kPageBytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
    uint8_t* at = page + used_bytes_ + kLeadBytes;
    memcpy(at, code.data(), code.size());
    if (mprotect(page, kPageBytes, PROT_READ | PROT_EXEC) != 0) return nullptr;
    used_bytes_ = (used_bytes_ + kLeadBytes + code.size() + 15) & ~size_t{15};
    return reinterpret_cast<Routine>(at);
}

}  // namespace kmes::conformance::tracing
