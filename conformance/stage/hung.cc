// SPDX-License-Identifier: MIT
//
// What is said of a testee from which nothing comes any more: who sleeps on what, what is owed, and
// why it may run and run.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "conformance/oracle/layout.h"
#include "conformance/stage/stage.h"
#include "conformance/stage/state_text.h"

namespace kmes::conformance {

namespace {

// A limit that nobody lives to see is none.
std::string far_limit_text(const Inspection& inspection, const WaitDescription& wait) {
    for (const ThreadState& thread : inspection.threads) {
        if (!wait.on_futex || thread.tid != wait.thread) continue;
        if (const auto seconds = far_limit_seconds(thread))
            return fmt::format("; the limit of its wait is {} s ahead", *seconds);
    }
    return "";
}

}  // namespace

LastDelivery Stage::last_delivery(std::uint32_t cpu) const {
    const std::uint64_t sequence = progress_->last_sequence(cpu);
    const kmes::conformance::Event* event = rings_->history().find(cpu, sequence);
    return {sequence, event == nullptr ? std::string() : event->type};
}

// Describes a word that a thread waits on. False: the word is none of this CPU's.
bool Stage::describe_word(const FutexWord& word, pid_t tid, std::uint32_t cpu,
                          const kmes::conformance::Event* owed,
                          WaitDescription& description) const {
    const std::optional<BufferIndex> index = index_of(word.place.buffer);
    if (!index) return false;
    description.others_wait = true;
    const Buffer& buffer = rings_->history().buffer(*index);
    if (buffer.cpu != cpu) return false;
    description.thread = tid;
    description.on_futex = true;
    description.was_refused = refused_last_.contains(tid);
    description.where = "futex";
    description.cpu = cpu;
    description.mapping_offset = word.place.offset_bytes;
    description.expected = word.value_expected;
    description.present = word.value_there;
    description.is_private = word.is_private;
    description.retired_buffer = buffer.retired;
    description.asked = rings_->need_wake(*index) != 0;
    description.counted_before =
        owed && counter_read_last_.contains(rings_->history().present_buffer(cpu)) &&
        rings_->is_counted_before(cpu, owed->sequence, description.expected);
    description.read_instead = value_read_instead(*index, word.value_expected);
    // On a retired buffer the round counts in which generation had changed already.
    if (buffer.retired) description.was_there &= buffer.retired_operation <= round_begun_.at(cpu);
    return true;
}

// A sleeper's state in the words of a finding: the thread that waits on a word of this CPU, or the
// first one that is blocked.
WaitDescription Stage::describe_wait(const Inspection& inspection, std::uint32_t cpu,
                                     const kmes::conformance::Event* owed) const {
    WaitDescription description;
    description.clause = case_.clause;
    const auto look = write_pos_read_.find(rings_->history().present_buffer(cpu));
    description.was_seen =
        owed && look != write_pos_read_.end() && owed->published_operation <= look->second;
    description.was_there = !owed || owed->published_operation <= round_begun_.at(cpu);
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

// What one that sleeps with a limit sleeps on again and again: at this moment it may be between two
// such waits. Nothing: it does not.
std::string Stage::text_of_timed_waits(const WaitDescription& wait, std::uint32_t cpu,
                                       const kmes::conformance::Event* owed) const {
    if (wait.on_futex) return "; " + wait_text(wait);
    WaitDescription last = wait;
    for (auto each = wait_log_.rbegin(); each != wait_log_.rend(); ++each) {
        for (const FutexWord& word : each->words) {
            if (each->limit != TimeLimit::kNone && describe_word(word, each->tid, cpu, owed, last))
                return "; " + wait_text(last);
        }
    }
    return "";
}

// The last value that it read from the futex_counter of a buffer, where it never read `expected`.
std::optional<std::uint32_t> Stage::value_read_instead(BufferIndex buffer,
                                                       std::uint32_t expected) const {
    const auto read = counters_read_.find(buffer);
    if (read == counters_read_.end() || read->second.empty()) return std::nullopt;
    const std::deque<std::uint32_t>& values = read->second;
    if (std::find(values.begin(), values.end(), expected) != values.end()) return std::nullopt;
    return values.back();
}

// All is delivered, and it sleeps on a buffer that nothing comes in any more.
void Stage::stop_at_retired(const Inspection& inspection) const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (progress_->ended(cpu) || rings_->history().tolerated(cpu)) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, nullptr);
        if (wait.on_futex && wait.retired_buffer) stop_with(asleep_on_retired(cpu, wait));
    }
}

// Every instruction of the testee is looked at: how long it takes says nothing of it.
bool Stage::is_stepped() const {
    return tracer_->stepping() == Stepping::kSingleStep && (is_recording() || !guarded_.empty());
}

std::string Stage::text_of_waiting(Quiet quiet, std::uint64_t given_ms) {
    switch (quiet) {
        case Quiet::settling:
            return fmt::format(
                "nothing has moved for {} ms, in which every thread was blocked or in timed waits",
                given_ms);
        case Quiet::spinning:
            return fmt::format(
                "it has used {} ms of processor time, and has neither written a record nor slept",
                given_ms);
        case Quiet::attaching:
            return "it calls kmes_attach again and again, and has neither written a record nor "
                   "slept";
        case Quiet::no:
            return fmt::format("{} ms were given, and the testee runs on", given_ms);
        case Quiet::for_good:
            break;
    }
    return "every thread is blocked for good";
}

void Stage::stop_hung(const std::string& what, Quiet quiet) {
    read_report();
    stands_still_ = true;
    const Inspection inspection = tracer_->inspect();
    const std::string state = describe_threads(inspection);
    const auto given_ms = static_cast<std::uint64_t>(time_to_hang(quiet).count());
    has_hung_ = quiet != Quiet::for_good;
    if (attaches_.empty())
        stop_with(contract_finding(
            fmt::format("it runs, and has not called kmes_attach (system call 1091) in {} ms{}",
                        given_ms, quiet == Quiet::spinning ? " of processor time" : "")));
    note("state of the testee: " + state);
    stop_if_foreign("it did not go on");
    // What it wrote where it may not explains the rest: a futex_counter of its own, say.
    check_pages();
    if (is_stepped() && (quiet == Quiet::spinning || quiet == Quiet::no))
        stop_inconclusive(
            fmt::format("it runs step by step, thousands of times slower than by itself, and has "
                        "not come to its next sleep or record in {} ms{}",
                        given_ms, quiet == Quiet::spinning ? " of processor time" : ""));
    if (has_hung_ && settings_.patience < 1)
        note("it has hung in cases before this one, and is given less time here");
    const std::string waited = text_of_waiting(quiet, given_ms);
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const kmes::conformance::Event* owed =
            progress_->ended(cpu) ? nullptr : progress_->first_undelivered(cpu);
        if (!owed) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, owed);
        const std::string far = far_limit_text(inspection, wait);
        if (quiet == Quiet::for_good || (quiet == Quiet::settling && !far.empty())) {
            Finding finding = lost_wake_up(cpu, owed->sequence, owed->type, wait);
            finding.message += far;
            stop_with(finding);
        }
        const std::string slept =
            quiet == Quiet::settling ? text_of_timed_waits(wait, cpu, owed) : "";
        Finding finding = contract_finding(fmt::format(
            "CPU {}: event {} is published and in the buffer, and is not delivered; {}{} ({})", cpu,
            owed->sequence, waited, slept, state));
        finding.code = FindingCode::missing_event;
        finding.clause = case_.clause;
        finding.cpu = cpu;
        finding.sequence = owed->sequence;
        stop_with(finding);
    }
    // Everything is delivered, and somebody else may be the one who sleeps.
    if (has_forked_ && inspection.other_processes)
        stop_inconclusive(
            "the testee has child processes, which may be the ones that sleep: the suite follows "
            "one process. Let it consume with threads in the run that is judged");
    if (waits_by_io_uring(inspection) || tracer_->has_io_uring())
        stop_inconclusive(
            "it has an io_uring, and may sleep on futex_counter by that: the suite does not see "
            "it. Let it use the futex calls in the run that is judged");
    if (ending_) stop_with(never_ended(state, waited));
    stop_at_lost_counter();
    stop_at_unrefused(state, waited);
    if (quiet == Quiet::for_good) stop_at_retired(inspection);
    Finding finding = contract_finding(
        fmt::format("waited for {}; it did not come: {} ({})", what, waited, state));
    finding.clause = case_.clause;
    name_repeats(finding);
    name_forged(finding, inspection);
    stop_with(finding);
}

// All is delivered, and it goes on with a buffer that it has to refuse.
void Stage::stop_at_unrefused(const std::string& state, const std::string& waited) const {
    for (const auto& [index, id] : served_) {
        const Buffer& buffer = rings_->history().buffer(index);
        if (!must_refuse(buffer.fault) || buffer.retired || !mapped_.contains(index) ||
            progress_->ended(buffer.cpu))
            continue;
        Finding finding =
            contract_finding(fmt::format("CPU {}: {}; {} ({})", buffer.cpu,
                                         not_refused_text(buffer.fault_detail), waited, state));
        finding.code = FindingCode::not_refused;
        finding.clause = clause_by_situation(case_.clause, "5.1.6.1");
        finding.cpu = buffer.cpu;
        stop_with(finding);
    }
}

// Those of the forged buffers that are still worked on.
void Stage::name_forged(Finding& finding, const Inspection& inspection) const {
    constexpr std::size_t kNamed = 3;
    const History& history = rings_->history();
    std::set<std::uint32_t> slept_on;
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (const auto index = index_of(word.place.buffer))
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
    finding.message +=
        "; neither refused nor slept on: " + fmt::format("{}", fmt::join(names, ", "));
    if (more > 0) finding.message += fmt::format(" and {} more", more);
}

// Why somebody may run and run, as far as it shows in what is done again and again.
void Stage::name_repeats(Finding& finding) const {
    const History& history = rings_->history();
    const std::uint64_t maps_again = maps_again_.count(history.buffer_count());
    const std::uint64_t attaches_again = attaches_again_.count(history.buffer_count());
    if (maps_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; {} times it has mapped a buffer that it had mapped before, and nothing has been "
            "replaced meanwhile: a buffer is replaced where its generation is another than when "
            "it was first read, in all 64 bits",
            maps_again);
    } else if (attaches_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; {} times it has called kmes_attach, and nothing has been replaced meanwhile: of a "
            "CPU that has ended, or that it refuses, generation says nothing to it any more",
            attaches_again);
    } else if (refused_waits_.count(history.operations()) > Repeats::kTooMany) {
        finding.clause = "5.1.8.2-3";
        finding.message +=
            "; its futex waits return at once, one after the other: they expect another value "
            "than futex_counter has";
    }
}

// A counter that no wake of the producer's accounts for.
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
