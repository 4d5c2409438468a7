// SPDX-License-Identifier: MIT
//
// Messages of what the driver finds. Knows no process: it is told.
#include "conformance/oracle/driver_findings.h"
#include "conformance/model/finding.h"

#include <algorithm>
#include <iterator>

#include "conformance/oracle/layout.h"
#include "conformance/oracle/record.h"

namespace kmes::conformance {
namespace {

Finding make(FindingCode code, std::string clause, std::string message) {
    Finding finding;
    finding.code = code;
    finding.clause = std::move(clause);
    finding.message = std::move(message);
    return finding;
}

std::string cpu_text(std::uint32_t cpu) {
    return "CPU " + std::to_string(cpu) + ": ";
}

std::string at_instruction(std::string_view instruction) {
    return instruction.empty() ? std::string() : " by " + std::string(instruction);
}

std::string bytes_text(std::uint64_t bytes) {
    return bytes == 1 ? "1 byte" : std::to_string(bytes) + " bytes";
}

std::string region_text(std::uint64_t mapping_offset) {
    for (const Field& field : kMetadataFields) {
        if (field.holds(mapping_offset)) return std::string(field.name);
    }
    return "data";
}

// The counter was read behind the event, and write_pos not at all: however long the event was
// there, that counter was what it must not be read for (E2).
bool counted_unseen(const WaitDescription& wait) {
    return wait.counted_before && !wait.was_seen && !wait.retired_buffer;
}

// It had no whole round for the event, and waits with what never stood in that word for it to read.
bool waits_with_another(const WaitDescription& wait) {
    return wait.read_instead && !wait.retired_buffer && !wait.was_there;
}

// The clause that a sleeper breaks, and the words for it: asked in the same order.
std::string_view wait_clause(const WaitDescription& wait) {
    if (!wait.on_futex)
        return wait.others_wait ? clause_by_situation(wait.clause, "contract-2") : "5.1.8.2-5";
    if (wait.is_private) return "E17";
    if (!wait.cpu || wait.mapping_offset != kFutexCounterOffset) return "5.1.8.2-5";
    if (waits_with_another(wait)) return "5.1.8.2-5";
    if (counted_unseen(wait)) return "E2";
    if (wait.was_there)
        return clause_by_situation(wait.clause, wait.retired_buffer ? "5.1.8.3" : "5.1.8.1-6");
    if (wait.retired_buffer) return "E3";
    if (wait.was_seen) return clause_by_situation(wait.clause, "5.1.8.1-6");
    return wait.asked ? "5.1.8.2-2" : "5.1.8.2-1";
}

// What the accesses that were seen say of why it sleeps.
std::string wait_reason(const WaitDescription& wait) {
    if (waits_with_another(wait))
        return "; it never read that value there, the last one was " +
               std::to_string(*wait.read_instead) +
               ": it waits with a value of another word or buffer";
    if (counted_unseen(wait))
        return "; that value came with the event: futex_counter was read behind it, and write_pos "
               "was not looked at again";
    if (wait.was_there)
        return wait.retired_buffer
                   ? "; the event was in the new buffer before its last round began, and "
                     "generation says so in the old one"
               : wait.was_refused
                   ? "; its wait before this one was refused (EAGAIN) with the event in the buffer "
                     "already: no wake is missing, it did not look again, or passed the event over "
                     "(or its record is not written)"
                   : "; the event was in the buffer before its last round began: no wake is "
                     "missing, it was not read (or its record is not written)";
    if (wait.retired_buffer) return "";
    if (wait.was_seen)
        return "; write_pos was read when it was behind the event: no wake is missing, it was "
               "passed over (or its record is not written)";
    if (!wait.asked)
        return "; need_wake is 0 while it sleeps: it has not asked to be woken, or that was taken "
               "back";
    return "; it came during the last round: write_pos was not looked at behind the store to "
           "need_wake, or the event was passed over";
}

}  // namespace

std::string not_refused_text(std::string_view fault) {
    return "the buffer must be refused (" + std::string(fault) +
           "), and no R record says that it was";
}

std::string last_delivery_text(const LastDelivery& last) {
    if (last.sequence == 0) return "it has delivered no event of it";
    return "the last event of it that was delivered is event " + std::to_string(last.sequence) +
           " (type " + quote_bytes(last.type, 40) + ")";
}

std::string wait_text(const WaitDescription& wait) {
    const std::string thread = "thread " + std::to_string(wait.thread);
    if (!wait.on_futex) {
        if (wait.others_wait)
            return "no thread waits on a buffer of this CPU; " + last_delivery_text(wait.delivered);
        return thread + " is blocked in " + (wait.where.empty() ? "a system call" : wait.where) +
               ", and no thread waits on a buffer";
    }
    std::string text = thread + " waits on ";
    text += wait.is_private ? "a private futex (no other process can wake it)" : "a shared futex";
    if (wait.cpu) {
        text += " at byte " + std::to_string(wait.mapping_offset) + " of the " +
                (wait.retired_buffer ? "retired " : "") + "buffer of CPU " +
                std::to_string(*wait.cpu);
        if (wait.mapping_offset != kFutexCounterOffset) text += " (futex_counter is byte 128)";
    } else {
        text += " outside every buffer";
    }
    text += ", expecting " + std::to_string(wait.expected) + ", where " +
            std::to_string(wait.present) + " stands now";
    if (wait.is_private) return text;
    return text + wait_reason(wait);
}

std::string_view clause_by_situation(std::string_view of_case, std::string_view otherwise) {
    // How it falls asleep, and how it maps.
    constexpr std::string_view kOthers[] = {
        "5.1.5", "5.1.8.2", "5.1.8.2-1", "5.1.8.2-2", "5.1.8.2-3", "5.1.8.2-5", "E1",
        "E2",    "E3",      "E17",       "E19",       "E24",       "contract"};
    const bool is_other =
        std::find(std::begin(kOthers), std::end(kOthers), of_case) != std::end(kOthers);
    return is_other ? otherwise : of_case;
}

Finding lost_wake_up(std::uint32_t cpu, std::uint64_t sequence, std::string_view type,
                     const WaitDescription& wait) {
    Finding finding = make(FindingCode::lost_wake_up, std::string(wait_clause(wait)),
                           cpu_text(cpu) + "asleep although event " + std::to_string(sequence) +
                               " (type " + quote_bytes(type, 40) +
                               ") is published and was not delivered: " + wait_text(wait));
    finding.cpu = cpu;
    finding.sequence = sequence;
    return finding;
}

Finding asleep_on_retired(std::uint32_t cpu, const WaitDescription& wait) {
    Finding finding = make(
        FindingCode::lost_wake_up,
        std::string(wait.was_there ? clause_by_situation(wait.clause, "5.1.8.3") : "E3"),
        cpu_text(cpu) + "asleep on a buffer that was replaced: thread " +
            std::to_string(wait.thread) + " waits on its futex_counter, expecting " +
            std::to_string(wait.expected) + ", where " + std::to_string(wait.present) +
            " stands now; no event of the new buffer will wake it, and generation has changed" +
            (wait.was_there ? " before its last round began" : ""));
    finding.cpu = cpu;
    return finding;
}

Finding never_ended(std::string_view state, std::string_view waited) {
    return make(FindingCode::never_ended, "contract-4",
                "it has delivered everything, and does not exit: " + std::string(waited) + " (" +
                    std::string(state) + ")");
}

Finding ended_too_early(int exit_status, std::string_view missing) {
    return make(FindingCode::ended_too_early, "contract-4",
                "it exited with status " + std::to_string(exit_status) +
                    " before it had delivered the end event of " + std::string(missing));
}

Finding wrong_exit_status(int exit_status) {
    return make(FindingCode::wrong_exit_status, "contract-4",
                "it exited with status " + std::to_string(exit_status) +
                    "; 0 is right when all CPUs have ended");
}

Finding crash(int signal, std::string_view signal_name, std::string_view where) {
    std::string message = "it was killed by signal " + std::to_string(signal);
    if (!signal_name.empty()) message += " (" + std::string(signal_name) + ")";
    if (!where.empty()) message += ": " + std::string(where);
    return make(FindingCode::crash, "contract", std::move(message));
}

Finding write_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                      std::string_view instruction) {
    const bool is_of_the_producer = mapping_offset >= 64 && mapping_offset < 128;
    const bool is_the_counter = mapping_offset >= kFutexCounterOffset &&
                                mapping_offset < kFutexCounterOffset + sizeof(std::uint32_t);
    const std::string size = bytes == 0 ? "" : bytes_text(bytes) + " ";
    Finding finding = make(FindingCode::write_outside,
                           is_of_the_producer ? "5.1.6.2"
                           : is_the_counter   ? "5.1.6.3"
                                              : "contract",
                           cpu_text(cpu) + "wrote " + size + "at byte " +
                               std::to_string(mapping_offset) + " of the mapping (" +
                               region_text(mapping_offset) + ")" + at_instruction(instruction) +
                               "; a consumer may write need_wake (byte 132) and nothing else");
    finding.cpu = cpu;
    return finding;
}

Finding read_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                     std::string_view instruction) {
    Finding finding = make(FindingCode::read_outside, "5.1.5",
                           cpu_text(cpu) + "read " + bytes_text(bytes) + " at byte " +
                               std::to_string(mapping_offset) + ", outside the mapping" +
                               at_instruction(instruction) + "; its length is 4096 + 2 x capacity");
    finding.cpu = cpu;
    return finding;
}

std::optional<Finding> judge_store(std::uint32_t cpu, std::uint64_t mapping_offset,
                                   std::uint32_t bytes, std::uint64_t value,
                                   std::string_view instruction) {
    if (mapping_offset != kNeedWakeOffset || (bytes != 1 && bytes != 4)) {
        return write_outside(cpu, mapping_offset, bytes, instruction);
    }
    if (value <= 1) return std::nullopt;
    Finding finding = make(FindingCode::wrong_need_wake, "5.1.6.3",
                           cpu_text(cpu) + "stored " + std::to_string(value) + " (" +
                               bytes_text(bytes) + ") to need_wake" + at_instruction(instruction) +
                               "; 0 or 1 is right, in one byte or in 32 bits");
    finding.cpu = cpu;
    return finding;
}

std::optional<Finding> judge_need_wake_bytes(std::uint32_t cpu, const std::uint8_t bytes[4]) {
    if (bytes[0] <= 1 && bytes[1] == 0 && bytes[2] == 0 && bytes[3] == 0) return std::nullopt;
    std::string found;
    for (int i = 0; i < 4; ++i) found += (i == 0 ? "" : " ") + std::to_string(bytes[i]);
    const bool beyond = bytes[1] != 0 || bytes[2] != 0 || bytes[3] != 0;
    Finding finding = make(beyond ? FindingCode::write_outside : FindingCode::wrong_need_wake,
                           beyond ? "contract" : "5.1.6.3",
                           cpu_text(cpu) + "bytes 132 to 135 hold " + found +
                               "; need_wake (132) is 0 or 1, and 133 to 135 are zero");
    finding.cpu = cpu;
    return finding;
}

Finding wrong_mapping(std::uint32_t cpu, std::string_view what) {
    Finding finding = make(FindingCode::wrong_mapping, "contract-2",
                           cpu_text(cpu) + "its buffer is mapped with " + std::string(what));
    finding.cpu = cpu;
    return finding;
}

Finding contract_finding(std::string_view message) {
    return make(FindingCode::contract, "contract", std::string(message));
}

}  // namespace kmes::conformance
