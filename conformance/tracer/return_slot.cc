// SPDX-License-Identifier: MIT
//
// See return_slot.h.

#include "conformance/tracer/return_slot.h"

#include <Zydis/Zydis.h>

#include <deque>

#include "conformance/tracer/decode.h"
#include "conformance/tracer/zydis_decode.h"

namespace kmes::conformance::tracing {
namespace {

constexpr uint64_t kWordBytes = 8;
constexpr int64_t kLargestFrameBytes = int64_t{1} << 20;

bool decode_at(uint64_t address, const ReadCode& read, Decoded& decoded) {
    uint8_t code[kLongestInstruction];
    const size_t got = read(address, code, sizeof code);
    return got != 0 && decode(code, got, decoded);
}

// The target of a direct jump or call.
std::optional<uint64_t> direct_target(const Decoded& decoded, uint64_t address) {
    const ZydisDecodedOperand& operand = decoded.operands[0];
    if (operand.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand.imm.is_relative)
        return std::nullopt;
    return address + decoded.instruction.length + static_cast<uint64_t>(operand.imm.value.s);
}

// The state of a function's stack before an instruction. All distances are in bytes down from the
// return address.
struct StackState {
    std::optional<int64_t> rsp = 0;
    std::optional<int64_t> rbp;        // rbp points into the frame
    std::optional<int64_t> saved_rbp;  // place of the caller's value, if it is no longer in rbp
    bool has_rbp_of_caller = true;
};

bool is_register(const ZydisDecodedOperand& operand, ZydisRegister name) {
    return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && operand.reg.value == name;
}

bool writes(const Decoded& decoded, ZydisRegister name) {
    for (size_t i = 0; i < decoded.instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded.operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value) == name)
            return true;
    }
    return false;
}

// The distance that a pointer into the frame has after `lea` or `mov` of it; nothing: unknown.
std::optional<int64_t> copied_distance(const Decoded& decoded, const StackState& state) {
    const ZydisDecodedOperand& source = decoded.operands[1];
    if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_MOV) {
        if (is_register(source, ZYDIS_REGISTER_RSP)) return state.rsp;
        if (is_register(source, ZYDIS_REGISTER_RBP)) return state.rbp;
    }
    if (decoded.instruction.mnemonic != ZYDIS_MNEMONIC_LEA ||
        source.type != ZYDIS_OPERAND_TYPE_MEMORY || source.mem.index != ZYDIS_REGISTER_NONE)
        return std::nullopt;
    std::optional<int64_t> base;
    if (source.mem.base == ZYDIS_REGISTER_RSP) base = state.rsp;
    if (source.mem.base == ZYDIS_REGISTER_RBP) base = state.rbp;
    const int64_t displacement = source.mem.disp.value;
    if (!base || displacement < -kLargestFrameBytes || displacement > kLargestFrameBytes)
        return std::nullopt;
    return *base - displacement;
}

void set_rbp(StackState& state, std::optional<int64_t> distance) {
    state.rbp = distance;
    state.has_rbp_of_caller = false;
}

void apply_push(const Decoded& decoded, StackState& state) {
    if (!state.rsp) return;
    *state.rsp += decoded.instruction.operand_width / 8;
    if (state.has_rbp_of_caller && is_register(decoded.operands[0], ZYDIS_REGISTER_RBP))
        state.saved_rbp = state.rsp;
}

void apply_pop(const Decoded& decoded, StackState& state) {
    const bool is_saved = state.rsp && state.saved_rbp == state.rsp;
    if (state.rsp) *state.rsp -= decoded.instruction.operand_width / 8;
    if (is_register(decoded.operands[0], ZYDIS_REGISTER_RSP)) state.rsp.reset();
    if (!is_register(decoded.operands[0], ZYDIS_REGISTER_RBP)) return;
    state.rbp.reset();
    state.has_rbp_of_caller = is_saved;
}

void apply_leave(StackState& state) {
    const bool is_saved = state.rbp && state.saved_rbp == state.rbp;
    state.rsp = state.rbp;
    if (state.rsp) *state.rsp -= kWordBytes;
    state.rbp.reset();
    state.has_rbp_of_caller = is_saved;
}

void apply(const Decoded& decoded, StackState& state) {
    const ZydisDecodedOperand* operands = decoded.operands;
    switch (decoded.instruction.mnemonic) {
        case ZYDIS_MNEMONIC_PUSH:
        case ZYDIS_MNEMONIC_PUSHFQ:
            return apply_push(decoded, state);
        case ZYDIS_MNEMONIC_POP:
        case ZYDIS_MNEMONIC_POPFQ:
            return apply_pop(decoded, state);
        case ZYDIS_MNEMONIC_LEAVE:
            return apply_leave(state);
        case ZYDIS_MNEMONIC_CALL:
            return;  // it returns with the same rsp and rbp
        case ZYDIS_MNEMONIC_SUB:
        case ZYDIS_MNEMONIC_ADD: {
            const bool is_constant = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
            if (!is_register(operands[0], ZYDIS_REGISTER_RSP) || !is_constant || !state.rsp) break;
            const int64_t bytes = operands[1].imm.value.s;
            if (bytes < -kLargestFrameBytes || bytes > kLargestFrameBytes) break;
            *state.rsp += decoded.instruction.mnemonic == ZYDIS_MNEMONIC_SUB ? bytes : -bytes;
            return;
        }
        default:
            break;
    }
    const std::optional<int64_t> copied = copied_distance(decoded, state);
    if (writes(decoded, ZYDIS_REGISTER_RSP)) state.rsp = copied;
    if (writes(decoded, ZYDIS_REGISTER_RBP)) set_rbp(state, copied);
}

bool is_possible(const StackState& state) {
    return !state.rsp || (*state.rsp >= 0 && *state.rsp <= kLargestFrameBytes);
}

std::optional<ReturnSlot> slot_of(const StackState& state) {
    ReturnSlot slot;
    if (!state.rsp && !state.rbp) return std::nullopt;
    slot.is_from_rbp = !state.rsp;
    const int64_t distance = state.rsp ? *state.rsp : *state.rbp;
    if (distance < 0) return std::nullopt;
    slot.offset_bytes = static_cast<uint64_t>(distance);
    if (!state.has_rbp_of_caller && state.saved_rbp && *state.saved_rbp > 0)
        slot.saved_rbp_bytes = static_cast<uint64_t>(*state.saved_rbp);
    return slot;
}

}  // namespace

std::optional<CallBefore> call_before(uint64_t return_address, const ReadCode& read) {
    // A direct call first: its last bytes can look like another instruction.
    constexpr uint64_t kLengths[] = {5, 2, 3, 4, 6, 7, 8};
    for (const uint64_t length : kLengths) {
        if (return_address <= length) continue;
        const uint64_t address = return_address - length;
        Decoded decoded;
        if (!decode_at(address, read, decoded) || decoded.instruction.length != length ||
            decoded.instruction.mnemonic != ZYDIS_MNEMONIC_CALL)
            continue;
        return CallBefore{direct_target(decoded, address)};
    }
    return std::nullopt;
}

bool is_jump(uint64_t address, const ReadCode& read) {
    Decoded decoded;
    if (!decode_at(address, read, decoded)) return false;
    if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64 &&
        !decode_at(address + decoded.instruction.length, read, decoded))
        return false;
    return decoded.instruction.mnemonic == ZYDIS_MNEMONIC_JMP;
}

std::optional<ReturnSlot> ReturnSlotFinder::find(uint64_t entry, uint64_t address) {
    const auto [found, is_new] = known_.try_emplace({entry, address});
    if (is_new) found->second = follow(entry, address);
    return found->second;
}

std::optional<ReturnSlot> ReturnSlotFinder::follow(uint64_t entry, uint64_t address) {
    // Accessors are far smaller. (Also bounds the memory that one search takes.)
    constexpr uint64_t kLargestFunctionBytes = 64 << 10;
    constexpr size_t kMostPlaces = 2000;
    if (address - entry >= kLargestFunctionBytes) return std::nullopt;
    std::map<uint64_t, StackState> seen;
    std::deque<uint64_t> next;
    const auto reach = [&](uint64_t place, const StackState& state) {
        const bool is_inside = place - entry < kLargestFunctionBytes && seen.size() < kMostPlaces;
        if (is_inside && is_possible(state) && seen.try_emplace(place, state).second)
            next.push_back(place);
    };
    reach(entry, StackState{});
    while (!next.empty() && left_ != 0) {
        --left_;
        const uint64_t place = next.front();
        next.pop_front();
        StackState state = seen[place];
        Decoded decoded;
        if (!decode_at(place, read_, decoded)) continue;
        if (address - place < decoded.instruction.length) return slot_of(state);
        const ZydisInstructionCategory category = decoded.instruction.meta.category;
        apply(decoded, state);
        if (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR) {
            if (const auto target = direct_target(decoded, place)) reach(*target, state);
        }
        const bool goes_on = category != ZYDIS_CATEGORY_UNCOND_BR &&
                             category != ZYDIS_CATEGORY_RET &&
                             decoded.instruction.mnemonic != ZYDIS_MNEMONIC_UD2 &&
                             decoded.instruction.mnemonic != ZYDIS_MNEMONIC_HLT;
        if (goes_on) reach(place + decoded.instruction.length, state);
    }
    return std::nullopt;
}

}  // namespace kmes::conformance::tracing
