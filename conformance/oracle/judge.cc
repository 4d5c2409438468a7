// SPDX-License-Identifier: MIT
//
// The frame of the judge: sorts the records by CPU, calls each part, and orders the findings. Knows
// no process.
#include "conformance/oracle/judge.h"

#include <algorithm>
#include <utility>

#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance {
namespace internal {

FindingList::Kind& FindingList::kind(FindingCode code) {
    const std::size_t index = static_cast<std::size_t>(code);
    if (index >= kinds_.size()) kinds_.resize(index + 1);
    return kinds_[index];
}

bool FindingList::wants(FindingCode code) const {
    const std::size_t index = static_cast<std::size_t>(code);
    return index >= kinds_.size() || kinds_[index].shown.size() < maximum_per_code_;
}

void FindingList::show(FindingCode code, std::uint32_t cpu, Explanation explanation,
                       std::uint64_t sequence, std::uint64_t line) {
    Finding finding;
    finding.code = code;
    finding.clause = std::move(explanation.clause);
    finding.message = std::move(explanation.message);
    if (cpu != kNoCpu) {
        finding.message.insert(0, "CPU " + std::to_string(cpu) + ": ");
        finding.cpu = cpu;
    }
    finding.sequence = sequence;
    finding.line = line;
    kind(code).shown.push_back(std::move(finding));
}

// The codes are in the order of weight.
std::vector<Finding> FindingList::take() {
    std::vector<Finding> all;
    for (Kind& kind : kinds_) {
        if (kind.more > 0 && !kind.shown.empty()) {
            Finding rest = kind.shown.back();
            rest.message = "and " + std::to_string(kind.more) + " more of this kind (" +
                           std::string(finding_name(rest.code)) + ")";
            rest.cpu.reset();
            rest.sequence = 0;
            rest.line = 0;
            kind.shown.push_back(std::move(rest));
        }
        std::move(kind.shown.begin(), kind.shown.end(), std::back_inserter(all));
    }
    kinds_.clear();
    return all;
}

bool can_come_from(const History& history, BufferIndex index, std::uint64_t sequence,
                   std::uint64_t record_end_offset) {
    const Buffer& buffer = history.buffer(index);
    return buffer.attached() && buffer.generations.front().from_report_bytes < record_end_offset &&
           history.find_placement(index, sequence) != nullptr;
}

std::optional<BufferIndex> certain_source(const History& history, std::uint32_t cpu,
                                          std::uint64_t sequence, std::uint64_t record_end_offset) {
    std::optional<BufferIndex> source;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        if (!can_come_from(history, index, sequence, record_end_offset)) continue;
        if (source) return std::nullopt;
        source = index;
    }
    return source;
}

std::vector<BufferIndex> attached_buffers(const History& history, std::uint32_t cpu,
                                          std::uint64_t report_bytes) {
    std::vector<BufferIndex> attached;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        const Buffer& buffer = history.buffer(index);
        if (buffer.attached() && buffer.attached_after < report_bytes) attached.push_back(index);
    }
    return attached;
}

std::string quote_type(std::string_view type) {
    return quote_bytes(type, kQuotedBytes);
}

std::string plural(std::uint64_t count, std::string_view word) {
    return std::to_string(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

std::string said_in(const Record& record) {
    return " (line " + std::to_string(record.line) + " of the report)";
}

std::string describe_event(const History& history, std::uint32_t cpu, const Event& event,
                           std::optional<BufferIndex> in) {
    std::string text = "event " + std::to_string(event.sequence) + " (type " +
                       quote_type(event.type) + ", " + plural(event.bytes, "byte");
    const std::vector<BufferIndex>& buffers = history.buffers_of(cpu);
    for (std::size_t i = buffers.size(); i > 0; --i) {
        const BufferIndex buffer = in.value_or(buffers[i - 1]);
        const Placement* placement = history.find_placement(buffer, event.sequence);
        if (placement == nullptr) continue;
        text += ", position " + std::to_string(placement->position);
        if (in) text += " in buffer " + std::to_string(buffer);
        break;
    }
    return text + ")";
}

namespace {

void collect_views(const History& history, const RecordParser& report, std::vector<CpuView>& views,
                   FindingList& findings) {
    views.resize(history.cpus());
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        views[cpu].cpu = cpu;
        views[cpu].delivered_at.assign(history.events_of(cpu).size(), kNever);
    }
    for (const Record& record : report.records()) {
        if (record.cpu < views.size()) {
            views[record.cpu].records.push_back(&record);
            continue;
        }
        findings.add(
            FindingCode::unknown_cpu, "contract-records", kNoCpu,
            [&] {
                return "line " + std::to_string(record.line) + " of the report names CPU " +
                       std::to_string(record.cpu) + "; expected a CPU from 0 to " +
                       std::to_string(history.cpus() - 1);
            },
            record.sequence, record.line);
    }
}

void judge_end(Context& context, const CpuView& view) {
    if (!context.options.exited_with_zero || view.ended()) return;
    context.findings.add(FindingCode::ended_too_early, "contract-4", view.cpu, [] {
        return std::string(
            "the consumer exited with status 0; expected the record of this CPU's end event, or an "
            "R record, first");
    });
}

}  // namespace
}  // namespace internal

std::vector<Finding> judge(const History& history, const RecordParser& report,
                           const JudgeOptions& options) {
    internal::FindingList findings(options.maximum_findings_per_code);
    std::vector<internal::CpuView> views;
    internal::collect_views(history, report, views, findings);
    const bool writes_loss_records =
        std::any_of(report.records().begin(), report.records().end(),
                    [](const Record& record) { return record.kind == RecordKind::lost; });
    internal::Context context{history, options, writes_loss_records, findings};
    for (internal::CpuView& view : views) {
        if (history.tolerated(view.cpu)) continue;
        internal::judge_deliveries(context, view);
        internal::judge_missing(context, view);
        internal::judge_losses(context, view);
        internal::judge_generations(context, view);
        internal::judge_refusals(context, view);
        internal::judge_end(context, view);
    }
    std::vector<Finding> all;
    for (const MalformedLine& malformed : report.malformed()) {
        Finding finding;
        finding.code = FindingCode::malformed_record;
        // The clause of the adapter's mistakes, whatever the case tests.
        finding.clause =
            options.clause.starts_with("contract-") ? options.clause : "contract-records";
        finding.message = malformed.message;
        finding.line = malformed.line;
        all.push_back(std::move(finding));
        if (all.size() >= options.maximum_findings_per_code) break;
    }
    std::vector<Finding> judged = findings.take();
    std::move(judged.begin(), judged.end(), std::back_inserter(all));
    return all;
}

}  // namespace kmes::conformance
