// SPDX-License-Identifier: MIT
//
// Decoding by Zydis. Knows no buffers and no ptrace but the register structure.

#include "conformance/tracer/decode.h"

#include <Zydis/Zydis.h>

#include <iterator>
#include <optional>

namespace kmes::conformance::tracing {
namespace {

std::optional<uint64_t> general_register(ZydisRegister name, const user_regs_struct& registers) {
    if (name == ZYDIS_REGISTER_NONE) return 0;
    // In the order of the hardware encoding, which Zydis gives for each name.
    const unsigned long long values[] = {
        registers.rax, registers.rcx, registers.rdx, registers.rbx, registers.rsp, registers.rbp,
        registers.rsi, registers.rdi, registers.r8,  registers.r9,  registers.r10, registers.r11,
        registers.r12, registers.r13, registers.r14, registers.r15};
    const ZydisRegisterClass kind = ZydisRegisterGetClass(name);
    const ZyanI8 index = ZydisRegisterGetId(name);
    if (index < 0 || static_cast<size_t>(index) >= std::size(values)) return std::nullopt;
    if (kind == ZYDIS_REGCLASS_GPR64) return values[index];
    if (kind == ZYDIS_REGCLASS_GPR32) return static_cast<uint32_t>(values[index]);
    return std::nullopt;
}

MemoryOperand memory_operand(const ZydisDecodedInstruction& instruction,
                             const ZydisDecodedOperand& operand,
                             const user_regs_struct& registers) {
    MemoryOperand result;
    result.size_bytes = operand.size / 8;
    result.is_read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    result.is_write = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    uint64_t address = 0;
    if (operand.mem.base == ZYDIS_REGISTER_RIP) {
        address = registers.rip + instruction.length;
    } else if (const auto base = general_register(operand.mem.base, registers)) {
        address = *base;
    } else {
        result.address_known = false;
    }
    if (const auto index = general_register(operand.mem.index, registers)) {
        address += *index * operand.mem.scale;
    } else {
        result.address_known = false;
    }
    if (operand.mem.disp.has_displacement) address += static_cast<uint64_t>(operand.mem.disp.value);
    if (instruction.address_width == 32) address = static_cast<uint32_t>(address);
    if (operand.mem.segment == ZYDIS_REGISTER_FS) address += registers.fs_base;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) address += registers.gs_base;
    result.address = address;
    return result;
}

bool is_full_barrier(const ZydisDecodedInstruction& instruction,
                     const ZydisDecodedOperand* operands) {
    switch (instruction.mnemonic) {
        case ZYDIS_MNEMONIC_MFENCE:
        case ZYDIS_MNEMONIC_CPUID:
        case ZYDIS_MNEMONIC_SERIALIZE:
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_IRETQ:
            return true;
        default:
            break;
    }
    if ((instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) return true;
    if (instruction.mnemonic != ZYDIS_MNEMONIC_XCHG) return false;
    for (size_t i = 0; i < instruction.operand_count_visible; ++i) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return true;  // locked without a prefix
    }
    return false;
}

}  // namespace

DecodedInstruction decode_instruction(const uint8_t* code, size_t code_bytes,
                                      const user_regs_struct& registers) {
    DecodedInstruction result;
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, code_bytes, &instruction, operands))) {
        return result;
    }
    result.valid = true;
    result.length_bytes = instruction.length;
    result.is_full_barrier = is_full_barrier(instruction, operands);
    result.is_system_call = instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
                            instruction.mnemonic == ZYDIS_MNEMONIC_SYSENTER ||
                            instruction.mnemonic == ZYDIS_MNEMONIC_INT;
    ZydisFormatter formatter;
    char text[256] = {};
    if (ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) &&
        ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                                     instruction.operand_count_visible, text,
                                                     sizeof text, registers.rip, nullptr))) {
        result.text = text;
    }
    for (size_t i = 0; i < instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = operands[i];
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN)
            continue;
        result.operands.push_back(memory_operand(instruction, operand, registers));
    }
    return result;
}

}  // namespace kmes::conformance::tracing
