// SPDX-License-Identifier: MIT
//
// See verdict_marks.h. The marks of torn and wrong events: the reads of the event, and the load of
// tail_pos that decides about them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/stage/data_names.h"
#include "conformance/stage/verdict_marks.h"

namespace kmes::conformance {

// Marks the operations that overwrote the event, the record, and the load of tail_pos by which the
// consumer decided.
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
        if (!operation.overwrites(*finding.cpu, finding.sequence)) continue;
        const bool between = first_access != 0 && operation.step > first_access;
        mark(operation.step, between
                                 ? fmt::format("Event {} is overwritten here, after the consumer "
                                               "began to read it (step {}) and before its record.",
                                               finding.sequence, first_access)
                                 : fmt::format("Event {} is overwritten here.", finding.sequence));
    }
    mark(record, fmt::format("This record reports event {} with other bytes than were emitted.",
                             finding.sequence));
    if (mark_tail_load(*finding.cpu, finding.sequence, record, finding.sequence)) return;
    const Copy copy = copy_of(*finding.cpu, finding.sequence, record, finding.sequence);
    mark(copy.last_read,
         fmt::format("This is the last recorded read of event {} before its record.",
                     finding.sequence));
}

// True if an operation before this step has overwritten the event.
bool VerdictMarks::is_overwritten(std::uint32_t cpu, std::uint64_t sequence,
                                  std::uint64_t before) const {
    return std::ranges::any_of(facts_.operations, [=](const StepFacts::Operation& operation) {
        return operation.step < before && operation.overwrites(cpu, sequence);
    });
}

// Returns the highest sequence number of the records before this step; 0: none.
std::uint64_t VerdictMarks::last_delivered(std::uint32_t cpu, std::uint64_t before) const {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < timeline_.steps().size(); ++i) {
        const TimelineStep& step = timeline_.steps()[i];
        if (step.kind == StepKind::record && step.cpu == cpu && timeline_.number(i) < before)
            last = std::max(last, step.sequence);
    }
    return last;
}

// True if these are bytes where the event is, or was before it was overwritten.
bool VerdictMarks::overlaps(const StepFacts::EventRead& read, std::uint32_t cpu,
                            std::uint64_t sequence) const {
    const Buffer& buffer = history_->buffer(read.buffer);
    const Placement* event = history_->find_placement(read.buffer, sequence);
    if (buffer.cpu != cpu || event == nullptr) return false;
    const std::uint64_t distance = (read.position - event->position) & (buffer.capacity - 1);
    return distance < event->bytes || distance + read.bytes > buffer.capacity;
}

// Returns the first reads in the place of an event after it was overwritten. The timeline names
// them by the later event, if the run has recorded no earlier read of the first one.
VerdictMarks::Copy VerdictMarks::read_in_its_place(std::uint32_t cpu, std::uint64_t sequence,
                                                   std::uint64_t record) const {
    std::set<std::uint64_t> reads;
    for (const StepFacts::EventRead& read : facts_.event_reads) {
        if (read.step < record && overlaps(read, cpu, sequence) &&
            is_overwritten(cpu, sequence, read.step))
            reads.insert(read.step);
    }
    Copy copy;
    for (std::size_t i = 0; i < timeline_.steps().size() && !reads.empty(); ++i) {
        const TimelineStep& step = timeline_.steps()[i];
        const std::uint64_t number = timeline_.number(i);
        if (number < *reads.begin()) continue;
        if (step.kind != StepKind::access || step.cpu != cpu) continue;
        if (!reads.contains(number)) {
            if (number < record) copy.next_access = number;
            break;
        }
        copy.last_read = number;
    }
    return copy;
}

// Returns the last reads of an event before its record. The consumer took the bytes for those of
// event `read_as`; 0: of any event.
VerdictMarks::Copy VerdictMarks::copy_of(std::uint32_t cpu, std::uint64_t sequence,
                                         std::uint64_t record, std::uint64_t read_as) const {
    Copy copy;
    for (std::size_t i = 0; i < timeline_.steps().size(); ++i) {
        const TimelineStep& step = timeline_.steps()[i];
        if (timeline_.number(i) >= record) break;
        if (step.kind != StepKind::access || step.cpu != cpu) continue;
        const bool is_read = step.sequence != 0 && (read_as == 0 || step.sequence == read_as ||
                                                    step.sequence == sequence);
        if (is_read)
            copy = {timeline_.number(i), 0};
        else if (copy.last_read != 0 && copy.next_access == 0)
            copy.next_access = timeline_.number(i);
    }
    return copy.last_read != 0 ? copy : read_in_its_place(cpu, sequence, record);
}

// Marks the load of tail_pos by which the consumer decided about an overwritten event. This is the
// first load that shows the lap, up to the one directly after the copy. Without such a load, it is
// the last one before the end of the copy, and the copy is marked, too. Returns whether there is
// such a load.
bool VerdictMarks::mark_tail_load(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t record,
                                  std::uint64_t read_as) {
    if (!is_overwritten(cpu, sequence, record)) return false;
    const auto [last_read, next_access] = copy_of(cpu, sequence, record, read_as);
    const std::uint64_t limit = last_read != 0 ? last_read : record;
    const StepFacts::TailLoad* load = nullptr;
    const Placement* event = nullptr;
    for (const StepFacts::TailLoad& each : facts_.tail_loads) {
        if (each.cpu != cpu || (each.step >= limit && each.step != next_access)) continue;
        load = &each;
        event = history_->find_placement(each.buffer, sequence);
        if (event != nullptr && each.value > event->position) break;
    }
    if (event == nullptr) return false;
    if (load->value > event->position) {
        mark(load->step,
             fmt::format("tail_pos has passed event {}, so no copy of it may be used.", sequence));
        return true;
    }
    std::string why =
        fmt::format("tail_pos has not passed event {} yet, which is overwritten later", sequence);
    const bool is_after_the_copy = next_access != 0 && next_access == load->step;
    if (next_access != 0 && !is_after_the_copy) why += ". No load of tail_pos follows the copy";
    mark(load->step, why + ".");
    if (last_read != 0 && !is_after_the_copy)
        mark(last_read,
             fmt::format("This read comes after the load of tail_pos in step {}.", load->step));
    return true;
}

// Marks the access that led to a wrong record. For a G record this is the last load of
// `generation`, and for any other record the copy of the event.
void VerdictMarks::mark_source(const Finding& finding, std::uint64_t record) {
    const bool is_of_generation = finding.code == FindingCode::wrong_generation;
    const TimelineStep* written = timeline_.find(record);
    // A malformed record may still name its CPU.
    const std::optional<std::uint32_t> cpu =
        finding.cpu || written == nullptr ? finding.cpu : written->cpu;
    const auto is_source = [&](const TimelineStep& step) {
        if (step.kind != StepKind::access || step.cpu != cpu) return false;
        if (is_of_generation) return step.text.starts_with("reads generation");
        return step.sequence != 0 && (finding.sequence == 0 || step.sequence == finding.sequence);
    };
    const std::vector<TimelineStep>& steps = timeline_.steps();
    // A read at a wrong place explains more, and has a mark of its own.
    if (finding.sequence == 0 && !stale_capacity_of(timeline_).empty()) return;
    std::size_t source = steps.size();
    for (std::size_t i = 0; i < steps.size() && timeline_.number(i) < record; ++i) {
        if (is_source(steps[i])) source = i;
    }
    if (source == steps.size() && !is_of_generation) return mark_load_instead(finding, record);
    if (source == steps.size() || steps[source].decisive) return;
    mark(timeline_.number(source),
         is_of_generation ? fmt::format("The record of step {} follows from this load.", record)
                          : fmt::format("The record of step {} follows this copy of event {}.",
                                        record, steps[source].sequence));
}

// For a run that has recorded no read of the event of a wrong record: marks the load of tail_pos,
// which comes with each read.
void VerdictMarks::mark_load_instead(const Finding& finding, std::uint64_t record) {
    if (finding.sequence == 0) return;
    const StepFacts::TailLoad* load = nullptr;
    for (const StepFacts::TailLoad& each : facts_.tail_loads) {
        if (each.cpu == finding.cpu && each.step < record) load = &each;
    }
    if (load != nullptr)
        mark(load->step, fmt::format("This is the last load of tail_pos before the record of step "
                                     "{}. No read of event {} is recorded.",
                                     record, finding.sequence));
}

}  // namespace kmes::conformance
