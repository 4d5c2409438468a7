// SPDX-License-Identifier: MIT
//
// The last step, and which of the others decided the outcome. See recorder.h.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/stage/recorder.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

void Recorder::mark(std::uint64_t number, std::string why) {
    TimelineStep* step = timeline_.find(number);
    if (step == nullptr) return;
    step->decisive = true;
    if (!why.empty()) step->why = std::move(why);
}

// The last operation of each move: what comes before it in the same move leads up to it.
bool Recorder::mark_moves() {
    bool any = false;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (!operations_[i].in_move) continue;
        if (i + 1 < operations_.size() && operations_[i + 1].in_move &&
            operations_[i + 1].step == operations_[i].step + 1)
            continue;
        mark(operations_[i].step,
             "The producer did this just here, between two accesses of the consumer.");
        any = true;
    }
    // One that holds a thread does nothing of the producer's.
    if (!any && !moves_.empty()) mark(moves_.back(), "This is what was done to the consumer.");
    return any || !moves_.empty();
}

const Recorder::Operation* Recorder::publication_of(std::uint32_t cpu,
                                                    std::uint64_t sequence) const {
    const auto found =
        std::find_if(operations_.rbegin(), operations_.rend(), [&](const Operation& operation) {
            return operation.cpu == cpu && operation.published_first <= sequence &&
                   sequence <= operation.published_last && operation.published_first != 0;
        });
    return found == operations_.rend() ? nullptr : &*found;
}

// The record that a finding is about; 0: none.
std::uint64_t Recorder::record_of(const Finding& finding) const {
    if (const auto found = step_of_line_.find(finding.line); found != step_of_line_.end())
        return found->second;
    if (!finding.cpu || finding.sequence == 0) return 0;
    const std::vector<TimelineStep>& steps = timeline_.steps();
    for (std::size_t i = steps.size(); i > 0; --i) {
        const TimelineStep& step = steps[i - 1];
        if (step.kind == StepKind::record && step.cpu == finding.cpu &&
            step.sequence == finding.sequence)
            return timeline_.number(i - 1);
    }
    return 0;
}

// Asleep on an event that is there: the publication, the futex wait, and the swap between them if
// it sleeps on a buffer that is retired.
void Recorder::mark_lost(const Finding& finding) {
    const std::uint32_t cpu = *finding.cpu;
    const auto wait = std::find_if(waits_.rbegin(), waits_.rend(),
                                   [cpu](const Wait& each) { return each.cpu == cpu; });
    const Operation* publication = publication_of(cpu, finding.sequence);
    const std::uint64_t slept = wait == waits_.rend() ? 0 : wait->step;
    if (publication != nullptr) {
        std::string why = fmt::format("Event {} is in the buffer from here on", finding.sequence);
        if (slept > publication->step)
            why += ", and the consumer has not taken it when it goes to sleep.";
        else if (!publication->woken)
            why += ". need_wake is 0, so the sleeping consumer is not woken.";
        else if (*publication->woken == 0)
            why += ". The wake reaches no thread.";
        else
            why += ".";
        mark(publication->step, why);
    }
    if (slept == 0) return;
    const bool retired = history().buffer(wait->buffer).retired;
    mark(slept, slept > (publication != nullptr ? publication->step : 0)
                    ? fmt::format("Here it goes to sleep for ever: event {} is there already{}.",
                                  finding.sequence,
                                  retired ? ", in another buffer than the one it sleeps on" : "")
                    : "It sleeps here, and nothing wakes it.");
    for (const Operation& operation : operations_) {
        if (operation.retired == wait->buffer && operation.cpu == cpu)
            mark(operation.step,
                 fmt::format("From here on every event goes to the new buffer; buffer {} is dead.",
                             wait->buffer));
    }
}

// The operation that overwrote the event, if possible between the consumer's first access to it and
// its record.
void Recorder::mark_torn(const Finding& finding) {
    const std::uint64_t record = record_of(finding);
    const std::vector<TimelineStep>& steps = timeline_.steps();
    std::uint64_t first_access = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimelineStep& step = steps[i];
        if (step.kind == StepKind::access && step.sequence == finding.sequence &&
            step.cpu == finding.cpu && first_access == 0)
            first_access = timeline_.number(i);
    }
    for (const Operation& operation : operations_) {
        if (operation.cpu != finding.cpu || operation.overwritten_first == 0 ||
            operation.overwritten_first > finding.sequence ||
            operation.overwritten_last < finding.sequence)
            continue;
        const bool between = first_access != 0 && operation.step > first_access;
        mark(operation.step,
             between ? fmt::format("Event {} is overwritten here, after the consumer began to read "
                                   "it (step {}) and before it had delivered it.",
                                   finding.sequence, first_access)
                     : fmt::format("Event {} is overwritten here.", finding.sequence));
    }
    mark(record, fmt::format("Delivered as event {}, with other bytes than were emitted.",
                             finding.sequence));
}

// Where its record should have been: before the first one with a higher number, if there is one.
void Recorder::mark_missing(const Finding& finding) {
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const auto next = std::find_if(steps.begin(), steps.end(), [&](const TimelineStep& step) {
        return step.kind == StepKind::record && step.cpu == finding.cpu &&
               step.sequence > finding.sequence;
    });
    if (next != steps.end())
        mark(timeline_.number(static_cast<std::size_t>(next - steps.begin())),
             fmt::format("Event {} should have been delivered before this one.", finding.sequence));
    if (const Operation* publication = publication_of(*finding.cpu, finding.sequence))
        mark(publication->step,
             fmt::format("Event {} is published here, and never delivered.", finding.sequence));
}

void Recorder::mark_record(const Finding& finding) {
    const std::uint64_t record = record_of(finding);
    if (record == 0) return;
    std::string why = "This is what is wrong.";
    const std::vector<TimelineStep>& steps = timeline_.steps();
    if (finding.code == FindingCode::doubled_event) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].kind != StepKind::record || steps[i].cpu != finding.cpu ||
                steps[i].sequence != finding.sequence || timeline_.number(i) == record)
                continue;
            why = fmt::format("The same event a second time: the first was step {}.",
                              timeline_.number(i));
            break;
        }
    }
    mark(record, why);
}

// "thread 24601" of a message is one of the picture's threads.
std::string Recorder::with_thread_numbers(std::string message) const {
    for (const auto& [tid, number] : threads_) {
        const std::string name = fmt::format("thread {} ", tid);
        for (std::size_t at = message.find(name); at != std::string::npos;
             at = message.find(name, at + 1))
            message.replace(at, name.size(), fmt::format("thread {} ", number));
    }
    return message;
}

void Recorder::finish(const Finding& finding) {
    if (!on_ || finished_) return;
    finished_ = true;
    TimelineStep verdict;
    verdict.kind = StepKind::end;
    verdict.cpu = finding.cpu;
    verdict.sequence = finding.sequence;
    verdict.clause = finding.clause;
    verdict.text = fmt::format("FAILED, {}: {}", finding_name(finding.code),
                               with_thread_numbers(finding.message));
    add(std::move(verdict));
    const std::uint64_t last = timeline_.last_number();
    const bool moved = mark_moves();
    const bool has_event = finding.cpu && finding.sequence != 0 && rings_ != nullptr;
    switch (finding.code) {
        case FindingCode::lost_wake_up:
            if (has_event) mark_lost(finding);
            break;
        case FindingCode::torn_event:
            if (has_event) mark_torn(finding);
            break;
        case FindingCode::missing_event:
        case FindingCode::late_event:
            if (has_event) mark_missing(finding);
            break;
        default:
            mark_record(finding);
            break;
    }
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const bool any = moved || std::any_of(steps.begin(), steps.end(),
                                          [](const TimelineStep& step) { return step.decisive; });
    if (!any) mark(last, "");
}

}  // namespace kmes::conformance
