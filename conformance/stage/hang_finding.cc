// SPDX-License-Identifier: MIT
//
// See hang_finding.h.
#include "conformance/stage/hang_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "conformance/model/step_texts.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/end_finding.h"
#include "conformance/stage/loop_record.h"
#include "conformance/stage/stage_parts.h"
#include "conformance/stage/state_text.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

namespace {

// A limit in the far future counts as none.
std::string far_limit_text(const Inspection& inspection, const WaitDescription& wait) {
    for (const ThreadState& thread : inspection.threads) {
        if (!wait.on_futex || thread.tid != wait.thread) continue;
        if (const auto seconds = far_limit_seconds(thread))
            return fmt::format("; the limit of that wait is {} s ahead", *seconds);
    }
    return "";
}

// Adds the size of the unread event to the message.
void add_size(Finding& finding, std::uint64_t bytes) {
    const std::string event = fmt::format("unread event {}", finding.sequence);
    const std::size_t at = finding.message.find(event);
    if (at == std::string::npos) return;
    finding.message.insert(at + event.size(), fmt::format(" ({} bytes)", bytes));
}

// Describes the word that a thread waits on. Returns false if this CPU does not have the word.
bool describe_word(const StageParts& parts, const FutexWord& word, pid_t tid, std::uint32_t cpu,
                   const kmes::conformance::Event* owed, WaitDescription& description) {
    const std::optional<BufferIndex> index = parts.buffers.index_of(word.place.buffer);
    if (!index) return false;
    description.others_wait = true;
    const Buffer& buffer = parts.rings->history().buffer(*index);
    if (buffer.cpu != cpu) return false;
    description.thread = tid;
    description.on_futex = true;
    description.was_refused = parts.wait_log.was_refused(tid);
    description.where = "futex";
    description.cpu = cpu;
    description.mapping_offset = word.place.offset_bytes;
    description.expected = word.value_expected;
    description.current_value = word.value_there;
    description.is_private = word.is_private;
    description.retired_buffer = buffer.retired;
    description.asked = parts.rings->backend().need_wake(*index) != 0;
    description.counted_before =
        owed && parts.reads.is_counter_read_last(parts.rings->history().current_buffer(cpu)) &&
        parts.rings->counters().is_counted_before(cpu, owed->sequence, description.expected);
    description.read_instead = parts.reads.counter_read_instead(*index, word.value_expected);
    // On a retired buffer, the iteration counts only if generation had changed before it.
    if (buffer.retired) {
        description.counted_before = parts.reads.is_counter_read_after_recheck(*index);
        description.was_there &= buffer.retired_operation <= parts.wait_log.iteration_begun(cpu);
    }
    return true;
}

// Describes the thread that waits on a word of this CPU, or else the first thread.
WaitDescription describe_wait(const StageParts& parts, const Inspection& inspection,
                              std::uint32_t cpu, const kmes::conformance::Event* owed) {
    WaitDescription description;
    description.clause = parts.the_case.clause();
    const std::optional<std::uint64_t> loaded =
        parts.reads.operations_at_write_pos(parts.rings->history().current_buffer(cpu));
    description.was_seen = owed && loaded && owed->published_operation <= *loaded;
    description.was_there =
        !owed || owed->published_operation <= parts.wait_log.iteration_begun(cpu);
    description.delivered = last_delivery(parts, cpu);
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (describe_word(parts, word, thread.tid, cpu, owed, description)) return description;
        }
    }
    if (!inspection.threads.empty()) {
        description.thread = inspection.threads.front().tid;
        description.where = call_text(inspection.threads.front().call_number);
    }
    return description;
}

// Describes the wait with a limit that a consumer repeats, also if the consumer is between two such
// waits now. Empty: there is no such wait.
std::string text_of_timed_waits(const StageParts& parts, const WaitDescription& wait,
                                std::uint32_t cpu, const kmes::conformance::Event* owed) {
    if (wait.on_futex) return "; " + wait_text(wait);
    WaitDescription last = wait;
    for (auto each = parts.wait_log.all().rbegin(); each != parts.wait_log.all().rend(); ++each) {
        for (const FutexWord& word : each->words) {
            if (each->limit != TimeLimit::kNone &&
                describe_word(parts, word, each->tid, cpu, owed, last))
                return "; " + wait_text(last);
        }
    }
    return "";
}

// Stops a consumer that has delivered everything and sleeps on a retired buffer.
void stop_at_retired(const StageParts& parts, const Inspection& inspection) {
    for (std::uint32_t cpu = 0; cpu < parts.cpus(); ++cpu) {
        if (parts.testee.progress().ended(cpu) || parts.rings->history().tolerated(cpu)) continue;
        const WaitDescription wait = describe_wait(parts, inspection, cpu, nullptr);
        if (wait.on_futex && wait.retired_buffer) stop_with(asleep_on_retired(cpu, wait));
    }
}

std::string text_of_waiting(Stall stall, std::uint64_t given_ms) {
    switch (stall) {
        case Stall::timed_waits:
            return fmt::format("every thread was blocked or in timed waits for {} ms", given_ms);
        case Stall::spinning:
            return fmt::format("the consumer used {} ms{}", given_ms, kSpins);
        case Stall::attaching:
            return "the consumer calls kmes_attach again and again without a record or a sleep";
        case Stall::refused:
            return "its futex waits return at once, again and again";
        case Stall::none:
            return fmt::format("the consumer still runs after {} ms", given_ms);
        case Stall::for_good:
            break;
    }
    return "every thread is blocked for good";
}

// The clause that a thread breaks by the value that it waits with, and the explanation.
struct StaleValue {
    std::string_view clause;
    std::string_view text;
};

StaleValue explain_stale(std::uint32_t expected, std::uint32_t counter, std::uint32_t lowest) {
    if (expected == (counter & 0xffff)) return {"5.1.6.3", ": these are its low 16 bits"};
    if (expected == (counter & 0xff)) return {"5.1.6.3", ": these are its low 8 bits"};
    if (expected - lowest <= counter - lowest)
        return {"5.1.8.2-3", "; a load of it is expected before each wait"};
    return {"5.1.8.2-3", ", which never had that value"};
}

// Describes the last futex wait that the kernel refused, and sets the clause that it breaks.
std::string text_of_refused_wait(const StageParts& parts, std::string& clause) {
    for (auto each = parts.wait_log.all().rbegin(); each != parts.wait_log.all().rend(); ++each) {
        if (!parts.wait_log.was_refused(each->tid)) continue;
        for (const FutexWord& word : each->words) {
            const auto index = parts.buffers.index_of(word.place.buffer);
            if (!index) continue;
            const Buffer& buffer = parts.rings->history().buffer(*index);
            const std::uint32_t counter = parts.rings->counters().of(*index);
            if (word.value_expected == counter) continue;  // another word of the same wait
            const StaleValue stale =
                explain_stale(word.value_expected, counter, buffer.futex_counter_lowest);
            clause = stale.clause;
            return fmt::format("; thread {} expects {} there, and futex_counter of CPU {} is {}{}",
                               each->tid, word.value_expected, buffer.cpu, counter, stale.text);
        }
    }
    return "";
}

// Stops a consumer that has delivered everything and continues with a malformed buffer.
void stop_at_unrefused(const StageParts& parts, const std::string& waited) {
    for (const auto& [index, id] : parts.buffers.ids()) {
        const Buffer& buffer = parts.rings->history().buffer(index);
        if (!must_refuse(buffer.fault) || buffer.retired || !parts.buffers.has_mapped(index) ||
            parts.testee.progress().ended(buffer.cpu))
            continue;
        Finding finding = contract_finding(fmt::format(
            "CPU {}: {}. Evidence: {}", buffer.cpu, not_refused_text(buffer.fault_detail), waited));
        finding.code = FindingCode::not_refused;
        finding.clause = clause_by_situation(parts.the_case.clause(), "5.1.6.1");
        finding.cpu = buffer.cpu;
        stop_with(finding);
    }
}

// Names the forged buffers that the consumer still reads.
void name_forged(const StageParts& parts, Finding& finding, const Inspection& inspection) {
    constexpr std::size_t kNamed = 3;
    const History& history = parts.rings->history();
    std::set<std::uint32_t> slept_on;
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (const auto index = parts.buffers.index_of(word.place.buffer))
                slept_on.insert(history.buffer(*index).cpu);
        }
    }
    std::vector<std::string> names;
    for (std::uint32_t cpu = 0; cpu < parts.cpus(); ++cpu) {
        if (!history.tolerated(cpu) || parts.testee.progress().ended(cpu) || slept_on.contains(cpu))
            continue;
        if (names.empty()) finding.cpu = cpu;
        names.push_back(fmt::format("CPU {} ({})", cpu,
                                    history.buffer(history.current_buffer(cpu)).fault_detail));
    }
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), kNamed);
    names.resize(names.size() - more);
    finding.message += "; neither refused nor asleep: " + fmt::format("{}", fmt::join(names, ", "));
    if (more > 0) finding.message += fmt::format(" and {} more", more);
}

// Adds the reason of an endless run, if repeated calls show it.
void name_repeats(const StageParts& parts, Finding& finding) {
    const std::uint64_t maps_again = parts.liveness.maps_again();
    const std::uint64_t attaches_again = parts.liveness.attaches_again();
    if (maps_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(parts.the_case.clause(), "5.1.8.3");
        finding.message += fmt::format(
            "; the consumer mapped the same buffers again {} times without a change: a buffer is "
            "replaced only if one of the 64 bits of its generation differs from the first value",
            maps_again);
    } else if (attaches_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(parts.the_case.clause(), "5.1.8.3");
        finding.message += fmt::format(
            "; the consumer called kmes_attach {} times without a change: the generation of an "
            "ended or refused CPU is irrelevant",
            attaches_again);
    } else if (parts.wait_log.refused_waits() > Repeats::kTooMany) {
        finding.clause = "5.1.8.2-3";
        finding.message +=
            "; " + text_of_waiting(Stall::refused, 0) + text_of_refused_wait(parts, finding.clause);
    }
}

Finding missing_event(std::uint32_t cpu, const kmes::conformance::Event& owed,
                      const std::string& evidence, const std::string& clause) {
    Finding finding = contract_finding(
        fmt::format("CPU {}: the consumer does not deliver event {} ({} bytes); expected its "
                    "record. Evidence: {}",
                    cpu, owed.sequence, owed.bytes, evidence));
    finding.code = FindingCode::missing_event;
    finding.clause = clause;
    finding.cpu = cpu;
    finding.sequence = owed.sequence;
    return finding;
}

// Stops a run in which futex_counter has a value that the producer did not store.
void stop_at_lost_counter(const StageParts& parts) {
    const History& history = parts.rings->history();
    for (std::uint32_t cpu = 0; cpu < parts.cpus(); ++cpu) {
        const BufferIndex index = history.current_buffer(cpu);
        if (history.tolerated(cpu)) continue;
        const Buffer& buffer = history.buffer(index);
        if (parts.rings->counters().of(index) - buffer.futex_counter_lowest <=
            buffer.futex_counter_highest - buffer.futex_counter_lowest)
            continue;
        stop_with(write_outside(cpu, kFutexWordOffset, sizeof(std::uint32_t), ""));
    }
}

[[noreturn]] void stop_with_reason(StageParts& parts, const std::string& what, Stall stall) {
    parts.testee.read_report();
    const Inspection inspection = parts.testee.tracer().inspect();
    const std::string state = describe_threads(inspection);
    const auto given_ms = static_cast<std::uint64_t>(parts.liveness.time_to_hang(stall).count());
    const bool has_hung = stall != Stall::for_good;
    parts.findings.note_standstill(has_hung);
    if (parts.testee.attaches().empty())
        stop_with(contract_finding(
            fmt::format("the consumer has not called kmes_attach (system call 1091) in {} ms{}; "
                        "expected a call",
                        given_ms, stall == Stall::spinning ? " of processor time" : "")));
    parts.findings.note("state of the testee: " + state);
    stop_if_foreign(parts, "the consumer makes no progress");
    // A forbidden store explains the rest, for example one to futex_counter.
    stop_at_fault(parts.monitors);
    if (parts.guards.step_everything() && (stall == Stall::spinning || stall == Stall::none))
        stop_inconclusive(
            fmt::format("the consumer runs by single steps, thousands of times slower than alone, "
                        "and reached no sleep or record in {} ms{}",
                        given_ms, stall == Stall::spinning ? " of processor time" : ""));
    if (has_hung && parts.settings.patience < 1)
        parts.findings.note("the consumer has hung in earlier cases, so it gets less time here");
    std::string waited = text_of_waiting(stall, given_ms);
    std::string clause(parts.the_case.clause());
    if (stall == Stall::refused) waited += text_of_refused_wait(parts, clause);
    for (std::uint32_t cpu = 0; cpu < parts.cpus(); ++cpu) {
        const kmes::conformance::Event* owed = parts.testee.progress().ended(cpu)
                                                   ? nullptr
                                                   : parts.testee.progress().first_undelivered(cpu);
        if (!owed) continue;
        const WaitDescription wait = describe_wait(parts, inspection, cpu, owed);
        const std::string far = far_limit_text(inspection, wait);
        if (stall == Stall::for_good || (stall == Stall::timed_waits && !far.empty())) {
            Finding finding = lost_wake_up(cpu, owed->sequence, wait);
            add_size(finding, owed->bytes);
            finding.message += far;
            stop_with(finding);
        }
        const std::string slept =
            stall == Stall::timed_waits ? text_of_timed_waits(parts, wait, cpu, owed) : "";
        stop_with(missing_event(cpu, *owed, waited + slept, clause));
    }
    // Everything is delivered, and the sleeper may be another process.
    if (parts.testee.has_forked() && inspection.other_processes)
        stop_inconclusive(
            "the consumer has child processes, which may be the ones that sleep. The suite follows "
            "one process: use threads in the judged run");
    if (waits_by_io_uring(inspection) || parts.testee.tracer().has_io_uring())
        stop_inconclusive(
            "the consumer has an io_uring and may sleep on futex_counter by it, which the suite "
            "cannot see. Use the futex calls in the judged run");
    if (parts.ending.has_begun()) stop_with(never_ended(waited));
    stop_at_lost_counter(parts);
    stop_at_unrefused(parts, waited);
    if (stall == Stall::for_good) stop_at_retired(parts, inspection);
    Finding finding = contract_finding(
        fmt::format("the consumer makes no progress; expected {}. Evidence: {}", what, waited));
    finding.clause = clause;
    if (stall != Stall::refused) name_repeats(parts, finding);
    name_forged(parts, finding, inspection);
    stop_with(finding);
}

}  // namespace

void stop_hung(StageParts& parts, const std::string& what, Stall stall) {
    try {
        stop_with_reason(parts, what, stall);
    } catch (const Stop& stop) {
        if (stall == Stall::spinning && stop.verdict == Verdict::fail)
            record_loop(parts, stop.finding.cpu);
        throw;
    }
}

}  // namespace kmes::conformance
