// SPDX-License-Identifier: MIT
//
// Judges each E record, alone and with those before it. The event may be torn, doubled, reordered,
// invented, early, on a wrong CPU, from a buffer that must be refused, or after the end. Knows
// nothing of missing events.
#include "conformance/oracle/digest_mistake.h"
#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance::internal {
namespace {

bool same_payload(const Event& event, const Record& record) {
    return event.length == record.length && event.digest() == record.digest;
}

bool same_content(const Event& event, const Record& record) {
    return event.timestamp == record.timestamp && event.origin == record.origin &&
           event.type == record.type && same_payload(event, record);
}

// Whether the event was delivered before it was published.
bool is_early(const Event& event, const Record& record) {
    return !event.published || record.end_offset <= event.published_after;
}

// Describes two long types with the same beginning from the first different byte on.
std::string describe_types(std::string_view emitted, std::string_view delivered) {
    const std::size_t shorter = std::min(emitted.size(), delivered.size());
    const bool is_long = std::max(emitted.size(), delivered.size()) > kQuotedBytes;
    std::size_t same = 0;
    while (same < shorter && emitted[same] == delivered[same]) ++same;
    const bool is_late = same >= kQuotedBytes;
    const auto quoted = [&](std::string_view type) {
        const std::string size = is_long ? " (" + plural(type.size(), "byte") + ")" : "";
        return (is_late && same == type.size() ? "nothing"
                                               : quote_type(is_late ? type.substr(same) : type)) +
               size;
    };
    return "type " + quoted(delivered) + " instead of " + quoted(emitted) +
           (is_late ? ", from byte " + std::to_string(same) + " on" : "");
}

// Describes every field that differs from the emitted one.
std::string describe_difference(const Event& event, const Record& record) {
    std::string text;
    const auto add = [&text](const std::string& what) {
        text += (text.empty() ? "" : ", ") + what;
    };
    if (event.timestamp != record.timestamp) {
        add("timestamp " + std::to_string(record.timestamp) + " instead of " +
            std::to_string(event.timestamp));
    }
    if (event.origin != record.origin) {
        add("origin " + std::to_string(record.origin) + " instead of " +
            std::to_string(event.origin));
    }
    if (event.type != record.type) add(describe_types(event.type, record.type));
    if (event.length != record.length) {
        add("payload length " + std::to_string(record.length) + " instead of " +
            std::to_string(event.length));
    }
    if (event.digest() != record.digest) {
        add("payload digest " + digest_text(record.digest) + " instead of " +
            digest_text(event.digest()));
    }
    return text;
}

// Returns another CPU that has exactly this event.
std::optional<std::uint32_t> find_owner(const History& history, const Record& record) {
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        if (cpu == record.cpu) continue;
        const Event* event = history.find(cpu, record.sequence);
        if (event != nullptr && !event->dropped && same_content(*event, record)) return cpu;
    }
    return std::nullopt;
}

bool from_refused_only(const History& history, std::uint32_t cpu, const Record& record) {
    bool any = false;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        if (!can_come_from(history, index, record.sequence, record.end_offset)) continue;
        if (!must_refuse(history.buffer(index).fault)) return false;
        any = true;
    }
    return any;
}

// Whether this CPU only ever had buffers that must be refused.
bool only_refusable(const History& history, std::uint32_t cpu) {
    bool any = false;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        if (!history.buffer(index).attached()) continue;
        if (!must_refuse(history.buffer(index).fault)) return false;
        any = true;
    }
    return any;
}

// " (capacity 69632)".
std::string why_refused(const History& history, std::uint32_t cpu) {
    for (const BufferIndex index : history.buffers_of(cpu)) {
        const Buffer& buffer = history.buffer(index);
        if (buffer.attached() && must_refuse(buffer.fault) && !buffer.fault_detail.empty())
            return " (" + buffer.fault_detail + ")";
    }
    return "";
}

// A record of an event that this CPU does not have: another CPU has it, or none.
void judge_unknown(Context& context, const CpuView& view, const Record& record,
                   const Event* dropped) {
    const std::string name = "event " + std::to_string(record.sequence);
    if (const auto owner = find_owner(context.history, record)) {
        context.findings.add(
            FindingCode::wrong_cpu, "contract-1", view.cpu,
            [&] {
                return "the consumer delivered " + name + " of CPU " + std::to_string(*owner) +
                       " on this CPU; expected its own CPU" + said_in(record);
            },
            record.sequence, record.line);
        return;
    }
    const auto message = [&] {
        std::string text = "the consumer delivered " + name + "; expected ";
        const auto& events = context.history.events_of(view.cpu);
        if (dropped != nullptr) {
            text += "none, since a dropped event used that sequence number";
        } else if (events.empty()) {
            text += "none, since no event was emitted on this CPU";
        } else {
            text += "one of the events " + std::to_string(events.front().sequence) + " to " +
                    std::to_string(events.back().sequence);
        }
        return text + said_in(record);
    };
    context.findings.add(FindingCode::invented_event, dropped != nullptr ? "5.1.7-5" : "5.1.8.1-4",
                         view.cpu, message, record.sequence, record.line);
}

// Whether the tail had passed the event at its delivery, in a buffer that it can come from.
bool may_be_torn(const History& history, std::uint32_t cpu, const Record& record) {
    for (const BufferIndex index : history.buffers_of(cpu)) {
        if (!can_come_from(history, index, record.sequence, record.end_offset)) continue;
        const Placement* placement = history.find_placement(index, record.sequence);
        if (placement->overwritten_after < record.end_offset) return true;
    }
    return false;
}

bool crosses_the_end(const History& history, std::uint32_t cpu, const Record& record) {
    const auto source = certain_source(history, cpu, record.sequence, record.end_offset);
    if (!source) return false;
    const Placement* placement = history.find_placement(*source, record.sequence);
    const std::uint64_t capacity = history.buffer(*source).capacity;
    return (placement->position & (capacity - 1)) + placement->bytes > capacity;
}

// Explains a wrong digest in an otherwise correct record, if a known mistake makes it from the
// correct bytes. The mistake is then in the adapter.
std::string wrong_digest(const Event& event, const Record& record) {
    if (!event.payload_kept || event.timestamp != record.timestamp ||
        event.origin != record.origin || event.type != record.type || event.length != record.length)
        return {};
    return explain_digest(digest_text(record.digest), spec_of(event), event.sequence,
                          static_cast<std::uint16_t>(record.cpu));
}

// The clause that a consumer breaks if it delivers other bytes than the buffer had all the time.
// Also the known facts about the reason, in addition to `why`.
FindingList::Explanation explain_misread(const Context& context, const Event& event,
                                         const Record& record, std::string why) {
    const bool payload_right = same_payload(event, record);
    const int fields = (event.timestamp != record.timestamp ? 1 : 0) +
                       (event.origin != record.origin ? 1 : 0) +
                       (event.type != record.type ? 1 : 0);
    const std::string mistake = payload_right ? "" : wrong_digest(event, record);
    if (why.empty() && !mistake.empty()) why = "the digest is " + mistake;
    const bool crosses = crosses_the_end(context.history, record.cpu, record);
    if (crosses)
        why += std::string(why.empty() ? "" : "; ") + "the event wraps at the end of the region";
    if (is_header_misread(event, record) || (payload_right && fields == 1))
        return {"event-model", why};
    if (!mistake.empty()) return {"contract-records", why};
    if (crosses) return {"5.1.4", why};
    return {std::string(clause_by_situation(context.options.clause, "event-model")), why};
}

void judge_content(Context& context, const CpuView& view, const Event& event,
                   const Record& record) {
    if (same_content(event, record)) return;
    if (const auto owner = find_owner(context.history, record)) {
        context.findings.add(
            FindingCode::wrong_cpu, "contract-1", view.cpu,
            [&] {
                return "the consumer delivered event " + std::to_string(record.sequence) +
                       " with the content of CPU " + std::to_string(*owner) +
                       "'s; expected the content that this CPU emitted" + said_in(record);
            },
            record.sequence, record.line);
        return;
    }
    const bool early = is_early(event, record);
    // A record written after the publication is not early; its content may show an early read. That
    // is compared only for findings that are shown: a report may repeat one wrong record forever.
    const bool is_shown = context.findings.wants(FindingCode::torn_event);
    const std::string in_flight =
        is_shown ? explain_in_flight(context.history, view.cpu, event, record) : "";
    if (!in_flight.empty() || (!is_shown && event.in_flight != Written::whole)) {
        const auto explain = [&] {
            return FindingList::Explanation{
                std::string(clause_by_situation(context.options.clause, "5.1.8.1-1")),
                "the consumer delivered " + describe_event(context.history, view.cpu, event) +
                    " with other content; expected the emitted content. Evidence: " + in_flight +
                    said_in(record)};
        };
        context.findings.add_explained(FindingCode::torn_event, view.cpu, explain, record.sequence,
                                       record.line);
        return;
    }
    const bool torn = early || may_be_torn(context.history, view.cpu, record);
    const auto explain = [&] {
        std::string why;
        if (!same_payload(event, record))
            why = explain_torn(context.history, view.cpu, event, record);
        auto [clause, explanation] =
            torn ? FindingList::Explanation{early ? "5.1.8.1-1" : "5.1.8.1-5", why}
                 : explain_misread(context, event, record, why);
        return FindingList::Explanation{
            clause,
            "the consumer delivered " + describe_event(context.history, view.cpu, event) +
                " with " + describe_difference(event, record) + "; expected the emitted content" +
                (torn ? "" : ", which nothing had overwritten") +
                (explanation.empty() ? "" : ". Evidence: " + explanation) + said_in(record)};
    };
    context.findings.add_explained(torn ? FindingCode::torn_event : FindingCode::misread_event,
                                   view.cpu, explain, record.sequence, record.line);
}

// A new event that is newer than all before is in order. Any other is doubled or reordered.
void judge_order(Context& context, CpuView& view, Delivery& delivery, std::uint64_t highest) {
    const Record& record = *delivery.record;
    const std::size_t index = context.history.index_of(view.cpu, record.sequence).value();
    const bool seen = view.delivered_at[index] != kNever;
    if (!seen) view.delivered_at[index] = record.end_offset;
    delivery.in_order = !seen && record.sequence > highest;
    if (delivery.in_order) return;
    const bool has_switched =
        attached_buffers(context.history, view.cpu, record.end_offset).size() > 1;
    const auto message = [&] {
        return "the consumer delivered " +
               describe_event(context.history, view.cpu, *delivery.event) +
               (seen ? " more than once; expected one record of it"
                     : " after event " + std::to_string(highest) +
                           "; expected the order of sequence numbers") +
               said_in(record);
    };
    if (!seen) view.reordered = true;
    context.findings.add(seen ? FindingCode::doubled_event : FindingCode::reordered_event,
                         has_switched ? "E21" : "5.1.8.1-6", view.cpu, message, record.sequence,
                         record.line);
}

// Whether an event is permitted at this place in the report.
void judge_place(Context& context, const CpuView& view, const Record& record) {
    const auto add = [&](FindingCode code, std::string_view clause, std::string_view what) {
        context.findings.add(
            code, clause, view.cpu,
            [&] {
                return "the consumer delivered event " + std::to_string(record.sequence) + " " +
                       std::string(what) + said_in(record);
            },
            record.sequence, record.line);
    };
    if (view.end_sequence) {
        add(FindingCode::after_end, "contract-4",
            "after the end event of this CPU; expected no record after that");
    }
    if (view.refusal_offset) {
        add(FindingCode::after_refusal, "contract-records",
            "after the R record of this CPU; expected no record after that");
    }
    if (from_refused_only(context.history, view.cpu, record) ||
        only_refusable(context.history, view.cpu)) {
        add(FindingCode::delivered_from_refused,
            clause_by_situation(context.options.clause, "5.1.6.1"),
            "from a malformed buffer" + why_refused(context.history, view.cpu) +
                "; expected an R record");
    }
}

// Returns the event that began one lap earlier where this one begins, and that was due next: the
// consumer was reading it. nullptr: none.
const Event* written_over(const Context& context, const CpuView& view, const Event& event,
                          std::uint64_t highest) {
    const BufferIndex current = context.history.current_buffer(view.cpu);
    const Placement* placement = context.history.find_placement(current, event.sequence);
    if (placement == nullptr) return nullptr;
    const Buffer& buffer = context.history.buffer(current);
    for (const Placement& each : buffer.placements) {
        if (each.sequence <= highest || each.sequence >= event.sequence) continue;
        return each.position + buffer.capacity == placement->position
                   ? context.history.find(view.cpu, each.sequence)
                   : nullptr;
    }
    return nullptr;
}

void judge_early(Context& context, const CpuView& view, const Event& event, const Record& record,
                 std::uint64_t highest) {
    if (!is_early(event, record)) return;
    const auto explain = [&] {
        const Event* victim = written_over(context, view, event, highest);
        const std::string how = victim != nullptr
                                    ? "a discard of event " + std::to_string(victim->sequence) +
                                          ", which it overwrote during the copy"
                                    : "no read beyond write_pos";
        return FindingList::Explanation{
            victim != nullptr ? "5.1.8.1-5" : "5.1.8.1-1",
            "the consumer delivered " + describe_event(context.history, view.cpu, event) +
                " before its publication; expected " + how + said_in(record)};
    };
    context.findings.add_explained(FindingCode::early_event, view.cpu, explain, record.sequence,
                                   record.line);
}

}  // namespace

void judge_deliveries(Context& context, CpuView& view) {
    std::uint64_t highest = 0;
    for (const Record* record : view.records) {
        if (record->kind == RecordKind::refusal && !view.refusal_offset) {
            view.refusal_offset = record->end_offset;
        }
        if (record->kind != RecordKind::event) continue;
        judge_place(context, view, *record);
        Delivery delivery;
        delivery.record = record;
        const Event* event = context.history.find(view.cpu, record->sequence);
        // The events of a pending batch are invisible to consumers: such a record is early, not
        // invented.
        if (event == nullptr || event->dropped) {
            judge_unknown(context, view, *record, event);
        } else {
            delivery.event = event;
            judge_early(context, view, *event, *record, highest);
            judge_content(context, view, *event, *record);
            judge_order(context, view, delivery, highest);
            if (record->sequence > highest) highest = record->sequence;
        }
        if (record->type == kEndEventType && !view.end_sequence) {
            view.end_sequence = record->sequence;
        }
        view.deliveries.push_back(delivery);
    }
}

}  // namespace kmes::conformance::internal
