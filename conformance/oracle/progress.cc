// SPDX-License-Identifier: MIT
//
// The progress of a testee, and its history as text. Judges nothing.
#include <algorithm>

#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance {

Progress::Progress(const History& history) : history_(history), cpu_states_(history.cpus()) {}

void Progress::update(const RecordParser& report) {
    const std::vector<Record>& records = report.records();
    for (; records_seen_ < records.size(); ++records_seen_) {
        const Record& record = records[records_seen_];
        if (record.cpu >= cpu_states_.size()) continue;
        CpuState& cpu_state = cpu_states_[record.cpu];
        if (record.kind == RecordKind::refusal) cpu_state.refused = true;
        if (record.kind != RecordKind::event) continue;
        ++cpu_state.delivered_count;
        if (record.type == kEndEventType) cpu_state.ended = true;
        // An invented sequence number must not make everything look delivered.
        const Event* event = history_.find(static_cast<std::uint32_t>(record.cpu), record.sequence);
        if (event == nullptr || event->dropped) continue;
        cpu_state.last_sequence = std::max(cpu_state.last_sequence, record.sequence);
    }
}

bool Progress::ended(std::uint32_t cpu) const {
    return cpu_states_.at(cpu).ended || cpu_states_.at(cpu).refused;
}

bool Progress::all_ended() const {
    return std::all_of(cpu_states_.begin(), cpu_states_.end(), [](const CpuState& cpu_state) {
        return cpu_state.ended || cpu_state.refused;
    });
}

bool Progress::refused(std::uint32_t cpu) const {
    return cpu_states_.at(cpu).refused;
}

std::uint64_t Progress::last_sequence(std::uint32_t cpu) const {
    return cpu_states_.at(cpu).last_sequence;
}

std::uint64_t Progress::delivered_count(std::uint32_t cpu) const {
    return cpu_states_.at(cpu).delivered_count;
}

const Event* Progress::first_undelivered(std::uint32_t cpu) const {
    if (ended(cpu) || history_.tolerated(cpu)) return nullptr;
    const std::vector<BufferIndex>& buffers = history_.buffers_of(cpu);
    const bool attached = std::any_of(buffers.begin(), buffers.end(), [this](BufferIndex index) {
        return history_.buffer(index).attached();
    });
    const Buffer& current = history_.buffer(buffers.back());
    if (!attached || may_refuse(current.fault)) return nullptr;
    const auto newer = std::upper_bound(
        current.placements.begin(), current.placements.end(), cpu_states_.at(cpu).last_sequence,
        [](std::uint64_t last, const Placement& placement) { return last < placement.sequence; });
    const std::size_t index = std::max<std::size_t>(
        static_cast<std::size_t>(newer - current.placements.begin()), current.tail_index);
    if (index >= current.published_count) return nullptr;
    return history_.find(cpu, current.placements[index].sequence);
}

std::string describe_history(const History& history, const RecordParser& report, std::uint32_t cpu,
                             std::size_t maximum_lines) {
    const auto& events = history.events_of(cpu);
    std::vector<std::uint64_t> delivered_in(events.size(), 0);
    for (const Record& record : report.records()) {
        if (record.kind != RecordKind::event || record.cpu != cpu) continue;
        const auto index = history.index_of(cpu, record.sequence);
        if (!index) continue;
        std::uint64_t& delivered = delivered_in[*index];
        if (delivered == 0) delivered = record.line;
    }
    std::string text;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        const Buffer& buffer = history.buffer(index);
        text += "CPU " + std::to_string(cpu) + " buffer " + std::to_string(index) + ": capacity " +
                std::to_string(buffer.capacity) + ", tail_pos " + std::to_string(buffer.tail_pos) +
                ", write_pos " + std::to_string(buffer.write_pos) + ", generation " +
                std::to_string(buffer.generation()) + (buffer.boot ? ", boot" : "") +
                (buffer.retired ? ", retired" : "") +
                (buffer.attached() ? "" : ", never attached") + "\n";
    }
    const std::size_t first = events.size() - std::min(events.size(), maximum_lines);
    for (std::size_t i = first; i < events.size(); ++i) {
        const Event& event = events[i];
        text += "CPU " + std::to_string(cpu) + " ";
        if (event.dropped) {
            text += "event " + std::to_string(event.sequence) + ": dropped\n";
            continue;
        }
        text += internal::describe_event(history, cpu, event) + ": ";
        text += !event.published          ? "not published"
                : delivered_in[i] != 0    ? "delivered in line " + std::to_string(delivered_in[i])
                : event.owed_by != kNever ? "owed and not delivered"
                                          : "not delivered";
        text += "\n";
    }
    return text;
}

}  // namespace kmes::conformance
