// SPDX-License-Identifier: MIT
//
// The finding about a consumer that makes no progress: which thread sleeps on which word, which
// event is owed, and why the consumer may run for ever.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/oracle/layout.h"
#include "conformance/stage/stage.h"
#include "conformance/stage/state_text.h"

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

// The event that is slept through has its size in the message.
void add_size(Finding& finding, std::uint64_t bytes) {
    const std::string event = fmt::format("unread event {}", finding.sequence);
    const std::size_t at = finding.message.find(event);
    if (at == std::string::npos) return;
    finding.message.insert(at + event.size(), fmt::format(" ({} bytes)", bytes));
}

}  // namespace

LastDelivery Stage::last_delivery(std::uint32_t cpu) const {
    const std::uint64_t sequence = progress_->last_sequence(cpu);
    const kmes::conformance::Event* event = rings_->history().find(cpu, sequence);
    return {sequence, event == nullptr ? std::string() : event->type};
}

// Describes a word that a thread waits on. False: the word is not one of this CPU.
bool Stage::describe_word(const FutexWord& word, pid_t tid, std::uint32_t cpu,
                          const kmes::conformance::Event* owed,
                          WaitDescription& description) const {
    const std::optional<BufferIndex> index = buffers_.index_of(word.place.buffer);
    if (!index) return false;
    description.others_wait = true;
    const Buffer& buffer = rings_->history().buffer(*index);
    if (buffer.cpu != cpu) return false;
    description.thread = tid;
    description.on_futex = true;
    description.was_refused = waits_.was_refused(tid);
    description.where = "futex";
    description.cpu = cpu;
    description.mapping_offset = word.place.offset_bytes;
    description.expected = word.value_expected;
    description.present = word.value_there;
    description.is_private = word.is_private;
    description.retired_buffer = buffer.retired;
    description.asked = rings_->need_wake(*index) != 0;
    description.counted_before =
        owed && reads_.is_counter_read_last(rings_->history().present_buffer(cpu)) &&
        rings_->is_counted_before(cpu, owed->sequence, description.expected);
    description.read_instead = reads_.counter_read_instead(*index, word.value_expected);
    // On a retired buffer, the iteration counts only if generation had changed before it.
    if (buffer.retired)
        description.was_there &= buffer.retired_operation <= waits_.round_begun(cpu);
    return true;
}

// The state of a sleeper: the thread that waits on a word of this CPU, or the first blocked thread.
WaitDescription Stage::describe_wait(const Inspection& inspection, std::uint32_t cpu,
                                     const kmes::conformance::Event* owed) const {
    WaitDescription description;
    description.clause = case_.clause;
    const std::optional<std::uint64_t> look =
        reads_.operations_at_write_pos(rings_->history().present_buffer(cpu));
    description.was_seen = owed && look && owed->published_operation <= *look;
    description.was_there = !owed || owed->published_operation <= waits_.round_begun(cpu);
    description.delivered = last_delivery(cpu);
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (describe_word(word, thread.tid, cpu, owed, description)) return description;
        }
    }
    if (!inspection.threads.empty()) {
        description.thread = inspection.threads.front().tid;
        description.where = call_text(inspection.threads.front().call_number);
    }
    return description;
}

// The wait that a consumer with a limit repeats. At this moment the consumer may be between two
// such waits. Empty: there is no such wait.
std::string Stage::text_of_timed_waits(const WaitDescription& wait, std::uint32_t cpu,
                                       const kmes::conformance::Event* owed) const {
    if (wait.on_futex) return "; " + wait_text(wait);
    WaitDescription last = wait;
    for (auto each = waits_.all().rbegin(); each != waits_.all().rend(); ++each) {
        for (const FutexWord& word : each->words) {
            if (each->limit != TimeLimit::kNone && describe_word(word, each->tid, cpu, owed, last))
                return "; " + wait_text(last);
        }
    }
    return "";
}

// Everything is delivered, and the consumer sleeps on a retired buffer.
void Stage::stop_at_retired(const Inspection& inspection) const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (progress_->ended(cpu) || rings_->history().tolerated(cpu)) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, nullptr);
        if (wait.on_futex && wait.retired_buffer) stop_with(asleep_on_retired(cpu, wait));
    }
}

// The suite steps every instruction of the consumer, so the time that it takes says nothing.
bool Stage::is_stepped() const {
    return tracer_->stepping() == Stepping::kSingleStep && (is_recording() || !guarded_.empty());
}

std::string Stage::text_of_waiting(Stall stall, std::uint64_t given_ms) {
    switch (stall) {
        case Stall::timed_waits:
            return fmt::format("every thread was blocked or in timed waits for {} ms", given_ms);
        case Stall::spinning:
            return fmt::format(
                "the consumer used {} ms of processor time without a record or a sleep", given_ms);
        case Stall::attaching:
            return "the consumer calls kmes_attach again and again without a record or a sleep";
        case Stall::none:
            return fmt::format("the consumer still runs after {} ms", given_ms);
        case Stall::for_good:
            break;
    }
    return "every thread is blocked for good";
}

void Stage::stop_hung(const std::string& what, Stall stall) {
    read_report();
    stands_still_ = true;
    const Inspection inspection = tracer_->inspect();
    const std::string state = describe_threads(inspection);
    const auto given_ms = static_cast<std::uint64_t>(time_to_hang(stall).count());
    has_hung_ = stall != Stall::for_good;
    if (attaches_.empty())
        stop_with(contract_finding(
            fmt::format("the consumer has not called kmes_attach (system call 1091) in {} ms{}; "
                        "expected a call",
                        given_ms, stall == Stall::spinning ? " of processor time" : "")));
    note("state of the testee: " + state);
    stop_if_foreign("the consumer makes no progress");
    // A forbidden store explains the rest, for example one to futex_counter.
    check_monitors();
    if (is_stepped() && (stall == Stall::spinning || stall == Stall::none))
        stop_inconclusive(
            fmt::format("the consumer runs by single steps, thousands of times slower than alone, "
                        "and reached no sleep or record in {} ms{}",
                        given_ms, stall == Stall::spinning ? " of processor time" : ""));
    if (has_hung_ && settings_.patience < 1)
        note("the consumer has hung in earlier cases, so it gets less time here");
    const std::string waited = text_of_waiting(stall, given_ms);
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const kmes::conformance::Event* owed =
            progress_->ended(cpu) ? nullptr : progress_->first_undelivered(cpu);
        if (!owed) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, owed);
        const std::string far = far_limit_text(inspection, wait);
        if (stall == Stall::for_good || (stall == Stall::timed_waits && !far.empty())) {
            Finding finding = lost_wake_up(cpu, owed->sequence, wait);
            add_size(finding, owed->bytes);
            finding.message += far;
            stop_with(finding);
        }
        const std::string slept =
            stall == Stall::timed_waits ? text_of_timed_waits(wait, cpu, owed) : "";
        Finding finding =
            contract_finding(fmt::format("CPU {}: the consumer does not deliver event {} ({} "
                                         "bytes); expected its record. Evidence: "
                                         "{}{}",
                                         cpu, owed->sequence, owed->bytes, waited, slept));
        finding.code = FindingCode::missing_event;
        finding.clause = case_.clause;
        finding.cpu = cpu;
        finding.sequence = owed->sequence;
        stop_with(finding);
    }
    // Everything is delivered, and another process may be the one that sleeps.
    if (has_forked_ && inspection.other_processes)
        stop_inconclusive(
            "the consumer has child processes, which may be the ones that sleep. The suite follows "
            "one process: use threads in the judged run");
    if (waits_by_io_uring(inspection) || tracer_->has_io_uring())
        stop_inconclusive(
            "the consumer has an io_uring and may sleep on futex_counter by it, which the suite "
            "cannot see. Use the futex calls in the judged run");
    if (ending_) stop_with(never_ended(waited));
    stop_at_lost_counter();
    stop_at_unrefused(waited);
    if (stall == Stall::for_good) stop_at_retired(inspection);
    Finding finding = contract_finding(
        fmt::format("the consumer makes no progress; expected {}. Evidence: {}", what, waited));
    finding.clause = case_.clause;
    name_repeats(finding);
    name_forged(finding, inspection);
    stop_with(finding);
}

// Everything is delivered, and the consumer continues with a malformed buffer.
void Stage::stop_at_unrefused(const std::string& waited) const {
    for (const auto& [index, id] : buffers_.ids()) {
        const Buffer& buffer = rings_->history().buffer(index);
        if (!must_refuse(buffer.fault) || buffer.retired || !buffers_.has_mapped(index) ||
            progress_->ended(buffer.cpu))
            continue;
        Finding finding = contract_finding(fmt::format(
            "CPU {}: {}. Evidence: {}", buffer.cpu, not_refused_text(buffer.fault_detail), waited));
        finding.code = FindingCode::not_refused;
        finding.clause = clause_by_situation(case_.clause, "5.1.6.1");
        finding.cpu = buffer.cpu;
        stop_with(finding);
    }
}

// The forged buffers that the consumer still reads.
void Stage::name_forged(Finding& finding, const Inspection& inspection) const {
    constexpr std::size_t kNamed = 3;
    const History& history = rings_->history();
    std::set<std::uint32_t> slept_on;
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (const auto index = buffers_.index_of(word.place.buffer))
                slept_on.insert(history.buffer(*index).cpu);
        }
    }
    std::vector<std::string> names;
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (!history.tolerated(cpu) || progress_->ended(cpu) || slept_on.contains(cpu)) continue;
        if (names.empty()) finding.cpu = cpu;
        names.push_back(fmt::format("CPU {} ({})", cpu,
                                    history.buffer(history.present_buffer(cpu)).fault_detail));
    }
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), kNamed);
    names.resize(names.size() - more);
    finding.message += "; neither refused nor asleep: " + fmt::format("{}", fmt::join(names, ", "));
    if (more > 0) finding.message += fmt::format(" and {} more", more);
}

// Why the consumer may run for ever, as far as repeated calls show it.
void Stage::name_repeats(Finding& finding) const {
    const History& history = rings_->history();
    const std::uint64_t maps_again = maps_again_.count(history.buffer_count());
    const std::uint64_t attaches_again = attaches_again_.count(history.buffer_count());
    if (maps_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; the consumer mapped the same buffers again {} times without a change: a buffer is "
            "replaced only if one of the 64 bits of its generation differs from the first value",
            maps_again);
    } else if (attaches_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; the consumer called kmes_attach {} times without a change: the generation of an "
            "ended or refused CPU is irrelevant",
            attaches_again);
    } else if (waits_.refusals() > Repeats::kTooMany) {
        finding.clause = "5.1.8.2-3";
        finding.message +=
            "; the futex waits return at once, one after the other, because they expect another "
            "value than futex_counter has";
    }
}

// A value of futex_counter that the producer did not store.
void Stage::stop_at_lost_counter() const {
    const History& history = rings_->history();
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const BufferIndex index = history.present_buffer(cpu);
        if (history.tolerated(cpu)) continue;
        const Buffer& buffer = history.buffer(index);
        if (rings_->counter(index) - buffer.futex_counter_lowest <=
            buffer.futex_counter_highest - buffer.futex_counter_lowest)
            continue;
        stop_with(write_outside(cpu, kFutexWordOffset, sizeof(std::uint32_t), ""));
    }
}

}  // namespace kmes::conformance
