// SPDX-License-Identifier: MIT
//
// The messages of the driver's findings. The driver describes the process; this file knows none.
#include "conformance/oracle/driver_findings.h"
#include "conformance/model/finding.h"

#include <algorithm>
#include <iterator>

#include "conformance/oracle/event.h"
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

// "132 to 135": the first byte, and `more` bytes after it.
std::string bytes_from(std::uint64_t first, std::uint64_t more) {
    return std::to_string(first) + " to " + std::to_string(first + more);
}

std::string region_text(std::uint64_t mapping_offset) {
    for (const Field& field : metadata_fields()) {
        if (field.holds(mapping_offset)) return std::string(field.name);
    }
    return "data";
}

// futex_counter was read after the publication, and write_pos was not. The sleeper breaks E2
// however long the event was in the buffer.
bool counted_unseen(const WaitDescription& wait) {
    return wait.counted_before && !wait.was_seen && !wait.retired_buffer;
}

// The consumer had no whole iteration for the event, and waits with a value that it never read in
// that word.
bool waits_with_another(const WaitDescription& wait) {
    return wait.read_instead && !wait.retired_buffer && !wait.was_there;
}

// The clause that a sleeper breaks. expected_of_wait() has the words, in the same order.
std::string_view wait_clause(const WaitDescription& wait) {
    if (!wait.on_futex)
        return wait.others_wait ? clause_by_situation(wait.clause, "contract-2") : "5.1.8.2-5";
    if (wait.is_private) return "E17";
    if (!wait.cpu || wait.mapping_offset != kFutexCounterOffset) return "5.1.8.2-5";
    if (waits_with_another(wait)) return "5.1.8.2-5";
    if (counted_unseen(wait)) return "E2";
    if (wait.was_there)
        return clause_by_situation(wait.clause, wait.retired_buffer ? "5.1.8.3" : "5.1.8.1-6");
    if (wait.retired_buffer) return wait.counted_before ? "E2" : "E3";
    if (wait.was_seen) return clause_by_situation(wait.clause, "5.1.8.1-6");
    return wait.asked ? "5.1.8.2-2" : "5.1.8.2-1";
}

// The actions of a correct consumer in place of the sleeper's, as far as the recorded accesses
// show.
std::string_view expected_of_wait(const WaitDescription& wait) {
    if (!wait.on_futex)
        return wait.others_wait ? "a wait on a buffer of this CPU" : "a wait on futex_counter";
    if (wait.is_private) return "a shared futex, which another process can wake";
    if (!wait.cpu || wait.mapping_offset != kFutexCounterOffset)
        return "a wait on futex_counter (byte 128)";
    if (waits_with_another(wait)) return "a wait with a value that was read there";
    if (counted_unseen(wait)) return "a load of futex_counter before the last load of write_pos";
    if (wait.was_there && wait.retired_buffer)
        return "a move to the new buffer before the last iteration";
    if (wait.was_there && wait.was_refused)
        return "its record, published before the last wait returned EAGAIN";
    if (wait.was_there) return "its record, published before the last iteration";
    if (wait.retired_buffer)
        return wait.counted_before ? "a load of futex_counter before the last load of generation"
                                   : "a load of generation after setting need_wake";
    if (wait.was_seen) return "its record, published before the last load of write_pos";
    if (!wait.asked) return "need_wake 1 during the sleep";
    return "a load of write_pos after setting need_wake";
}

// "futex_counter from 2 (now 2) in the retired buffer".
std::string word_text(const WaitDescription& wait) {
    const std::string values = " from " + std::to_string(wait.expected) + " (now " +
                               std::to_string(wait.current_value) + ")";
    if (!wait.cpu) return "a word" + values + " outside every buffer";
    const std::string buffer = wait.retired_buffer ? " in the retired buffer" : "";
    if (wait.mapping_offset == kFutexCounterOffset) return "futex_counter" + values + buffer;
    return "byte " + std::to_string(wait.mapping_offset) + values +
           (buffer.empty() ? " in the buffer" : buffer);
}

}  // namespace

std::string not_refused_text(std::string_view fault) {
    return "the consumer keeps a malformed buffer (" + std::string(fault) +
           "); expected an R record";
}

std::string last_delivery_text(const LastDelivery& last) {
    if (last.sequence == 0) return "no event of this CPU was delivered";
    return "the last delivered event is event " + std::to_string(last.sequence) + " (type " +
           quote_bytes(last.type, 40) + ")";
}

std::string wait_text(const WaitDescription& wait) {
    const std::string thread = "thread " + std::to_string(wait.thread);
    if (!wait.on_futex) {
        if (wait.others_wait)
            return "no thread waits on a buffer of this CPU, and " +
                   last_delivery_text(wait.delivered);
        return thread + " is blocked in " + (wait.where.empty() ? "a system call" : wait.where) +
               ", and no thread waits on a buffer";
    }
    std::string text = thread + " waits for a change of " + word_text(wait);
    if (wait.is_private) text += " with a private futex";
    if (wait.is_private || !wait.cpu || wait.mapping_offset != kFutexCounterOffset) return text;
    if (waits_with_another(wait))
        return text + ", and the last value read there is " + std::to_string(*wait.read_instead);
    if (!wait.retired_buffer && !wait.was_there && !wait.was_seen && !counted_unseen(wait) &&
        !wait.asked)
        return text + ", and need_wake is 0";
    return text;
}

std::string_view clause_by_situation(std::string_view of_case, std::string_view otherwise) {
    // Clauses about sleep and about mappings.
    constexpr std::string_view kOthers[] = {
        "5.1.5", "5.1.8.2", "5.1.8.2-1", "5.1.8.2-2", "5.1.8.2-3", "5.1.8.2-5", "E1",
        "E2",    "E3",      "E17",       "E19",       "E24",       "contract"};
    const bool is_other =
        std::find(std::begin(kOthers), std::end(kOthers), of_case) != std::end(kOthers);
    return is_other ? otherwise : of_case;
}

Finding lost_wake_up(std::uint32_t cpu, std::uint64_t sequence, const WaitDescription& wait) {
    const std::string number = std::to_string(sequence);
    const bool no_thread_waits = !wait.on_futex && wait.others_wait;
    const std::string leaves =
        no_thread_waits ? "leaves event " + number + " unread" : "sleeps on unread event " + number;
    Finding finding =
        make(FindingCode::lost_wake_up, std::string(wait_clause(wait)),
             cpu_text(cpu) + "the consumer " + leaves + "; expected " +
                 std::string(expected_of_wait(wait)) + ". Evidence: " + wait_text(wait));
    finding.cpu = cpu;
    finding.sequence = sequence;
    return finding;
}

Finding asleep_on_retired(std::uint32_t cpu, const WaitDescription& wait) {
    const std::string_view clause = wait.was_there ? clause_by_situation(wait.clause, "5.1.8.3")
                                    : wait.counted_before ? "E2"
                                                          : "E3";
    const std::string_view expected =
        wait.was_there        ? "a move to the new one before the last iteration"
        : wait.counted_before ? "a load of futex_counter before the last load of generation"
                              : "a move to the new one";
    Finding finding =
        make(FindingCode::lost_wake_up, std::string(clause),
             cpu_text(cpu) + "the consumer sleeps on the retired buffer; expected " +
                 std::string(expected) + ". Evidence: thread " + std::to_string(wait.thread) +
                 " waits for a change of " + word_text(wait));
    finding.cpu = cpu;
    return finding;
}

Finding never_ended(std::string_view evidence) {
    return make(FindingCode::never_ended, "contract-4",
                "the consumer does not exit after it has delivered everything; expected exit "
                "status 0. Evidence: " +
                    std::string(evidence));
}

Finding ended_too_early(int exit_status, std::string_view missing) {
    return make(FindingCode::ended_too_early, "contract-4",
                "the consumer exited with status " + std::to_string(exit_status) +
                    "; expected the record of the end event of " + std::string(missing) + " first");
}

Finding wrong_exit_status(int exit_status) {
    return make(FindingCode::wrong_exit_status, "contract-4",
                "the consumer exited with status " + std::to_string(exit_status) +
                    "; expected 0 after all CPUs have ended");
}

Finding crash(int signal, std::string_view signal_name, std::string_view where) {
    std::string message = "the consumer was killed by signal " + std::to_string(signal);
    if (!signal_name.empty()) message += " (" + std::string(signal_name) + ")";
    message += "; expected no crash";
    if (!where.empty()) message += ". Evidence: " + std::string(where);
    return make(FindingCode::crash, "contract", std::move(message));
}

Finding write_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                      std::string_view instruction) {
    const bool is_of_the_producer = mapping_offset >= 64 && mapping_offset < 128;
    const bool is_the_counter = mapping_offset >= kFutexCounterOffset &&
                                mapping_offset < kFutexCounterOffset + sizeof(std::uint32_t);
    const std::string size = bytes == 0 ? "" : bytes_text(bytes) + " ";
    Finding finding = make(
        FindingCode::write_outside,
        is_of_the_producer ? "5.1.6.2"
        : is_the_counter   ? "5.1.6.3"
                           : "contract",
        cpu_text(cpu) + "the consumer wrote " + size + "at byte " + std::to_string(mapping_offset) +
            " of the mapping (" + region_text(mapping_offset) + ")" + at_instruction(instruction) +
            "; expected stores to need_wake (byte " + std::to_string(kNeedWakeOffset) + ") only");
    finding.cpu = cpu;
    return finding;
}

Finding read_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                     std::string_view instruction) {
    Finding finding = make(FindingCode::read_outside, "5.1.5",
                           cpu_text(cpu) + "the consumer read " + bytes_text(bytes) + " at byte " +
                               std::to_string(mapping_offset) + ", outside the mapping" +
                               at_instruction(instruction) + "; expected reads within its " +
                               std::to_string(kMetadataBytes) + " + 2 x capacity bytes");
    finding.cpu = cpu;
    return finding;
}

bool is_permitted_store(std::uint64_t mapping_offset, std::uint32_t bytes) {
    return mapping_offset == kNeedWakeOffset && (bytes == 1 || bytes == 4);
}

std::optional<Finding> judge_need_wake_bytes(std::uint32_t cpu, const std::uint8_t bytes[4]) {
    if (bytes[0] <= 1 && bytes[1] == 0 && bytes[2] == 0 && bytes[3] == 0) return std::nullopt;
    std::string found;
    for (int i = 0; i < 4; ++i) found += (i == 0 ? "" : " ") + std::to_string(bytes[i]);
    const bool beyond = bytes[1] != 0 || bytes[2] != 0 || bytes[3] != 0;
    Finding finding =
        make(beyond ? FindingCode::write_outside : FindingCode::wrong_need_wake,
             beyond ? "contract" : "5.1.6.3",
             cpu_text(cpu) + "bytes " + bytes_from(kNeedWakeOffset, 3) + " are " + found +
                 "; expected 0 or 1 in need_wake (" + std::to_string(kNeedWakeOffset) +
                 "), and zeros in " + bytes_from(kNeedWakeOffset + 1, 2));
    finding.cpu = cpu;
    return finding;
}

Finding wrong_mapping(std::uint32_t cpu, std::string_view what) {
    Finding finding =
        make(FindingCode::wrong_mapping, "contract-2",
             cpu_text(cpu) + "the consumer maps the buffer with " + std::string(what));
    finding.cpu = cpu;
    return finding;
}

Finding contract_finding(std::string_view message) {
    return make(FindingCode::contract, "contract", std::string(message));
}

}  // namespace kmes::conformance
