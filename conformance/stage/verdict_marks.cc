// SPDX-License-Identifier: MIT
//
// See verdict_marks.h.
#include "conformance/stage/verdict_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "conformance/stage/data_names.h"

namespace kmes::conformance {
namespace {

std::string_view wrong_with_record(FindingCode code) {
    switch (code) {
        case FindingCode::malformed_record:
            return "The contract knows no such record.";
        case FindingCode::invented_event:
            return "No such event was emitted.";
        case FindingCode::early_event:
            return "This event is delivered before its publication.";
        case FindingCode::misread_event:
            return "The event is whole, and this record differs from it.";
        case FindingCode::wrong_cpu:
            return "This is an event of another CPU.";
        case FindingCode::reordered_event:
            return "A later event was delivered before this one.";
        case FindingCode::wrong_loss_count:
            return "The reported loss count is wrong.";
        case FindingCode::missing_loss:
            return "Events before this one are lost, and no L record reports them.";
        case FindingCode::wrong_generation:
            return "No buffer that the consumer can read has this generation.";
        case FindingCode::missing_generation:
            return "This event is from a new buffer, and no G record reports the change.";
        case FindingCode::refused_without_reason:
            return "The buffer that is refused here is sound.";
        case FindingCode::delivered_from_refused:
            return "This event is from a malformed buffer.";
        case FindingCode::after_end:
            return "The end event of this CPU came earlier.";
        case FindingCode::after_refusal:
            return "This CPU was refused earlier.";
        default:
            return "This step is the fault.";
    }
}

}  // namespace

void VerdictMarks::mark_all(const Finding& finding, std::uint64_t last) {
    const bool moved = mark_moves();
    const bool has_event = finding.cpu && finding.sequence != 0 && history_ != nullptr;
    switch (finding.code) {
        case FindingCode::lost_wake_up:
            if (finding.cpu && history_ != nullptr) mark_lost(finding);
            break;
        case FindingCode::torn_event:
            if (has_event) mark_torn(finding);
            break;
        case FindingCode::missing_event:
        case FindingCode::late_event:
            if (has_event) mark_missing(finding);
            break;
        default:
            if (const std::uint64_t record = record_of(finding); record != 0)
                mark_record(finding, record);
            else
                mark_cause(finding);
            break;
    }
    for (std::size_t i = 0; i < timeline_.steps().size(); ++i) {
        if (timeline_.steps()[i].text.find(kStaleCapacity) == std::string::npos) continue;
        mark(timeline_.number(i), "The consumer uses the capacity of an earlier buffer here.");
        break;
    }
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const bool any = moved || std::any_of(steps.begin(), steps.end(),
                                          [](const TimelineStep& step) { return step.decisive; });
    if (!any) mark(last, "The verdict is about the whole run, and no single step decides it.");
}

void VerdictMarks::mark(std::uint64_t number, std::string why) {
    TimelineStep* step = timeline_.find(number);
    if (step == nullptr) return;
    step->decisive = true;
    if (!why.empty()) step->why = std::move(why);
}

// The last operation of each move: what comes before it in the same move leads up to it.
bool VerdictMarks::mark_moves() {
    bool any = false;
    for (std::size_t i = 0; i < facts_.operations.size(); ++i) {
        if (!facts_.operations[i].in_move) continue;
        if (i + 1 < facts_.operations.size() && facts_.operations[i + 1].in_move &&
            facts_.operations[i + 1].step == facts_.operations[i].step + 1)
            continue;
        mark(facts_.operations[i].step,
             "The producer does this between two accesses of the consumer.");
        any = true;
    }
    // A move that holds a thread does nothing of the producer's.
    if (!any && !facts_.moves.empty())
        mark(facts_.moves.back(), "The suite does this to the consumer.");
    return any || !facts_.moves.empty();
}

const StepFacts::Operation* VerdictMarks::publication_of(std::uint32_t cpu,
                                                         std::uint64_t sequence) const {
    const auto found = std::find_if(facts_.operations.rbegin(), facts_.operations.rend(),
                                    [&](const StepFacts::Operation& operation) {
                                        return operation.cpu == cpu &&
                                               operation.published_first <= sequence &&
                                               sequence <= operation.published_last &&
                                               operation.published_first != 0;
                                    });
    return found == facts_.operations.rend() ? nullptr : &*found;
}

// The last such step before the verdict; 0: none.
std::uint64_t VerdictMarks::last_where(
    const std::function<bool(const TimelineStep&)>& is_meant) const {
    const std::vector<TimelineStep>& steps = timeline_.steps();
    for (std::size_t i = steps.size() - 1; i > 0; --i) {
        if (is_meant(steps[i - 1])) return timeline_.number(i - 1);
    }
    return 0;
}

// The record that a finding is about; 0: none.
std::uint64_t VerdictMarks::record_of(const Finding& finding) const {
    if (const auto found = facts_.step_of_line.find(finding.line);
        found != facts_.step_of_line.end())
        return found->second;
    if (!finding.cpu || finding.sequence == 0) return 0;
    return last_where([&](const TimelineStep& step) {
        return step.kind == StepKind::record && step.cpu == finding.cpu &&
               step.sequence == finding.sequence;
    });
}

// Asleep on an event that is there: the publication, the futex wait, and the swap between them if
// it sleeps on a buffer that is retired.
void VerdictMarks::mark_lost(const Finding& finding) {
    const std::uint32_t cpu = *finding.cpu;
    const auto wait = std::find_if(facts_.waits.rbegin(), facts_.waits.rend(),
                                   [cpu](const StepFacts::Wait& each) { return each.cpu == cpu; });
    const StepFacts::Operation* publication =
        finding.sequence == 0 ? nullptr : publication_of(cpu, finding.sequence);
    const std::uint64_t slept = wait == facts_.waits.rend() ? 0 : wait->step;
    if (publication != nullptr) {
        std::string why = fmt::format("Event {} is in the buffer from here on", finding.sequence);
        if (slept > publication->step)
            why += ", and the consumer has not read it when it goes to sleep.";
        else if (slept == 0)
            why += ", and the consumer has never slept on a buffer of this CPU.";
        else if (!publication->woken)
            why += ". need_wake is 0, so the sleeping consumer is not woken.";
        else if (*publication->woken == 0)
            why += ". The wake reaches no thread.";
        else
            why += ".";
        mark(publication->step, why);
    }
    if (finding.clause == "E1")
        mark(last_of(StepKind::scheduler, cpu, "as a processor may"),
             "No full barrier follows this store, so a later load may be performed before it.");
    if (slept == 0) {
        mark(last_where([cpu](const TimelineStep& step) {
                 return step.kind == StepKind::record && step.cpu == cpu;
             }),
             "This is the last record of this CPU.");
        return;
    }
    const bool retired = history_->buffer(wait->buffer).retired;
    mark(slept,
         finding.sequence == 0
             ? "The consumer goes to sleep for ever, because no event will be in this buffer."
         : slept > (publication != nullptr ? publication->step : 0)
             ? fmt::format("The consumer goes to sleep for ever with event {} published{}.",
                           finding.sequence, retired ? " in another buffer" : "")
             : "The consumer sleeps here, and nothing wakes it.");
    for (const StepFacts::Operation& operation : facts_.operations) {
        if (operation.retired == wait->buffer && operation.cpu == cpu)
            mark(operation.step,
                 fmt::format(
                     "From here on every event is in the new buffer, and buffer {} is retired.",
                     wait->buffer));
    }
}

// The operation that overwrote the event, if possible between the consumer's first access to it and
// its record.
void VerdictMarks::mark_torn(const Finding& finding) {
    const std::uint64_t record = record_of(finding);
    const std::vector<TimelineStep>& steps = timeline_.steps();
    std::uint64_t first_access = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimelineStep& step = steps[i];
        if (step.kind == StepKind::access && step.sequence == finding.sequence &&
            step.cpu == finding.cpu && first_access == 0)
            first_access = timeline_.number(i);
    }
    for (const StepFacts::Operation& operation : facts_.operations) {
        if (operation.cpu != finding.cpu || operation.overwritten_first == 0 ||
            operation.overwritten_first > finding.sequence ||
            operation.overwritten_last < finding.sequence)
            continue;
        const bool between = first_access != 0 && operation.step > first_access;
        mark(operation.step, between
                                 ? fmt::format("Event {} is overwritten here, after the consumer "
                                               "began to read it (step {}) and before its record.",
                                               finding.sequence, first_access)
                                 : fmt::format("Event {} is overwritten here.", finding.sequence));
    }
    mark(record, fmt::format("This record reports event {} with other bytes than were emitted.",
                             finding.sequence));
}

// Where its record should have been: before the first one with a higher number, if there is one.
void VerdictMarks::mark_missing(const Finding& finding) {
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const auto next = std::find_if(steps.begin(), steps.end(), [&](const TimelineStep& step) {
        return step.kind == StepKind::record && step.cpu == finding.cpu &&
               step.sequence > finding.sequence;
    });
    if (next != steps.end())
        mark(timeline_.number(static_cast<std::size_t>(next - steps.begin())),
             fmt::format("Event {} should have been delivered before this one.", finding.sequence));
    if (const StepFacts::Operation* publication = publication_of(*finding.cpu, finding.sequence))
        mark(publication->step,
             fmt::format("Event {} is published here, and never delivered.", finding.sequence));
}

void VerdictMarks::mark_record(const Finding& finding, std::uint64_t record) {
    std::string why(wrong_with_record(finding.code));
    const std::vector<TimelineStep>& steps = timeline_.steps();
    if (finding.code == FindingCode::doubled_event) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].kind != StepKind::record || steps[i].cpu != finding.cpu ||
                steps[i].sequence != finding.sequence || timeline_.number(i) == record)
                continue;
            why = fmt::format("This is the same event as in step {}.", timeline_.number(i));
            break;
        }
    }
    mark(record, why);
}

// The last step of this kind and, where one is named, of this CPU, with this in its text.
std::uint64_t VerdictMarks::last_of(StepKind kind, std::optional<std::uint32_t> cpu,
                                    std::string_view text) const {
    return last_where([=](const TimelineStep& step) {
        return step.kind == kind && (!cpu || step.cpu == cpu) &&
               step.text.find(text) != std::string::npos;
    });
}

// A fault that no record shows: the step in which the consumer did it, or from which on the
// consumer owed something.
void VerdictMarks::mark_cause(const Finding& finding) {
    const auto by_step = [&](StepKind kind, std::string_view text, std::string why) {
        mark(last_of(kind, finding.cpu, text), std::move(why));
    };
    switch (finding.code) {
        case FindingCode::crash:
        case FindingCode::ended_too_early:
        case FindingCode::wrong_exit_status:
            mark(last_of(StepKind::end, std::nullopt, ""), "The consumer ends here.");
            break;
        case FindingCode::write_outside:
            mark(last_where([&](const TimelineStep& step) {
                     return step.kind == StepKind::access && step.cpu == finding.cpu &&
                            !step.text.starts_with("reads") &&
                            step.text.find("need_wake") == std::string::npos;
                 }),
                 "A consumer may write need_wake only.");
            break;
        case FindingCode::read_outside:
            by_step(StepKind::access, "", "This address is outside the buffer.");
            break;
        case FindingCode::wrong_need_wake:
            by_step(StepKind::access, "need_wake", "need_wake has this value from here on.");
            break;
        case FindingCode::wrong_mapping:
        case FindingCode::not_refused:
            by_step(StepKind::map, "", "The verdict is about this mapping.");
            break;
        case FindingCode::missing_generation:
        case FindingCode::wrong_generation:
            by_step(StepKind::producer, "replaces buffer",
                    "From here on the consumer owes a G record of the new buffer.");
            break;
        case FindingCode::never_ended:
            by_step(StepKind::producer, "emits event",
                    "This is the last event that the consumer gets.");
            break;
        default:
            break;
    }
}

}  // namespace kmes::conformance
