// SPDX-License-Identifier: MIT
//
// See verdict_marks.h.
#include "conformance/stage/verdict_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/model/step_texts.h"

namespace kmes::conformance {
namespace {

std::string_view wrong_with_record(FindingCode code) {
    switch (code) {
        case FindingCode::malformed_record:
            return "The contract has no record of this form.";
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

// True if an unnoticed lap can cause this fault.
bool may_follow_a_lap(FindingCode code) {
    return code == FindingCode::early_event || code == FindingCode::misread_event ||
           code == FindingCode::invented_event || code == FindingCode::refused_without_reason ||
           code == FindingCode::missing_loss || code == FindingCode::wrong_loss_count;
}

bool is_of_spin(const Finding& finding) {
    return finding.message.find(kSpins) != std::string::npos;
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
            if (const std::uint64_t record = record_of(finding); record != 0) {
                mark_record(finding, record);
                const bool is_of_a_lap =
                    finding.cpu && history_ != nullptr && may_follow_a_lap(finding.code) &&
                    mark_tail_load(*finding.cpu, last_delivered(*finding.cpu, record) + 1, record,
                                   finding.sequence);
                if (!is_of_a_lap) mark_source(finding, record);
            } else {
                mark_cause(finding);
            }
            break;
    }
    if (is_of_spin(finding)) mark_loop(finding);
    for (std::size_t i = 0; i < timeline_.steps().size(); ++i) {
        if (timeline_.steps()[i].text.find(kStaleCapacity) == std::string::npos) continue;
        mark(timeline_.number(i), "The consumer uses the capacity of an earlier buffer here.");
        break;
    }
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const bool any = moved || std::any_of(steps.begin(), steps.end(),
                                          [](const TimelineStep& step) { return step.decisive; });
    if (!any) mark(last, std::string(kWholeRunDecides));
}

void VerdictMarks::mark(std::uint64_t number, std::string why) {
    TimelineStep* step = timeline_.find(number);
    if (step == nullptr) return;
    step->decisive = true;
    if (!why.empty()) step->why = std::move(why);
}

// Marks the last operation of each chosen action. The earlier operations of the action prepare it.
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
    // An action that holds a thread has no operation of the producer.
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

// Returns the last such step before the verdict; 0: none.
std::uint64_t VerdictMarks::last_where(
    const std::function<bool(const TimelineStep&)>& is_meant) const {
    const std::vector<TimelineStep>& steps = timeline_.steps();
    for (std::size_t i = steps.size() - 1; i > 0; --i) {
        if (is_meant(steps[i - 1])) return timeline_.number(i - 1);
    }
    return 0;
}

// Returns the step of the record that a finding is about; 0: none.
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

// For a consumer that sleeps although an event is there: marks the publication and the futex wait.
// If it sleeps on a retired buffer, marks the swap too.
void VerdictMarks::mark_lost(const Finding& finding) {
    const std::uint32_t cpu = *finding.cpu;
    const auto wait = std::find_if(facts_.waits.rbegin(), facts_.waits.rend(),
                                   [cpu](const StepFacts::Wait& each) { return each.cpu == cpu; });
    const StepFacts::Operation* publication =
        finding.sequence == 0 ? nullptr : publication_of(cpu, finding.sequence);
    const std::uint64_t slept = wait == facts_.waits.rend() ? 0 : wait->step;
    mark_lap(cpu, finding.sequence, timeline_.last_number());
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
    mark_dropped(finding, slept, timeline_.last_number());
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

// Marks the last access to an event that was whole, and that the consumer dropped: it read only the
// beginning, or no wait follows. After a copy, the wait is the place where the record was due.
bool VerdictMarks::mark_dropped(const Finding& finding, std::uint64_t last_wait,
                                std::uint64_t before) {
    const auto is_of_it = [&](std::uint64_t number) {
        const TimelineStep* step = timeline_.find(number);
        return step != nullptr && step->cpu == finding.cpu && step->sequence == finding.sequence;
    };
    std::uint64_t last = 0;
    bool is_copied = false;
    for (const StepFacts::EventRead& read : facts_.event_reads) {
        if (read.step >= before || !is_of_it(read.step)) continue;
        last = read.step;
        is_copied |= read.is_to_the_end;
    }
    if (last == 0 || (is_copied && last < last_wait) ||
        is_overwritten(*finding.cpu, finding.sequence, before))
        return false;
    mark(last,
         fmt::format("This is the last access to event {}, which is whole. {}", finding.sequence,
                     is_copied ? "No record of it follows." : "The consumer does not copy it."));
    return true;
}

// Marks the load of tail_pos that showed the consumer to continue at this event after a lap.
bool VerdictMarks::mark_lap(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t next_record) {
    if (sequence < 2) return false;
    const std::uint64_t before = sequence - 1;
    if (!is_overwritten(cpu, before, next_record) || last_delivered(cpu, next_record) >= before)
        return false;
    for (const StepFacts::TailLoad& load : facts_.tail_loads) {
        if (load.cpu != cpu || load.step >= next_record) continue;
        const Placement* event = history_->find_placement(load.buffer, sequence);
        if (event == nullptr || event->position != load.value) continue;
        mark(load.step, fmt::format("tail_pos is at event {}: the events before it are "
                                    "overwritten, and the consumer has to continue there.",
                                    sequence));
        return true;
    }
    return false;
}

// Marks the last access to the retired buffer in which a missing event stays readable.
void VerdictMarks::mark_last_access(const Finding& finding, std::uint64_t next_record) {
    for (const StepFacts::Operation& swap : facts_.operations) {
        if (!swap.retired || swap.cpu != finding.cpu || swap.step > next_record) continue;
        const Placement* event = history_->find_placement(*swap.retired, finding.sequence);
        if (event == nullptr || event->overwritten_after != kNever) continue;
        std::uint64_t last = 0;
        for (const StepFacts::MetadataAccess& access : facts_.metadata_accesses) {
            if (access.buffer == *swap.retired && access.step < next_record) last = access.step;
        }
        if (last < swap.step) continue;
        return mark(last,
                    fmt::format("This is the last access to buffer {}, where event {} is whole.",
                                *swap.retired, finding.sequence));
    }
}

// Marks the publication of the event, and the first record with a higher number, before which its
// record should have been.
void VerdictMarks::mark_missing(const Finding& finding) {
    const std::vector<TimelineStep>& steps = timeline_.steps();
    const auto next = std::find_if(steps.begin(), steps.end(), [&](const TimelineStep& step) {
        return step.kind == StepKind::record && step.cpu == finding.cpu &&
               step.sequence > finding.sequence;
    });
    const std::uint64_t next_record =
        next == steps.end() ? timeline_.last_number()
                            : timeline_.number(static_cast<std::size_t>(next - steps.begin()));
    if (next != steps.end())
        mark(next_record,
             fmt::format("Event {} should have been delivered before this one.", finding.sequence));
    bool has_access = mark_lap(*finding.cpu, finding.sequence, next_record);
    // The record of a late event comes after a wait, so the wait is the mistake.
    if (finding.code == FindingCode::missing_event && !is_of_spin(finding)) {
        has_access |= mark_dropped(finding, 0, next_record);
        if (!has_access) mark_last_access(finding, next_record);
    }
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

// Marks the last of each kind of access that the consumer repeats until the verdict. Accesses
// before a record, a wait or another call of the thread are not of the loop.
void VerdictMarks::mark_loop(const Finding& finding) {
    constexpr std::size_t kAccesses = 200;
    constexpr std::size_t kRepeatedAtLeast = 3;
    const std::vector<TimelineStep>& steps = timeline_.steps();
    // Key: the thread, the place in the code, and the text without figures.
    std::map<std::tuple<std::int32_t, std::string, std::string>, std::vector<std::uint64_t>> loop;
    std::set<std::int32_t> left;  // threads whose loop begins later
    std::size_t accesses = 0;
    for (std::size_t i = steps.size(); i > 0 && accesses < kAccesses; --i) {
        const TimelineStep& step = steps[i - 1];
        if (step.thread == 0 || left.contains(step.thread)) continue;
        if (finding.cpu && step.cpu && step.cpu != finding.cpu) continue;
        if (step.kind != StepKind::access) {
            left.insert(step.thread);
            continue;
        }
        ++accesses;
        std::string kind = step.text;
        std::erase_if(kind, [](char byte) { return byte >= '0' && byte <= '9'; });
        loop[{step.thread, step.source + step.instruction, kind}].push_back(
            timeline_.number(i - 1));
    }
    for (const auto& [kind, numbers] : loop) {
        if (numbers.size() < kRepeatedAtLeast) continue;
        mark(numbers.front(), "The consumer repeats this access again and again.");
    }
}

// Returns the last step of this kind whose text contains `text`; if `cpu` has a value, only of that
// CPU.
std::uint64_t VerdictMarks::last_of(StepKind kind, std::optional<std::uint32_t> cpu,
                                    std::string_view text) const {
    return last_where([=](const TimelineStep& step) {
        return step.kind == kind && (!cpu || step.cpu == cpu) &&
               step.text.find(text) != std::string::npos;
    });
}

// Marks the end of the consumer and, if its place is not known, the last step of the thread that
// ends it. A thread that only waits for the others has none: they access its buffers later.
void VerdictMarks::mark_end() {
    const std::uint64_t end = last_of(StepKind::end, std::nullopt, "");
    mark(end, "The consumer ends here.");
    const TimelineStep* ended = timeline_.find(end);
    if (ended == nullptr || ended->thread == 0) return;
    if (!ended->source.empty() || !ended->instruction.empty()) return;
    std::set<std::uint32_t> accessed_later;
    const std::vector<TimelineStep>& steps = timeline_.steps();
    for (std::size_t i = steps.size(); i > 0; --i) {
        const TimelineStep& step = steps[i - 1];
        if (step.thread == 0 || step.kind == StepKind::end || step.kind == StepKind::record ||
            step.kind == StepKind::scheduler)
            continue;
        if (step.thread != ended->thread) {
            if (step.cpu) accessed_later.insert(*step.cpu);
            continue;
        }
        if (!step.cpu || !accessed_later.contains(*step.cpu))
            mark(timeline_.number(i - 1), "This is the last step of the thread that ends.");
        return;
    }
}

// Marks the last call whose result the consumer keeps, as that of earlier calls for other buffers.
void VerdictMarks::mark_leak(const Finding& finding) {
    const auto has = [&](std::string_view text) {
        return finding.message.find(text) != std::string::npos;
    };
    if (has(kOpenDescriptors) || has(kFilesOfBuffers))
        mark(last_of(StepKind::attach, std::nullopt, kAttachGets),
             "The consumer keeps descriptors of earlier calls open, which are of old buffers.");
    else if (has(kMappingsOfBuffers))
        mark(last_of(StepKind::map, std::nullopt, "maps buffer"),
             "The consumer keeps mappings of earlier calls, which are of old buffers.");
}

// For a fault that no record shows: marks the step in which the consumer did it, or after which the
// consumer owed something.
void VerdictMarks::mark_cause(const Finding& finding) {
    const auto by_step = [&](StepKind kind, std::string_view text, std::string why) {
        mark(last_of(kind, finding.cpu, text), std::move(why));
    };
    switch (finding.code) {
        case FindingCode::crash:
        case FindingCode::ended_too_early:
        case FindingCode::wrong_exit_status:
            mark_end();
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
        case FindingCode::contract:
            if (finding.clause == "5.1.8.2-1")
                by_step(StepKind::wait_begin, "", "The consumer goes to sleep with need_wake 0.");
            if (finding.clause == "5.1.8.3-6") mark_leak(finding);
            if (finding.clause == "E17")
                by_step(StepKind::wait_begin, "a private futex",
                        "No other process ends this wait.");
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
