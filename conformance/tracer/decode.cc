// SPDX-License-Identifier: MIT
//
// Decoding by Zydis. Knows no buffers and no ptrace but the register structure.

#include "conformance/tracer/decode.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "conformance/tracer/zydis_decode.h"

namespace kmes::conformance::tracing {
namespace {

constexpr size_t kOffsets[kGeneralRegisters] = {
    offsetof(user_regs_struct, rax), offsetof(user_regs_struct, rcx),
    offsetof(user_regs_struct, rdx), offsetof(user_regs_struct, rbx),
    offsetof(user_regs_struct, rsp), offsetof(user_regs_struct, rbp),
    offsetof(user_regs_struct, rsi), offsetof(user_regs_struct, rdi),
    offsetof(user_regs_struct, r8),  offsetof(user_regs_struct, r9),
    offsetof(user_regs_struct, r10), offsetof(user_regs_struct, r11),
    offsetof(user_regs_struct, r12), offsetof(user_regs_struct, r13),
    offsetof(user_regs_struct, r14), offsetof(user_regs_struct, r15)};

bool is_general(ZydisRegister name) {
    switch (ZydisRegisterGetClass(name)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64:
            return true;
        default:
            return false;
    }
}

// The number of the whole register that contains `name`.
int number_of(ZydisRegister name) {
    if (name == ZYDIS_REGISTER_RIP || name == ZYDIS_REGISTER_EIP) return kRip;
    if (!is_general(name)) return kNoRegister;
    return ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name));
}

bool is_high_byte(ZydisRegister name) {
    return name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH;
}

// Whether the register can be part of an address: a whole register, or the lower half of one.
bool is_address_register(ZydisRegister name) {
    if (name == ZYDIS_REGISTER_NONE || number_of(name) == kRip) return true;
    const ZydisRegisterClass kind = ZydisRegisterGetClass(name);
    return kind == ZYDIS_REGCLASS_GPR64 || kind == ZYDIS_REGCLASS_GPR32;
}

struct GatherName {
    ZydisMnemonic mnemonic;
    uint32_t index_bytes;
    uint32_t element_bytes;
};

constexpr GatherName kGathers[] = {
    {ZYDIS_MNEMONIC_VGATHERDPS, 4, 4},  {ZYDIS_MNEMONIC_VGATHERDPD, 4, 8},
    {ZYDIS_MNEMONIC_VGATHERQPS, 8, 4},  {ZYDIS_MNEMONIC_VGATHERQPD, 8, 8},
    {ZYDIS_MNEMONIC_VPGATHERDD, 4, 4},  {ZYDIS_MNEMONIC_VPGATHERDQ, 4, 8},
    {ZYDIS_MNEMONIC_VPGATHERQD, 8, 4},  {ZYDIS_MNEMONIC_VPGATHERQQ, 8, 8},
    {ZYDIS_MNEMONIC_VSCATTERDPS, 4, 4}, {ZYDIS_MNEMONIC_VSCATTERDPD, 4, 8},
    {ZYDIS_MNEMONIC_VSCATTERQPS, 8, 4}, {ZYDIS_MNEMONIC_VSCATTERQPD, 8, 8},
    {ZYDIS_MNEMONIC_VPSCATTERDD, 4, 4}, {ZYDIS_MNEMONIC_VPSCATTERDQ, 4, 8},
    {ZYDIS_MNEMONIC_VPSCATTERQD, 8, 4}, {ZYDIS_MNEMONIC_VPSCATTERQQ, 8, 8},
};

// Returns false for an unknown kind of gather. (Prefetching gathers never fault.)
bool describe_gather(const Decoded& decoded, const ZydisDecodedOperand& operand,
                     AddressForm& form) {
    const auto* name =
        std::find_if(std::begin(kGathers), std::end(kGathers), [&](const GatherName& candidate) {
            return candidate.mnemonic == decoded.instruction.mnemonic;
        });
    if (name == std::end(kGathers)) return false;
    GatherForm& gather = form.gather;
    gather.index_vector = ZydisRegisterGetId(operand.mem.index);
    gather.index_bytes = name->index_bytes;
    gather.element_bytes = name->element_bytes;
    form.size_bytes = name->element_bytes;
    const uint32_t index_register_bytes =
        ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, operand.mem.index) / 8u;
    uint32_t data_register_bytes = 0;
    bool has_mask = false;
    for (size_t i = 0; i < decoded.instruction.operand_count; ++i) {
        const ZydisDecodedOperand& other = decoded.operands[i];
        if (other.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        const ZydisRegisterClass kind = ZydisRegisterGetClass(other.reg.value);
        if (kind == ZYDIS_REGCLASS_MASK) {
            gather.mask_is_opmask = has_mask = true;
            gather.mask = ZydisRegisterGetId(other.reg.value);
        } else if (data_register_bytes == 0) {
            data_register_bytes =
                ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, other.reg.value) / 8u;
        } else if (!has_mask) {
            has_mask = true;
            gather.mask = ZydisRegisterGetId(other.reg.value);
        }
    }
    gather.elements = std::min(index_register_bytes / name->index_bytes,
                               data_register_bytes / name->element_bytes);
    return has_mask && gather.elements != 0;
}

AddressForm describe_memory(const Decoded& decoded, const ZydisDecodedOperand& operand) {
    AddressForm form;
    form.size_bytes = operand.size / 8u;
    form.is_read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    form.is_write = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    form.is_32_bits = decoded.instruction.address_width == 32;
    form.base = number_of(operand.mem.base);
    form.scale = std::max<uint32_t>(operand.mem.scale, 1);
    if (operand.mem.disp.has_displacement) form.displacement = operand.mem.disp.value;
    if (operand.mem.segment == ZYDIS_REGISTER_FS) form.segment = AddressForm::Segment::kFs;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) form.segment = AddressForm::Segment::kGs;
    // (xlat adds al.)
    form.is_computable = is_address_register(operand.mem.base) &&
                         decoded.instruction.mnemonic != ZYDIS_MNEMONIC_XLAT;
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        form.is_gather = true;
        form.is_computable = form.is_computable && describe_gather(decoded, operand, form);
    } else {
        form.index = number_of(operand.mem.index);
        form.is_computable = form.is_computable && is_address_register(operand.mem.index);
    }
    switch (decoded.instruction.mnemonic) {
        case ZYDIS_MNEMONIC_BT:
        case ZYDIS_MNEMONIC_BTS:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTC:
            if (decoded.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
                form.bit_register = number_of(decoded.operands[1].reg.value);
            break;
        default:
            break;
    }
    return form;
}

bool takes_flags(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_POPF:
        case ZYDIS_MNEMONIC_POPFD:
        case ZYDIS_MNEMONIC_POPFQ:
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_IRETQ:
            return true;
        default:
            return false;
    }
}

bool is_full_barrier(const Decoded& decoded) {
    switch (decoded.instruction.mnemonic) {
        case ZYDIS_MNEMONIC_MFENCE:
        case ZYDIS_MNEMONIC_CPUID:
        case ZYDIS_MNEMONIC_SERIALIZE:
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_IRETQ:
            return true;
        default:
            return false;
    }
}

struct StringName {
    ZydisMnemonic mnemonic;
    StringForm::Kind kind;
    uint32_t element_bytes;
};

constexpr StringName kStrings[] = {
    {ZYDIS_MNEMONIC_MOVSB, StringForm::Kind::kMovs, 1},
    {ZYDIS_MNEMONIC_MOVSW, StringForm::Kind::kMovs, 2},
    {ZYDIS_MNEMONIC_MOVSD, StringForm::Kind::kMovs, 4},
    {ZYDIS_MNEMONIC_MOVSQ, StringForm::Kind::kMovs, 8},
    {ZYDIS_MNEMONIC_CMPSB, StringForm::Kind::kCmps, 1},
    {ZYDIS_MNEMONIC_CMPSW, StringForm::Kind::kCmps, 2},
    {ZYDIS_MNEMONIC_CMPSD, StringForm::Kind::kCmps, 4},
    {ZYDIS_MNEMONIC_CMPSQ, StringForm::Kind::kCmps, 8},
    {ZYDIS_MNEMONIC_STOSB, StringForm::Kind::kStos, 1},
    {ZYDIS_MNEMONIC_STOSW, StringForm::Kind::kStos, 2},
    {ZYDIS_MNEMONIC_STOSD, StringForm::Kind::kStos, 4},
    {ZYDIS_MNEMONIC_STOSQ, StringForm::Kind::kStos, 8},
    {ZYDIS_MNEMONIC_LODSB, StringForm::Kind::kLods, 1},
    {ZYDIS_MNEMONIC_LODSW, StringForm::Kind::kLods, 2},
    {ZYDIS_MNEMONIC_LODSD, StringForm::Kind::kLods, 4},
    {ZYDIS_MNEMONIC_LODSQ, StringForm::Kind::kLods, 8},
    {ZYDIS_MNEMONIC_SCASB, StringForm::Kind::kScas, 1},
    {ZYDIS_MNEMONIC_SCASW, StringForm::Kind::kScas, 2},
    {ZYDIS_MNEMONIC_SCASD, StringForm::Kind::kScas, 4},
    {ZYDIS_MNEMONIC_SCASQ, StringForm::Kind::kScas, 8},
};

StringForm describe_string(const Decoded& decoded) {
    StringForm form;
    // (movsd and cmpsd are also names of SSE instructions.)
    if (decoded.instruction.meta.category != ZYDIS_CATEGORY_STRINGOP) return form;
    for (const StringName& name : kStrings) {
        if (name.mnemonic != decoded.instruction.mnemonic) continue;
        form.kind = name.kind;
        form.element_bytes = name.element_bytes;
    }
    const ZydisInstructionAttributes attributes = decoded.instruction.attributes;
    form.stops_at_difference = (attributes & ZYDIS_ATTRIB_HAS_REPE) != 0;
    form.stops_at_equality = (attributes & ZYDIS_ATTRIB_HAS_REPNE) != 0;
    form.repeats = (attributes & ZYDIS_ATTRIB_HAS_REP) != 0 || form.stops_at_difference ||
                   form.stops_at_equality;
    return form;
}

void note_register(const ZydisDecodedOperand& operand, Instruction& result) {
    const int number = number_of(operand.reg.value);
    if (number < 0 || number >= kGeneralRegisters) return;
    const uint32_t bit = uint32_t{1} << number;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) result.values_read |= bit;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return;
    switch (ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value)) {
        case 8:
            result.written_bits[number] |= is_high_byte(operand.reg.value) ? 0xff00 : 0xff;
            break;
        case 16:
            result.written_bits[number] |= 0xffff;
            break;
        default:
            result.written_whole |= bit;
            break;
    }
}

}  // namespace

size_t register_offset_bytes(int number) {
    return kOffsets[number];
}

unsigned long long& register_of(user_regs_struct& registers, int number) {
    return *reinterpret_cast<unsigned long long*>(reinterpret_cast<char*>(&registers) +
                                                  kOffsets[number]);
}

unsigned long long register_of(const user_regs_struct& registers, int number) {
    return *reinterpret_cast<const unsigned long long*>(reinterpret_cast<const char*>(&registers) +
                                                        kOffsets[number]);
}

Instruction decode_instruction(const uint8_t* code, size_t code_bytes) {
    Instruction result;
    Decoded decoded;
    if (!decode(code, code_bytes, decoded)) return result;
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    result.is_valid = true;
    result.length_bytes = instruction.length;
    memcpy(result.bytes, code, instruction.length);
    result.is_system_call = instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
                            instruction.mnemonic == ZYDIS_MNEMONIC_SYSENTER ||
                            instruction.mnemonic == ZYDIS_MNEMONIC_INT;
    const ZydisInstructionCategory category = instruction.meta.category;
    result.never_faults = category == ZYDIS_CATEGORY_PREFETCH || category == ZYDIS_CATEGORY_NOP ||
                          category == ZYDIS_CATEGORY_WIDENOP || category == ZYDIS_CATEGORY_CLDEMOTE;
    result.string = describe_string(decoded);
    for (size_t i = 0; i < instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded.operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) note_register(operand, result);
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN)
            continue;
        result.memory.push_back(describe_memory(decoded, operand));
    }
    result.is_locked = (instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
                       (instruction.mnemonic == ZYDIS_MNEMONIC_XCHG && !result.memory.empty());
    result.is_full_barrier = result.is_locked || is_full_barrier(decoded);
    result.takes_flags = takes_flags(instruction.mnemonic);
    result.pushes_flags = instruction.mnemonic == ZYDIS_MNEMONIC_PUSHF ||
                          instruction.mnemonic == ZYDIS_MNEMONIC_PUSHFD ||
                          instruction.mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
    return result;
}

std::string text_of(const Instruction& instruction, uint64_t address) {
    Decoded decoded;
    ZydisFormatter formatter;
    char text[256] = {};
    if (!instruction.is_valid || !decode(instruction.bytes, instruction.length_bytes, decoded) ||
        !ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
            &formatter, &decoded.instruction, decoded.operands,
            decoded.instruction.operand_count_visible, text, sizeof text, address, nullptr))) {
        return "";
    }
    return text;
}

int64_t bit_offset_bytes(const AddressForm& form, const user_regs_struct& registers) {
    if (form.bit_register == kNoRegister) return 0;
    // A signed bit number, whose lowest bits select a bit of the operand.
    const uint64_t value = register_of(registers, form.bit_register);
    switch (form.size_bytes) {
        case 2:
            return (static_cast<int16_t>(value) >> 4) * int64_t{2};
        case 4:
            return (static_cast<int32_t>(value) >> 5) * int64_t{4};
        default:
            return (static_cast<int64_t>(value) >> 6) * int64_t{8};
    }
}

uint64_t address_of(const Instruction& instruction, const AddressForm& form,
                    const user_regs_struct& registers) {
    uint64_t address = static_cast<uint64_t>(form.displacement);
    if (form.base == kRip) {
        address += registers.rip + instruction.length_bytes;
    } else if (form.base != kNoRegister) {
        address += register_of(registers, form.base);
    }
    if (form.index != kNoRegister) address += register_of(registers, form.index) * form.scale;
    address += static_cast<uint64_t>(bit_offset_bytes(form, registers));
    if (form.is_32_bits) address = static_cast<uint32_t>(address);
    if (form.segment == AddressForm::Segment::kFs) address += registers.fs_base;
    if (form.segment == AddressForm::Segment::kGs) address += registers.gs_base;
    return address;
}

}  // namespace kmes::conformance::tracing
