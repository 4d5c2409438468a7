// SPDX-License-Identifier: MIT
//
// Judges L, G and R records. Knows nothing of payloads.
#include <algorithm>
#include <map>

#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance::internal {
namespace {

// The losses that L records have announced since the last E record.
struct Announced {
    bool any = false;
    std::uint64_t count = 0;
    std::uint64_t line = 0;

    void add(const Record& record) {
        any = true;
        // Saturates: a hostile sum must not wrap to a correct one.
        count = record.count > UINT64_MAX - count ? UINT64_MAX : count + record.count;
        line = record.line;
    }
};

void judge_gap(Context& context, const CpuView& view, const Announced& announced,
               std::uint64_t previous, const Record& next) {
    const std::uint64_t gap = previous == 0 ? 0 : next.sequence - previous - 1;
    const auto between = [&] {
        return "between event " + std::to_string(previous) + " and event " +
               std::to_string(next.sequence);
    };
    if (announced.any && announced.count != gap) {
        const auto message = [&] {
            return "the consumer reported " + plural(announced.count, "lost event") +
                   "; expected " +
                   (previous == 0 ? "no count before the first delivered event"
                                  : std::to_string(gap) + " " + between()) +
                   " (line " + std::to_string(announced.line) + " of the report)";
        };
        context.findings.add(FindingCode::wrong_loss_count, "5.1.9", view.cpu, message,
                             next.sequence, announced.line);
    } else if (!announced.any && gap > 0 && context.writes_loss_records) {
        const auto message = [&] {
            return "the consumer reported no loss " + between() + "; expected an L record of " +
                   plural(gap, "event") + ", since it writes L records" + said_in(next);
        };
        context.findings.add(FindingCode::missing_loss, "5.1.9", view.cpu, message, next.sequence,
                             next.line);
    }
}

// The values of the generation field of this CPU's buffers while the testee could read them. Each
// has the smallest report size at which it appeared. The first `left_out` buffers of the testee do
// not count.
std::map<std::uint64_t, std::uint64_t> readable_generations(const History& history,
                                                            std::uint32_t cpu,
                                                            std::size_t left_out) {
    std::map<std::uint64_t, std::uint64_t> values;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        const Buffer& buffer = history.buffer(index);
        if (!buffer.attached()) continue;
        if (left_out > 0) {
            --left_out;
            continue;
        }
        for (std::size_t i = 0; i < buffer.generations.size(); ++i) {
            const bool last = i + 1 == buffer.generations.size();
            if (!last && buffer.generations[i + 1].from_operation <= buffer.attached_operation) {
                continue;  // changed before the testee had the buffer
            }
            const GenerationValue& held = buffer.generations[i];
            const auto [entry, is_new] = values.emplace(held.value, held.from_report_bytes);
            if (!is_new) entry->second = std::min(entry->second, held.from_report_bytes);
        }
    }
    return values;
}

std::string list_values(const std::map<std::uint64_t, std::uint64_t>& values) {
    if (values.empty()) return "none, since the consumer had no buffer of this CPU";
    std::string text;
    for (const auto& [value, from_report_bytes] : values) {
        if (text.size() > 100) return text + ", ...";
        text += (text.empty() ? "" : ", ") + std::to_string(value);
    }
    return text;
}

// A moment at which the consumer is proven to read one of some buffers.
struct Sighting {
    std::uint64_t offset = 0;
    std::vector<BufferIndex> buffers;  // ascending
};

std::vector<Sighting> collect_sightings(const History& history, const CpuView& view) {
    std::vector<Sighting> sightings;
    for (const Delivery& delivery : view.deliveries) {
        if (delivery.event == nullptr || !delivery.in_order) continue;
        Sighting sighting{delivery.record->end_offset, {}};
        for (const BufferIndex index : history.buffers_of(view.cpu)) {
            if (can_come_from(history, index, delivery.event->sequence,
                              delivery.record->end_offset)) {
                sighting.buffers.push_back(index);
            }
        }
        if (!sighting.buffers.empty()) sightings.push_back(std::move(sighting));
    }
    std::vector<Sighting> sleeps;
    for (const Checkpoint& checkpoint : history.checkpoints_of(view.cpu)) {
        sleeps.push_back({checkpoint.report_bytes, {checkpoint.buffer}});
    }
    // A record that ends at a checkpoint was written before it: std::merge takes the first of two
    // equal elements from its first range.
    const auto is_earlier = [](const Sighting& a, const Sighting& b) {
        return a.offset < b.offset;
    };
    std::vector<Sighting> all;
    std::merge(sightings.begin(), sightings.end(), sleeps.begin(), sleeps.end(),
               std::back_inserter(all), is_earlier);
    return all;
}

// For each switch that must have happened, the report offset after which its G record must be.
// Assumes the fewest switches that explain all sightings. Buffers are read in the order of their
// creation.
//
// If the old and the new buffer both explain a sighting (an event was copied), it may be from
// either side of the switch. So the offset is that of the last sighting that no buffer from the new
// one on explains. A consumer may read from both buffers, and take the older event of the two. It
// may then write the record when it begins with the new one: a record counts from the attach on.
std::vector<std::uint64_t> prove_switches(const History& history, const CpuView& view) {
    if (history.buffers_of(view.cpu).size() < 2) return {};
    const std::vector<Sighting> sightings = collect_sightings(history, view);
    std::vector<std::uint64_t> switches;
    std::vector<BufferIndex> possible;
    std::size_t group_begin = 0;
    for (std::size_t i = 0; i < sightings.size(); ++i) {
        const std::vector<BufferIndex>& seen = sightings[i].buffers;
        std::vector<BufferIndex> both;
        std::set_intersection(possible.begin(), possible.end(), seen.begin(), seen.end(),
                              std::back_inserter(both));
        if (both.empty()) {
            std::size_t last = i;
            while (last > group_begin && sightings[last - 1].buffers.back() >= seen.front()) --last;
            if (last > group_begin)
                switches.push_back(std::min(sightings[last - 1].offset,
                                            history.buffer(seen.front()).attached_after));
            both = seen;
            group_begin = i;
        }
        possible = std::move(both);
    }
    return switches;
}

// If there are as many G records as switches, each belongs to one switch: the n-th cannot be of one
// of the first n buffers. (If there are more, one may be of the first mapping.)
void judge_generation_of_each(Context& context, const CpuView& view) {
    std::size_t switches = 0;
    for (const Record* record : view.records) {
        if (record->kind != RecordKind::generation) continue;
        const auto values = readable_generations(context.history, view.cpu, ++switches);
        if (values.contains(record->generation)) continue;
        const auto message = [&] {
            return "the consumer reported generation " + std::to_string(record->generation) +
                   " after change " + std::to_string(switches) +
                   " of buffers; expected a value of a later buffer (" + list_values(values) + ")" +
                   said_in(*record);
        };
        context.findings.add(FindingCode::wrong_generation, "5.1.6.1", view.cpu, message, 0,
                             record->line);
        return;
    }
}

}  // namespace

void judge_losses(Context& context, const CpuView& view) {
    Announced announced;
    std::uint64_t previous = 0;
    bool comparable = true;  // false after a record that is wrong by itself
    std::size_t next_delivery = 0;
    for (const Record* record : view.records) {
        if (record->kind == RecordKind::lost) announced.add(*record);
        if (record->kind != RecordKind::event) continue;
        const Delivery& delivery = view.deliveries[next_delivery++];
        if (delivery.in_order && comparable) {
            judge_gap(context, view, announced, previous, *record);
        }
        comparable = delivery.in_order;
        if (delivery.in_order) previous = record->sequence;
        announced = Announced{};
    }
    const bool done = view.end_sequence.has_value() || context.options.exited_with_zero;
    if (!done || announced.count == 0) return;
    const auto message = [&] {
        return "the consumer reported " + plural(announced.count, "lost event") +
               " at its end; expected a delivered event after the L record (line " +
               std::to_string(announced.line) + " of the report)";
    };
    context.findings.add(FindingCode::wrong_loss_count, "5.1.9", view.cpu, message, 0,
                         announced.line);
}

void judge_generations(Context& context, const CpuView& view) {
    const auto values = readable_generations(context.history, view.cpu, 0);
    std::vector<std::uint64_t> written;  // end offsets, ascending
    for (const Record* record : view.records) {
        if (record->kind != RecordKind::generation) continue;
        written.push_back(record->end_offset);
        const auto held = values.find(record->generation);
        if (held != values.end() && held->second < record->end_offset) continue;
        const auto message = [&] {
            return "the consumer reported generation " + std::to_string(record->generation) +
                   "; expected a value that a buffer of this CPU had (" + list_values(values) +
                   ")" + said_in(*record);
        };
        context.findings.add(FindingCode::wrong_generation, "5.1.6.1", view.cpu, message, 0,
                             record->line);
    }
    if (context.options.cut_short || view.refusal_offset) return;
    // Each switch needs a G record after its offset, and one record serves one switch.
    const std::vector<std::uint64_t> switches = prove_switches(context.history, view);
    for (std::size_t i = switches.size(); i > 0; --i) {
        const std::uint64_t needed = switches.size() - i + 1;
        const auto after = std::upper_bound(written.begin(), written.end(), switches[i - 1]);
        const std::uint64_t found = static_cast<std::uint64_t>(written.end() - after);
        if (found >= needed) continue;
        const auto message = [&] {
            return "the consumer wrote " + plural(found, "G record") + " after byte " +
                   std::to_string(switches[i - 1]) +
                   " of the report; expected one for each change to another buffer, " +
                   std::to_string(needed) + " in all";
        };
        context.findings.add(FindingCode::missing_generation, "contract-records", view.cpu,
                             message);
        return;
    }
    if (written.size() == switches.size()) judge_generation_of_each(context, view);
}

// A consumer that refuses a valid buffer has often read an event during an overwrite: the first
// event after its records.
std::string what_was_overwritten(const Context& context, const CpuView& view) {
    const auto& events = context.history.events_of(view.cpu);
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (view.delivered_at[i] < *view.refusal_offset)
            next = 0;
        else if (next == 0 && !events[i].dropped)
            next = events[i].sequence;
    }
    if (next == 0) return "";
    for (const BufferIndex index : context.history.buffers_of(view.cpu)) {
        const Placement* placement = context.history.find_placement(index, next);
        if (placement == nullptr || placement->overwritten_after > *view.refusal_offset) continue;
        return ". Evidence: the next event, " + std::to_string(next) +
               ", was overwritten by then, and torn bytes are no reason to refuse (5.1.8.1 step 5)";
    }
    return "";
}

void judge_refusals(Context& context, const CpuView& view) {
    const History& history = context.history;
    bool allowed = false;
    const Buffer* newest = nullptr;
    for (const BufferIndex index : history.buffers_of(view.cpu)) {
        const Buffer& buffer = history.buffer(index);
        if (!buffer.attached()) continue;
        allowed = allowed || may_refuse(buffer.fault);
        newest = &buffer;
    }
    const auto refusal =
        std::find_if(view.records.begin(), view.records.end(),
                     [](const Record* record) { return record->kind == RecordKind::refusal; });
    if (refusal != view.records.end() && !allowed) {
        const auto message = [&] {
            return "the consumer refused a sound buffer (" + quote_bytes((*refusal)->text) +
                   "); expected its events" + what_was_overwritten(context, view) +
                   said_in(**refusal);
        };
        context.findings.add(FindingCode::refused_without_reason, context.options.clause, view.cpu,
                             message, 0, (*refusal)->line);
    }
    const bool must = newest != nullptr && must_refuse(newest->fault);
    // After the end event of a CPU, the consumer need not check its buffers.
    if (!must || view.ended() || context.options.cut_short) return;
    context.findings.add(FindingCode::not_refused,
                         clause_by_situation(context.options.clause, "5.1.6.1"), view.cpu,
                         [&] { return not_refused_text(newest->fault_detail); });
}

}  // namespace kmes::conformance::internal
